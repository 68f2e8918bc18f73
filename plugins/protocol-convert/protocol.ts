/** What a protocol's folder offers to the relay: the seam between what is common and what is a protocol's own. Types. */
import type { Answer, Endpoint, Exchange } from '../../core/contract.ts';
import { defineFact } from '../../core/contract.ts';
import type { GatewayError } from '../../core/errors.ts';
import type { Services } from '../../core/prices.ts';
import type { RequestBody } from '../../core/request-body.ts';
import type { OnFrame } from '../../core/sse.ts';
import type { Call, Target } from '../../core/vocabulary.ts';
import type { Codec } from './codec.ts';
import type { Reading } from './counts.ts';
import type { ReadFrame } from './frame.ts';
import type { JsonObject } from './json.ts';
import type { LiveReport } from './report.ts';

export type { RequestBody };

export interface Protocol {
  /** `chat`, `responses`, `messages`, `gemini`: the name in `Call` and `Target`. */
  readonly name: string;
  /** The endpoint clients of this protocol call, for messages: `POST /v1/messages`. */
  readonly address: string;
  /** Where the upstream's key goes unless the provider says otherwise; `{key}` is replaced. */
  readonly auth: { readonly header: string; readonly value: string };
  /** Client headers that are handed on, beside content-type and accept. */
  readonly passedHeaders: readonly string[];
  /** Headers that the upstream needs although the client may not have sent them. */
  readonly defaultHeaders: Readonly<Record<string, string>>;
  readonly endpoints: readonly ProtocolEndpoint[];
  createTap(call: Call, options: TapOptions): Tap;
  /** For protocols whose upstreams may stream a JSON array: its reader, and the form for clients that asked for SSE. */
  readonly arrayStreams?: { createReader(onFrame: OnFrame): StreamReader; readonly reshape: Reshape };
  /** The protocol's error body for an answer that has not begun. */
  renderError(error: GatewayError, told: Pick<Exchange, 'id'>): Answer;
  /** The frames that tell a client of a running stream that it broke. */
  streamError(error: GatewayError, stream: BrokenStream): string;
  /** The frame that ends a stream, for clients of upstreams that forget it. Needed where a tap says `overdue`. */
  readonly streamEnd?: string;
  /** To and from the common tongue. */
  readonly codec: Codec;
}

/** Cuts a stream into frames; `FrameReader` for SSE. */
export interface StreamReader {
  feed(chunk: Uint8Array): void;
  end(): Buffer | undefined;
  /** Bytes of the frame that is not complete yet. */
  readonly pendingBytes: number;
}

/** What is known of a stream that breaks. */
export interface BrokenStream {
  readonly exchangeId: string;
  readonly call: Call;
  /** The upstream's id of the answer, if it has come. */
  readonly upstreamId: string | undefined;
  /** Unix seconds at which the request arrived. */
  readonly createdAt: number;
  /** The last frame that went out. */
  readonly lastFrame: Buffer | undefined;
  /** Members of the gateway's own error bodies: the error event carries them where its clients still read it as one. */
  readonly shape: ShapeMembers | undefined;
}

export type ShapeMembers = Readonly<Record<string, string>>;

/** An address of a protocol. `open` reads the request; it throws GatewayErrors that name the field. */
export interface ProtocolEndpoint extends Pick<Endpoint, 'path' | 'operation'> {
  open(body: RequestBody, exchange: Exchange): Opened;
}

/** What the opening of a request leaves for its handling. */
export interface Opened {
  readonly protocol: Protocol;
  readonly call: Call;
  /** Words the request for one target: path behind the base URL, and body. Byte-exact but for the named exceptions. */
  readonly prepare: (target: Target) => Prepared;
  /** Changes the answer's form where the client's dialect is not the upstream's. Absent: bytes as they come. */
  readonly reshape?: Reshape;
  /** The body as it reads; translation begins with it. */
  readonly json: JsonObject;
  /** The client's own request, which answers echo, where `json` is not that: all that it builds on is written out there. */
  readonly asked?: JsonObject;
  /** Protocol whose codec decodes it, where that is not the client's: such a request is never relayed. */
  readonly decodeWith?: string;
  /** The conversation is to be summarised: into the only item of an answer, or into an answer of the compaction endpoint. */
  readonly compaction?: 'item' | 'answer';
  /** Earlier answers that the request refers to; it cannot be handled before they were found. */
  readonly builtOn?: BuiltOn;
}
export const opened = defineFact<Opened>('opened request');

/** What a request refers to instead of sending it, and the request once that is known. */
export interface BuiltOn {
  readonly responseId: string | undefined;
  readonly itemIds: readonly string[];
  /** The gateway has it: `earlier` are the conversation's items up to the answer, `items` those that were referred to. */
  expanded(earlier: readonly JsonObject[], items: ReadonlyMap<string, JsonObject>): Opened;
  /** An upstream has it, in so many tokens: the request goes there as it came. */
  continued(tokens: number | undefined): Opened;
}

export interface Prepared {
  readonly path: string;
  readonly body: Uint8Array;
  /** Members that were removed because the provider does not take them. */
  readonly dropped: readonly string[];
  /** The usage frame was asked for by the gateway, not by the client: it is held back. */
  readonly withholdUsage?: boolean;
}

export interface Reshape {
  readonly streamType: string;
  /** Content type of a whole body; absent: the upstream's. */
  readonly wholeType?: string;
  whole(json: JsonObject): Uint8Array;
  /** `frame` wants each frame parsed; the tap is then asked with `payload`. */
  readonly readsFrames?: true;
  /** One frame of the upstream's stream in the client's form; undefined when nothing is left of it. `read`: as `readsFrames` says. */
  frame(raw: Buffer, read?: ReadFrame): Uint8Array | undefined;
  /** The answer is there: where its usage is found. */
  begin?(report: LiveReport): void;
  /** The upstream's answer is complete: what is still to be said. */
  finish?(): Uint8Array | undefined;
  /** Tells that the answer broke, in the client's protocol; absent: the upstream's is the client's. */
  fail?(error: GatewayError): Uint8Array | undefined;
  /** A stream error of the upstream's protocol in the client's form; absent: as it is. */
  error?(frames: string): string;
  /** A frame that this client skips while the stream is silent. */
  readonly idleFrame: Uint8Array | undefined;
}

export interface TapOptions {
  readonly withholdUsage: boolean;
}

/**
 * What a frame means to the relay. `pass`: nothing special. `last`: the protocol's end. `withhold`: not for this client.
 * `error`: it tells of an error, other frames may follow. `failed`: the protocol's end, and it tells of an error.
 * `overdue`: the answer is all there, and the protocol's end, which this frame is not, does not come.
 */
export type Verdict = 'pass' | 'last' | 'withhold' | 'error' | 'failed' | 'overdue';

/** Watches an answer go by, whole or in frames, and knows at any time what it has consumed. Keeps no bytes, changes none. */
export interface Tap {
  frame(raw: Buffer): Verdict;
  /** The same for a frame that was parsed anyway. */
  payload(json: JsonObject, event: string | undefined): Verdict;
  whole(json: JsonObject): void;
  /** The answer may end here: its terminal event came, or all that its protocol requires before a clean end. */
  readonly complete: boolean;
  /** The error that the stream or body told of: the vendor's payload. */
  readonly error: JsonObject | undefined;
  readonly reading: Reading;
  /** Bytes of answered text that were seen, in how many frames; and how many of them after the last report of usage. */
  readonly text: TextSeen;
  readonly upstreamId: string | undefined;
  readonly finish: string | undefined;
  /** Which services the upstream says it has granted. */
  readonly services?: Services | undefined;
  /** Ids of the answer's items, where the protocol's clients may refer to them later. */
  readonly itemIds?: readonly string[];
}

/** Answered text by size. */
export interface TextSeen {
  readonly bytes: number;
  readonly frames: number;
  readonly bytesUnreported: number;
  readonly framesUnreported: number;
  /** How often usage was reported. */
  readonly reports: number;
}
