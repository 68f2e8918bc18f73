/** The codec interface between each protocol and the canonical format. Types. */
import type { GatewayError } from '../../../core/contract/errors.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import type { Call } from '../domain/calls.ts';
import type { ShapeMembers } from '../domain/error-shape.ts';
import type { Traits } from '../domain/traits.ts';
import type { Target } from '../domain/upstreams.ts';
import type { DroppedParameters, Spelling } from './dropped-parameters.ts';
import type { ReplyEvents, ToolNames } from './events.ts';
import type { MediaPart, OpaqueState, Prompt } from './prompt.ts';
import type { Event, Reply, UsageSeen } from './reply.ts';

interface CallIdRule {
  /** Ids of calls have letters, digits, `-` and `_` alone in this protocol. Absent: any visible characters. */
  readonly plainCallIds?: true;
}

/**
 * The side of a protocol that faces its upstreams: encodes prompts, and decodes answers into the canonical format. Pure; throws
 * for a request that cannot be encoded.
 */
export interface UpstreamCodec extends CallIdRule {
  /** Media that this protocol's upstreams accept as bytes alone: URLs are fetched before `encodeRequest`. */
  readonly needsBytes: readonly MediaPart['kind'][];
  /** Encodes a request for an upstream. Throws what `DroppedParameters.refuse` throws. */
  encodeRequest(prompt: Prompt, context: EncodeContext): EncodedRequest;
  /** Decodes an upstream's stream frame by frame, and calls `events`. */
  createDecoder(events: ReplyEvents): ReplyDecoder;
  /** Where frames hold the text of a delta. The decoder keeps no object of a frame that holds one: it may be used again. */
  readonly deltaPaths?: readonly DeltaPath[];
  /** Decodes an upstream's whole answer, and calls `events`; ends with a `stop` for each choice. */
  decodeReply(json: JsonObject, events: ReplyEvents): void;
  /** Token counting of this protocol's upstreams; absent: not supported. */
  readonly counting?: {
    /** A request for the count, from the encoded request of the same prompt. */
    request(encoded: EncodedRequest): { readonly path: string; readonly body: JsonObject };
    /** undefined: the answer contains no count. */
    tokens(json: JsonObject): number | undefined;
  };
}

/** The names and indexes that lead from a frame's JSON to a member. */
export type DeltaPath = readonly string[];

/** The side of a protocol that faces its clients: decodes their requests, and encodes answers for them. Pure. */
export interface ClientCodec extends CallIdRule {
  readonly spelling: Spelling;
  /** The member of a client's request that holds the conversation. */
  readonly conversation: string;
  /** Decodes a client's request. Throws invalid_request with the field. */
  decodeRequest(json: JsonObject, context: DecodeContext): Prompt;
  /** A text in the place of media that answers of this protocol cannot hold; absent: the encoders place all. */
  mediaAsText?(media: MediaPart): string | undefined;
  /** Answers of this protocol hold no audio: decoders send its transcript as text. */
  readonly audioAsText?: true;
  /** Encodes a stream for a client. */
  createEncoder(context: ReplyContext): ReplyEncoder;
  /** Encodes a whole answer for a client. */
  encodeReply(reply: Reply, context: ReplyContext): JsonObject;
  /**
   * Fits an encoder's frames to the beginning of the vendor's stream that was relayed; absent: they fit, and the vendors' opaque
   * state has to be sealed to fit the protocol's members.
   */
  createContinuation?(): StreamContinuation;
  /** Whether a vendor's frame begins something that the decoder reports only with a later frame: both are sent together, or neither. Absent: no frame does. */
  beginsEarly?(json: JsonObject): boolean;
  /** The prefix of the gateway's sealed texts in requests of this protocol's clients. Absent: `sealPrefix`. */
  readonly sealMark?: string;
  /**
   * Removes the gateway's sealed texts from a relayed request, as its vendor could not read them; `open` returns the
   * content of one. Called only when the body contains one.
   */
  withoutSeals(json: JsonObject, open: OpenSeal): JsonObject;
}

/** Both sides of a protocol that clients and upstreams speak. */
export interface Codec extends UpstreamCodec, ClientCodec {}

/** Opens a sealed text if this gateway sealed it for this account. */
export type OpenSeal = (text: string) => OpaqueState | undefined;

export interface DecodeContext {
  readonly dropped: DroppedParameters;
  readonly open: OpenSeal;
  /** Called for opaque reasoning that was not sealed here and is dropped. */
  readonly onForeignReasoning?: () => void;
  /** How many items at the beginning of the input the client has not sent with this request. */
  readonly keptItems?: number | undefined;
}

/** What a codec is given beside the prompt. What it leaves out it names in `dropped`, or refuses by it. */
export interface EncodeContext {
  readonly target: Target;
  readonly traits: Traits;
  /** `makerOf(target)`: only opaque state of this maker is sent. */
  readonly maker: string;
  readonly dropped: DroppedParameters;
  /** Ids of calls that this vendor gave: it gets them back whatever they are made of. */
  readonly ownCallIds?: ReadonlySet<string> | undefined;
  readonly stream: boolean;
  /** The catalogue's bound on the answer, where it is known. */
  readonly maxOutputTokens: number | undefined;
}

/** A prompt in the protocol of an upstream. */
export interface EncodedRequest {
  /** Relative to the base URL, query included. */
  readonly path: string;
  readonly body: JsonObject;
  readonly responseMapping: ResponseMapping;
}

/** The facts about an encoded request that the conversion of its answer needs. */
export interface ResponseMapping {
  /** Tools by the name that they have at the upstream. Other tools keep their name. */
  readonly names: ToolNames;
  /** Upstream names of free-text tools that were declared as functions of one string, `input`. */
  readonly wrapped: ReadonlySet<string>;
  /** Upstream name of the forced tool that returns a structured answer as its input. */
  readonly answerTool?: string;
  /** Texts at which the gateway itself must stop the answer, as the upstream cannot. */
  readonly stop?: readonly string[];
  /** The client does not want reasoning, and the upstream cannot hide it. */
  readonly hideReasoning?: boolean;
}

/** Reads one answer of an upstream and passes its content to the `ReplyEvents` that it was made with. */
export interface ReplyDecoder {
  /** `event` is the SSE event name, if any. The usage meter handles errors and usage. */
  payload(json: JsonObject, event: string | undefined): void;
  /**
   * The upstream's answer has ended, by its terminal event or by closing after all required events: emits missing
   * events.
   */
  end(): void;
}

/** Frames for a client, as text; '' for none. */
export interface ReplyEncoder {
  event(event: Event): string;
  /** Everything up to the protocol's end; usage is final. Ends with a blank line. */
  finish(): string;
  /** Reports a failure and ends the answer in the protocol's format. */
  fail(error: GatewayError): string;
}

/** A relayed stream that an encoder continues: the indexes, ids and numbers of its frames. */
export interface StreamContinuation {
  /** This frame repeats content that a later one completes: both are sent together, or neither. */
  waits(json: JsonObject): boolean;
  /** A frame of the vendor that the client gets. */
  sent(json: JsonObject): void;
  /** The encoder's frames as they fit; without those that the client has got from the vendor. */
  fit(frames: string): string;
  /** The whole answer that the client has got, as JSON text, where the protocol refers to earlier ones. */
  readonly response?: string | undefined;
}

/** The data and functions that an encoder may use. */
export interface ReplyContext {
  readonly exchangeId: string;
  readonly call: Call;
  /** The client has got the beginning from the vendor: ids stay as they are, calls are streamed. */
  readonly continues?: true;
  /** The client's request, as parsed, without its conversation. */
  readonly request: JsonObject;
  /** The query string: in one protocol it determines the format of a stream. */
  readonly query?: URLSearchParams;
  /** Unix seconds at which the request arrived. */
  readonly createdAt: number;
  /** The current time in Unix seconds. */
  now(): number;
  /** Seals a vendor's opaque state for the client. */
  seal(opaqueState: string): string;
  /** The usage so far; final when the answer is complete. */
  usage(): UsageSeen;
  /** Members of the gateway's own error bodies, if it has its own shape. */
  shapeOf?: ((error: GatewayError) => ShapeMembers) | undefined;
  /**
   * Called with the whole answer as JSON text when it has ended, by encoders of protocols with references to earlier
   * answers.
   */
  onResponse?: ((response: string) => void) | undefined;
}

/** Encodes an answer for a client. */
export type ReplyCodec = Pick<Codec, 'audioAsText' | 'mediaAsText' | 'createEncoder' | 'encodeReply'>;
