/** What a run needs of a client's protocol: the requests of its turns, their answers, and the answer of the whole run. Types. */
import type { JsonObject } from '../../core/json/json.ts';
import type { FoundFiles } from './files/nouns.ts';
import type { Offered } from './offered.ts';
import type { Found } from './search/nouns.ts';

/** A call of a tool of the gateway, as a model has made it. */
export interface ToolUse {
  readonly id: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
  /** The client has approved it by this id. */
  readonly approvedBy?: string;
}

export interface ToolDone extends ToolUse {
  /** What the model reads. */
  readonly output: string;
  readonly isError: boolean;
  /** What it has found, where it is a search of the web. */
  readonly found?: Found;
  /** The same of a search of files. */
  readonly files?: FoundFiles;
}

/** What a turn has called. */
export interface Turn {
  readonly own: readonly ToolUse[];
  /** It has called functions of the client too. */
  readonly hasOthers: boolean;
  /** It ended before it was whole: its calls are not to be run. */
  readonly isCut: boolean;
}

/** `bound`: the model would have gone on. */
export type End = 'done' | 'bound';

/** One request of a client with all of its turns. */
export interface Talk {
  /** Answers of this protocol can have calls of the gateway beside those of the client; otherwise these are left out and asked for again. */
  readonly keepsCalls: boolean;
  /** Calls that the client has approved: they run before the first turn. */
  readonly approved: readonly ToolUse[];
  approvedDone(done: readonly ToolDone[]): void;
  /** The request of the next turn. */
  body(): JsonObject;
  /** Reads a turn's whole answer. */
  take(answer: JsonObject): Turn;
  /** These calls of the turn were made: the next turn goes on from their results. */
  add(done: readonly ToolDone[]): void;
  /** These calls of the turn wait for the client's approval. */
  ask(calls: readonly ToolUse[]): void;
  /** The answer of the run. */
  whole(end: End): JsonObject;
  readonly frames: Frames;
}

/** The same as a stream: texts in the client's framing. */
export interface Frames {
  /** What the client gets of a frame of a turn's stream. `data`: undefined for one that is no JSON object. */
  frame(event: string | undefined, data: JsonObject | undefined): string;
  /** The whole answer of the turn, once its stream has ended; undefined: the stream ended with an error, which the client was sent. */
  answer(): JsonObject | undefined;
  called(use: ToolUse): string;
  done(done: ToolDone): string;
  asked(calls: readonly ToolUse[]): string;
  end(end: End): string;
}

/** A request that asks for tools of the gateway. */
export interface Opening {
  /** The request with its references replaced by content. */
  readonly json: JsonObject;
  /** As the client has sent it: answers echo it. */
  readonly clientJson: JsonObject;
  readonly offered: Offered;
  /** The exchange's id, of which ids of the run's own items are made. */
  readonly id: string;
  readonly streams: boolean;
  /** Streams are a JSON array, where the protocol has such a form. */
  readonly isArray: boolean;
}
