/** The interface between the relay and each protocol's folder. Types. */

import type { Endpoint, Exchange } from '../../../core/contract/contract.ts';
import { defineContextKey } from '../../../core/contract/contract.ts';
import type { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import type { RequestBody } from '../../../core/json/request-body.ts';
import type { Call } from '../../common/domain/calls.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import type { OnFrame } from '../../common/kit/sse.ts';
import type { WireHeaders } from '../../common/kit/upstream-request.ts';
import type { Codec } from '../canonical/codec.ts';
import type { LiveReport } from '../metering/report.ts';
import type { UsageMeter, UsageMeterOptions } from '../metering/usage-meter.ts';
import type { ShapeMembers } from '../request/shapes.ts';
import type { VendorId } from '../request/vendor-ids.ts';
import type { ReadFrame } from './frame.ts';

export type { RequestBody };

export interface Protocol extends WireHeaders {
  /** `chat`, `responses`, `messages`, `gemini`: the name in `Call` and `Target`. */
  readonly name: string;
  /** The endpoint that clients of this protocol call, for messages: `POST /v1/messages`. */
  readonly address: string;
  readonly endpoints: readonly ProtocolEndpoint[];
  /** Endpoints of its clients that are answered without an upstream. */
  readonly ownEndpoints?: readonly Endpoint[];
  createUsageMeter(call: Call, options: UsageMeterOptions): UsageMeter;
  /**
   * For protocols with upstreams that may stream a JSON array: its reader, and the response mapping for clients that
   * asked for SSE.
   */
  readonly arrayStreams?: { createReader(onFrame: OnFrame): StreamReader; readonly reshape: Reshape };
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
  /** Encoder and decoder of the canonical format. */
  readonly codec: Codec;
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
export interface ProtocolEndpoint extends Pick<Endpoint, 'path' | 'operation' | 'charges'> {
  open(body: RequestBody, exchange: Exchange): Opened;
}

/** The opened request, as its handling needs it. */
export interface Opened {
  readonly protocol: Protocol;
  readonly call: Call;
  /**
   * Encodes the request for one target: path relative to the base URL, and body. Byte-exact but for the named
   * exceptions.
   */
  readonly prepare: (target: Target) => Prepared;
  /** Converts the answer where the client's dialect differs from the upstream's. Absent: bytes as they come. */
  readonly reshape?: Reshape;
  /** The parsed body; translation begins with it. */
  readonly json: JsonObject;
  /** The client's own request, which answers echo, where `json` differs from it because references were expanded. */
  readonly clientJson?: JsonObject;
  /** The protocol that decodes the request, where that is not the client's: such a request is never relayed. */
  readonly decodeWith?: string;
  /**
   * The conversation is to be summarised: into the only item of an answer, or into an answer of the compaction
   * endpoint.
   */
  readonly compaction?: 'item' | 'answer';
  /** Ids of vendor objects in the request, after their check; absent: it contains none. */
  readonly vendorIds?: CheckedIds;
  /** Earlier answers that the request refers to; they must be found before the request is handled. */
  readonly builtOn?: BuiltOn;
}
export const opened = defineContextKey<Opened>('opened request');

/** Ids of files, containers and other vendor objects, by the calling account's right to use them. */
export interface CheckedIds {
  /** Issued to this account by a vendor. */
  readonly known: ReadonlySet<string>;
  /** Not known as issued to this account: they go only to providers that accept unchecked ids. */
  readonly unknown: readonly VendorId[];
}

/** The references of a request, and the request after they were resolved. */
export interface BuiltOn {
  readonly responseId: string | undefined;
  readonly itemIds: readonly string[];
  /** The gateway stores it: `earlier` are the conversation's items up to the answer, `items` the referenced ones. */
  expanded(earlier: readonly JsonObject[], items: ReadonlyMap<string, JsonObject>): Opened;
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
  readonly wholeType?: string;
  whole(json: JsonObject): Uint8Array;
  /** `frame` needs each frame parsed; the usage meter then gets `payload`. */
  readonly readsFrames?: true;
  /** One frame of the upstream's stream in the client's format; undefined for no output. `read`: see `readsFrames`. */
  frame(raw: Buffer, read?: ReadFrame): Uint8Array | undefined;
  /** The answer has begun: sets the source of its usage. */
  begin?(report: LiveReport): void;
  /** The upstream's answer is complete: returns the remaining output. */
  finish?(): Uint8Array | undefined;
  /** Reports a failure in the client's protocol; absent: the upstream's protocol is the client's. */
  fail?(error: GatewayError): Uint8Array | undefined;
  /** A stream error of the upstream's protocol in the client's format; absent: unchanged. */
  error?(frames: string): string;
  /** A frame that this client skips while the stream is silent. */
  readonly idleFrame: Uint8Array | undefined;
}
