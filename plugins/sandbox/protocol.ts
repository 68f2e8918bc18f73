/** The interface of a vendor protocol; each of the four is one such object. Types alone. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Counts, PromptCounts } from './counts.ts';
import type { Fault } from './fault.ts';
import type { JsonObject } from './json.ts';
import type { ModelRequest, ProtocolName } from './script/model-request.ts';
import type { Script } from './script/script.ts';

/** `answer` runs the model; `count` counts the prompt; `compact` folds a conversation. */
export type Operation = 'answer' | 'count' | 'compact';

/** Where a request was sent. */
export interface Call {
  readonly protocol: ProtocolName;
  readonly operation: Operation;
  /** Model and streaming from the path, in the protocol with both in the path. */
  readonly pathModel: string | undefined;
  readonly pathStream: boolean;
  /** true: server-sent events; false: the protocol's other stream form, if it has one. */
  readonly events: boolean;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
}

/** One answer in progress. */
export interface Turn {
  readonly call: Call;
  readonly modelRequest: ModelRequest;
  readonly script: Script;
  readonly prompt: PromptCounts;
  /** Counts of the whole script. */
  readonly counts: Counts;
  /** Unique letters and digits from which the answer's ids are made. */
  readonly id: string;
  /** Wall-clock milliseconds. */
  readonly startedAt: number;
  readonly body: JsonObject;
}

/** One frame of a stream, exactly as sent. */
export interface Frame {
  readonly bytes: string;
  /** Characters that this frame contains or represents. */
  readonly text?: number;
  readonly reasoning?: number;
  /** A piece of the answer: paced, and counted by `cut_after`, `stall` and `mid_error`. */
  readonly chunk?: true;
  /** Belongs to the protocol's ending, which `no_terminal` omits. */
  readonly ending?: true;
}

/** A request that is refused before anything ran. */
export interface Refusal {
  readonly fault: Fault;
  readonly call: Call;
  readonly id: string;
  /** Wall-clock milliseconds. */
  readonly now: number;
}

export interface Protocol {
  /** The key, where this protocol's clients send it. */
  key(call: Call): string | undefined;
  /** Throws a Fault for what this vendor would refuse. */
  decode(body: JsonObject, call: Call): ModelRequest;
  whole(turn: Turn): string;
  stream(turn: Turn): Iterable<Frame>;
  /** The answer to a count of `tokens`. */
  counted(tokens: number): string;
  /** A whole error answer; `headers` are added to those of every answer. */
  fault(refusal: Refusal): { body: string; headers: Record<string, string> };
  /** An error inside a stream, after `events` frames. */
  streamFault(fault: Fault, turn: Turn, events: number): string;
  /** Headers of every answer of this vendor. */
  headers(id: string): Record<string, string>;
  /** Content type of a stream. */
  streamType(call: Call): string;
}
