/** What a protocol's folder offers to translation: its words for the common tongue, both ways. Types. */
import type { GatewayError } from '../../core/errors.ts';
import type { Traits } from '../../core/traits.ts';
import type { Call, Target } from '../../core/vocabulary.ts';
import type { Keepsake, MediaPart, Prompt } from './canon.ts';
import type { JsonObject } from './json.ts';
import type { Losses, Spelling } from './losses.ts';
import type { ShapeMembers } from './protocol.ts';
import type { Event, Reply, UsageSeen } from './reply.ts';
import type { ReplyEvents, ToolNames } from './reply-events.ts';

/** A protocol's words for the common tongue: requests and answers, both ways. Pure; a request that cannot be worded throws. */
export interface Codec {
  readonly spelling: Spelling;
  /** Reads a client's request. Throws invalid_request that names the field. */
  decodeRequest(json: JsonObject, context: DecodeContext): Prompt;
  /** Media that this protocol's upstreams take as bytes alone: those given by URL are fetched before `encodeRequest`. */
  readonly needsBytes: readonly MediaPart['kind'][];
  /** Words a request for an upstream. Throws what `Losses.refuse` throws. */
  encodeRequest(prompt: Prompt, context: EncodeContext): EncodedRequest;
  /** Reads an upstream's stream: one parsed frame after the other, told to `events`. */
  createDecoder(events: ReplyEvents): ReplyDecoder;
  /** Reads an upstream's whole answer, told to `events`; ends with a `stop` for each choice. */
  decodeReply(json: JsonObject, events: ReplyEvents): void;
  /** Words a stream for a client. */
  createEncoder(context: ReplyContext): ReplyEncoder;
  /** Words a whole answer for a client. */
  encodeReply(reply: Reply, context: ReplyContext): JsonObject;
  /** What the gateway's own sealed texts begin with in requests of this protocol's clients. Absent: `gw1.`, as they are sealed. */
  readonly sealMark?: string;
  /**
   * A relayed request without the gateway's own sealed texts, which its vendor could not read: `open` tells what one holds.
   * Asked only when the body holds one.
   */
  withoutSeals(json: JsonObject, open: OpenSeal): JsonObject;
  /** How this protocol's upstreams count a prompt's tokens; absent: they cannot. */
  readonly counting?: {
    /** From the encoded request of the same prompt. */
    request(encoded: EncodedRequest): { readonly path: string; readonly body: JsonObject };
    /** undefined: the answer tells no count. */
    tokens(json: JsonObject): number | undefined;
  };
}

/** What a sealed text holds, if this gateway sealed it for this account and not too long ago. */
export type OpenSeal = (text: string) => Keepsake | undefined;

export interface DecodeContext {
  readonly losses: Losses;
  readonly open: OpenSeal;
}

export interface EncodeContext {
  readonly target: Target;
  readonly traits: Traits;
  /** `makerOf(target)`: whose keepsakes may be given back. */
  readonly maker: string;
  readonly losses: Losses;
  readonly stream: boolean;
  /** The catalogue's bound on the answer, where it is known. */
  readonly maxOutputTokens: number | undefined;
}

export interface EncodedRequest {
  /** Behind the base URL, query included. */
  readonly path: string;
  readonly body: JsonObject;
  readonly way: WayBack;
}

/** What the answer's way back must know of the request's way there. */
export interface WayBack {
  /** Tools by the name that they have at the upstream. Tools that are not in it keep their name. */
  readonly names: ToolNames;
  /** Upstream names of free-text tools that were declared as functions of one string, `input`. */
  readonly wrapped: ReadonlySet<string>;
  /** Upstream name of the forced tool whose input stands for a structured answer. */
  readonly answerTool?: string;
  /** Texts at which the gateway itself must stop the answer, as the upstream cannot. */
  readonly stop?: readonly string[];
  /** The client does not want to read reasoning, and the upstream cannot hide it. */
  readonly hideReasoning?: boolean;
}

export interface ReplyDecoder {
  /** `event` is the SSE event name, if any. Errors and usage are the tap's affair, not told here. */
  payload(json: JsonObject, event: string | undefined): void;
  /** The upstream has ended its answer, by its terminal event or by closing after all that it must say: tell what is missing. */
  end(): void;
}

/** Frames for a client, as text; '' where nothing is to be said yet. */
export interface ReplyEncoder {
  event(event: Event): string;
  /** Everything up to the protocol's end; usage is known now. Ends with a blank line. */
  finish(): string;
  /** Tells that the answer broke, and ends it in the protocol's way. */
  fail(error: GatewayError): string;
}

/** What an encoder may know and need. */
export interface ReplyContext {
  readonly exchangeId: string;
  readonly call: Call;
  /** The client's request, as parsed. */
  readonly request: JsonObject;
  /** What stands behind the path: in one protocol the form of a stream follows from it. */
  readonly query?: URLSearchParams;
  /** Unix seconds at which the request arrived. */
  readonly createdAt: number;
  /** Makes of a vendor's keepsake what may be handed to the client. */
  seal(keepsake: string): string;
  /** What is known of the usage now; complete when the answer is. */
  usage(): UsageSeen;
  /** Members of the gateway's own error bodies, if it has a shape of its own. */
  shapeOf?: ((error: GatewayError) => ShapeMembers) | undefined;
  /** Told the whole answer as JSON text when it has ended, by encoders of protocols whose clients may come back to it. */
  onResponse?: ((response: string) => void) | undefined;
}
