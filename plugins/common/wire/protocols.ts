/**
 * Wire protocols: the extension point, and what a protocol consists of. A plugin adds a `WireProtocol` to call upstreams of
 * another format; with a `Protocol` the gateway's own clients may speak it too.
 */

import {
  defineContextKey,
  defineExtensionPoint,
  defineService,
  type Endpoint,
  type Exchange,
} from '../../../core/contract/contract.ts';
import type { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer, Headers } from '../../../core/contract/message.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import type { RequestBody } from '../../../core/json/request-body.ts';
import type { ClientCodec, Codec, ReplyCodec, UpstreamCodec } from '../canonical/codec.ts';
import type { Prompt } from '../canonical/prompt.ts';
import type { UsageSeen } from '../canonical/reply.ts';
import type { Call } from '../domain/calls.ts';
import type { ShapeMembers } from '../domain/error-shape.ts';
import type { Traits } from '../domain/traits.ts';
import type { Target } from '../domain/upstreams.ts';
import type { MemberChanges } from '../kit/body-edits.ts';
import type { OnFrame } from '../kit/sse.ts';
import type { WireHeaders } from '../kit/upstream-request.ts';
import type { ReadFrame } from './frame.ts';
import type { IsOpening } from './opening-frames.ts';
import type { UsageMeter, UsageMeterOptions, Verdict } from './usage-meter.ts';

export type { RequestBody };

/** A protocol that is spoken with an upstream. */
export interface WireProtocol extends WireHeaders {
  /** The name under `speaks` of a provider, and in `Call` and `Target`. */
  readonly name: string;
  /** Path, below the base URL, of the endpoint that is called most: `/chat/completions`. */
  readonly path: string;
  /** Its upstreams get requests of its own clients alone: those of other protocols are never translated for them. */
  readonly servesOwnClients?: true;
  /** A request gets one answer: there is no member for several. */
  readonly answersOnce?: true;
  /** Encodes requests with their paths, and decodes answers. */
  readonly codec: UpstreamCodec;
  createUsageMeter(call: Call, options: UsageMeterOptions): UsageMeter;
  /**
   * Whether this frame at the beginning of a stream holds nothing yet that a client can use: no word, reasoning, item or call. Absent:
   * every frame holds something.
   */
  readonly isOpening?: IsOpening;
  /** How streams are cut into frames where they are no server-sent events. */
  readonly framing?: Framing;
  /**
   * The body of an error answer, or an error inside a stream, in the form `{"error": {"message": …, "code": …}}`, with a code of `upstream-errors.ts` or a
   * status as a number; absent: the body has a form that is read anyway.
   */
  readError?(body: JsonObject, headers: Headers): JsonObject;
}

/** A protocol that clients of the gateway speak too: to upstreams of the same protocol they are relayed byte for byte. */
export interface Protocol extends WireProtocol {
  /** The endpoint that clients of this protocol call, for messages: `POST /v1/messages`. */
  readonly address: string;
  readonly endpoints: readonly ProtocolEndpoint[];
  /** Endpoints of its clients that are answered without an upstream. */
  readonly ownEndpoints?: readonly Endpoint[];
  /** Throws GatewayErrors for a request of this protocol that the target cannot serve, relayed or translated. */
  checkTarget?(opened: Pick<Opened, 'json' | 'call'>, target: Target): void;
  /** The protocol's error body for an answer that has not begun. */
  renderError(error: GatewayError, exchange: Pick<Exchange, 'id'>): Answer;
  /** The frames that report an error in a running stream. */
  streamError(error: GatewayError, stream: BrokenStream): string;
  /**
   * The frame that ends a stream, for clients of upstreams that omit it. Required where a usage meter returns
   * `overdue`.
   */
  readonly streamEnd?: string;
  /**
   * What its clients skip while a stream is silent, behind this frame if it was relayed as it came; absent: a comment and a blank
   * line.
   */
  idleFrame?(lastFrame?: Buffer): Uint8Array;
  /** `idleFrame` and `streamError` do not read it, so that a silent stream need not keep it. */
  readonly ignoresLastFrame?: true;
  /** Paths of the member that names the model in whole answers and in frames of streams; absent: answers name none. */
  readonly modelPlaces?: readonly (readonly string[])[];
  /** Members of a request that its answers' object repeats. */
  readonly repeats?: readonly string[];
  /** The call as one of a model that makes images; absent: clients of this protocol call no such models. */
  imageCall?(call: Call, json: JsonObject): Call;
  /** The items of a request, where the gateway keeps answers that clients come back to; absent: it keeps none. */
  inputItems?(json: JsonObject): readonly unknown[];
  /** How clients get a summary of their conversation; absent: they cannot ask for one. */
  readonly compaction?: Compaction;
  /** Encoder and decoder of the canonical format. */
  readonly codec: Codec;
}

/** An answer that is a summary of its conversation, sealed for the client. */
export interface Compaction {
  /** The seal's maker, by which the summary is known when it comes back. */
  readonly maker: string;
  /** Takes the place of the client's codec. `failed`: a stream ends with an error because no whole summary came. */
  codec(
    form: NonNullable<Opened['compaction']>,
    json: JsonObject,
    seal: (summary: string) => string,
    failed: (error: GatewayError) => void,
  ): ReplyCodec;
}

/** The protocol of an answer; errors of a running stream are rendered by its client's protocol where that is another. */
export type AnsweringProtocol = WireProtocol &
  Partial<Pick<Protocol, 'streamError' | 'streamEnd' | 'idleFrame' | 'ignoresLastFrame' | 'modelPlaces' | 'repeats'>>;

/**
 * Another protocol as a vendor speaks it at addresses of its own: the same bodies but for `members`, and the same streams but for
 * `framing`. Clients of the other protocol are relayed to it. Its codec and usage meter are those of the other protocol, so a plugin
 * needs no access to another plugin's code.
 */
export interface VariantProtocol extends WireHeaders, Pick<WireProtocol, 'name' | 'path' | 'readError'> {
  /** Name of the other protocol. */
  readonly variantOf: string;
  /** The path of a request that the other protocol sends to `path`. The query of clients is not passed on. */
  address(path: string, request: { readonly model: string; readonly stream: boolean }): string;
  /** Top-level members that differ in each request, or a function of the request. */
  readonly members?: MemberChanges | ((request: VariantRequest) => MemberChanges);
  /** How streams are cut into frames of the other protocol, where they are no server-sent events; its `reshape` hands these on. */
  readonly framing?: Framing;
  /** Counting of tokens, from a request as this protocol sends it; absent: not supported. */
  readonly counting?: UpstreamCodec['counting'];
}

/** A request of the other protocol, for a variant of it. */
export interface VariantRequest {
  readonly json: JsonObject;
  /** The client's headers, where it speaks the other protocol; otherwise empty. */
  readonly headers: Readonly<Headers>;
  readonly traits: Traits;
}

/** The protocols that can be spoken with upstreams. */
export const wireProtocols = defineExtensionPoint<WireProtocol | Protocol | VariantProtocol>('wire protocols');

/** Whether clients of the gateway speak it too. */
export function hasClients(protocol: WireProtocol | Protocol): protocol is Protocol {
  return 'endpoints' in protocol;
}

/** A form of streams other than server-sent events. */
export interface Framing {
  /** Whether a stream with this first byte, spaces left out, has this form. Others are server-sent events. */
  begins(byte: string): boolean;
  createReader(onFrame: OnFrame): StreamReader;
  /** The response mapping for relayed clients that asked for server-sent events. */
  readonly reshape?: Reshape;
}

/** An id of an object at a vendor, in a request. */
export interface VendorId {
  readonly id: string;
  /** Its path, such as `input[0].content[1].file_id`. */
  readonly field: string;
  /** The kind of object, for messages. */
  readonly kind: string;
  /** It belongs to an earlier answer that the client sends back, so the request makes sense without it. */
  readonly isEcho: boolean;
}

/** Cuts a stream into frames; `FrameReader` for SSE. */
export interface StreamReader {
  feed(chunk: Uint8Array): void;
  end(): Buffer | undefined;
  /** Bytes of the incomplete frame. */
  readonly pendingBytes: number;
}

/** The data of a stream that breaks. */
export interface BrokenStream {
  readonly exchangeId: string;
  readonly call: Call;
  /** The upstream's id of the answer, if it was received. */
  readonly upstreamId: string | undefined;
  /** Unix seconds at which the request arrived. */
  readonly createdAt: number;
  /** The last frame that was sent. */
  readonly lastFrame: Buffer | undefined;
  /** Members of the gateway's own error bodies: the error event carries them where clients can still parse it. */
  readonly shape: ShapeMembers | undefined;
}

/** An endpoint of a protocol. `open` reads the request; it throws GatewayErrors with the field. */
export interface ProtocolEndpoint extends Pick<Endpoint, 'path' | 'operation' | 'charges' | 'describes'> {
  open(body: RequestBody, exchange: Exchange): Opened;
}

/** The opened request, as its handling needs it. */
export interface Opened {
  readonly protocol: Protocol;
  readonly call: Call;
  /**
   * Encodes the request for one target: path relative to the base URL, and body. Byte-exact but for the named
   * exceptions. `members`: what the target's protocol changes besides.
   */
  readonly prepare: (target: Target, members?: MemberChanges) => Prepared;
  /** Converts the answer where the client's dialect differs from the upstream's. Absent: bytes as they come. */
  readonly reshape?: Reshape;
  /** The parsed body; translation begins with it. */
  readonly json: JsonObject;
  /** The client's own request, which answers echo, where `json` differs from it because references were expanded. */
  readonly clientJson?: JsonObject;
  /** How many items at the beginning of the input come from earlier answers, and not from the client's own request. */
  readonly keptItems?: number;
  /** The prompt as transforms have changed it, which is sent instead of `json`; absent: they changed nothing, or have not run yet. */
  readonly transformed?: Prompt;
  /** The protocol that decodes the request, where that is not the client's: such a request is never relayed. */
  readonly decodeWith?: { readonly name: string; readonly codec: ClientCodec };
  /**
   * The conversation is to be summarised: into the only item of an answer, or into an answer of the compaction
   * endpoint.
   */
  readonly compaction?: 'item' | 'answer';
  /** Ids of vendor objects in the request, after their check; absent: it contains none. */
  readonly vendorIds?: CheckedIds;
  /** Files that this target does not get were left out of the request already. */
  readonly hasLeftOut?: true;
  /** Earlier answers that the request refers to; they must be found before the request is handled. */
  readonly builtOn?: BuiltOn;
  /** The conversation that the gateway keeps and the answer becomes part of. */
  readonly conversation?: KeptConversation;
}
export const opened = defineContextKey<Opened>('opened request');

/** Keeps answers that a plugin has made of several, so that clients can continue them. */
export interface AnswerKeeper {
  /** The function that gets the final answer as JSON text. undefined: the client does not want it kept, or cannot refer to it. */
  recorder(exchange: Exchange, request: Opened): ((answer: string) => void) | undefined;
}

export const answerKeeper = defineService<AnswerKeeper>('answer keeper');

/** Ids of files, containers and other vendor objects, by the calling account's right to use them. */
export interface CheckedIds {
  /** Issued to this account by a vendor. */
  readonly known: ReadonlySet<string>;
  /** Not known as issued to this account: they go only to providers that accept unchecked ids. */
  readonly unknown: readonly VendorId[];
  /**
   * Ids that only earlier turns and tool results name, with the key that can read each (undefined: none is known). Texts take their
   * place for other keys. Absent: there are none.
   */
  readonly held?: ReadonlyMap<string, { readonly provider: string; readonly credential: string } | undefined>;
}

/** A conversation of the gateway as a call continues it: one object for all attempts of the call. */
export interface KeptConversation {
  readonly id: string;
  /** The call's own input, which becomes part of the conversation with the answer. */
  readonly input: readonly unknown[];
}

/** The references of a request, and the request after they were resolved. */
export interface BuiltOn {
  readonly responseId: string | undefined;
  /** What the request's `conversation` names. */
  readonly conversationId: string | undefined;
  readonly itemIds: readonly string[];
  /**
   * The gateway stores it: `earlier` are the conversation's items up to the answer, `items` the referenced ones. `conversation`:
   * the request names one that the gateway keeps.
   */
  expanded(
    earlier: readonly JsonObject[],
    items: ReadonlyMap<string, JsonObject>,
    conversation?: KeptConversation,
  ): Opened;
  /** An upstream stores it, with this number of tokens: the request goes there as it came. */
  continued(tokens: number | undefined): Opened;
}

export interface Prepared {
  readonly path: string;
  readonly body: Uint8Array;
  /** Members that were removed because the provider does not accept them. */
  readonly dropped: readonly string[];
  /** The gateway asked for the usage frame, not the client: it is withheld. */
  readonly withholdUsage?: boolean;
}

export interface Reshape {
  readonly streamType: string;
  /** Content type of a whole body; absent: the upstream's. */
  readonly wholeType?: string | undefined;
  /** `body`: the bytes of `json`. */
  whole(json: JsonObject, body: Uint8Array): Uint8Array | Promise<Uint8Array>;
  /** The client wants one body: the one that all frames form, and gets none of their output. */
  readonly gathered?: (() => Uint8Array | Promise<Uint8Array>) | undefined;
  /** Parses a frame, for `frame` and for the usage meter; absent: `frame` needs none. */
  read?(raw: Buffer): ReadFrame | undefined;
  /** One frame of the upstream's stream in the client's format; undefined for no output, or for what `flush` returns. */
  frame(raw: Buffer, read?: ReadFrame, verdict?: Verdict): Uint8Array | undefined;
  /** Output of the frames so far that no other method has returned. */
  flush?(): Uint8Array | undefined;
  /** What the output waits for: no more is read until then, and `flush` is called behind it. Rejects: the answer ends by this error. */
  readonly pending?: Promise<void> | undefined;
  /** The answer ends by an error: what waits is dropped. */
  abandon?(): void;
  /** A comment of the upstream's stream; absent: left out. */
  comment?(raw: Buffer): Uint8Array | undefined;
  /** The stream has a form of its own, which this converts to the client's. */
  adopt?(framing: Reshape | undefined): void;
  /** A transform has ended the answer: the error is the gateway's, even if the upstream's answer is complete. */
  readonly hasRefused?: boolean;
  /** The answer has begun: sets the source of its usage. */
  begin?(report: UsageSeen): void;
  /** The upstream's answer is complete: returns the remaining output. */
  finish?(): Uint8Array | undefined;
  /** Reports a failure in the client's protocol; absent: the upstream's protocol is the client's. */
  readonly fail?: ((error: GatewayError) => Uint8Array | undefined) | undefined;
  /** A stream error of the upstream's protocol in the client's format; absent: unchanged. */
  error?(frames: string): string;
  /** What this client skips while the stream is silent; absent: what its protocol says; `none`: nothing can be sent. */
  readonly idleFrame?: Uint8Array | 'none' | undefined;
}
