/** Options of a relayed stream, and its ends: an empty body, data after the terminal event, the error of a stream that breaks off. */

import type { Exchange } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import { toGatewayError, UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import type { Call, SpendGuard } from '../../common/domain/calls.ts';
import type { ShapeMembers } from '../../common/domain/error-shape.ts';
import { recordVendorWords } from '../../common/domain/timeline.ts';
import { maxScrubbedBytes, scrubBytes } from '../../common/kit/scrub.ts';
import { formatFrame, keepAliveFrame } from '../../common/kit/sse.ts';
import { classifyFrame } from '../../common/kit/upstream-errors.ts';
import type { AnsweringProtocol, Reshape } from '../../common/wire/protocols.ts';
import type { UsageMeter } from '../../common/wire/usage-meter.ts';
import type { LiveReport } from '../metering/report.ts';

export interface RelayStreamOptions {
  readonly source: Iterator<Uint8Array> | AsyncIterator<Uint8Array>;
  readonly exchange: Exchange;
  readonly protocol: AnsweringProtocol;
  readonly call: Call;
  readonly reshape: Reshape | undefined;
  /** Members of the gateway's own error bodies, if it has its own shape. */
  readonly shapeOf: ((error: GatewayError) => ShapeMembers) | undefined;
  /** The upstream's key, which must not be sent to clients; called when an error comes. */
  readonly key: () => string | undefined;
  readonly usageMeter: UsageMeter;
  readonly report: LiveReport;
  readonly clock: Clock;
  /** For how long opening frames may delay the head, in milliseconds. */
  readonly heldMs: () => number;
  readonly meter: SpendGuard | undefined;
  /** A body that begins as an object is a document, even where frames of the protocol may begin so. */
  readonly prefersDocument: boolean;
  /** Called when the answer is complete, before its last frame is sent. */
  readonly ended: () => void;
}

/** Limits in bytes and time for the rest of a body; beyond them the socket is closed. */
const maxRestBytes = 64 * 1024;
const maxRestMs = 2_000;

type Source = AsyncIterator<Uint8Array> | Iterator<Uint8Array>;

export async function giveUp(source: Source): Promise<void> {
  try {
    await source.return?.();
  } catch {
    // The source closes in any case.
  }
}

/** The body from this chunk on. */
export async function* withRest(chunk: Uint8Array, source: Source): AsyncGenerator<Uint8Array> {
  yield chunk;
  for (let step = await source.next(); step.done !== true; step = await source.next()) yield step.value;
}

/** Resolves at the end of the body, when it breaks, or when reading on costs more than a new socket does. */
export async function drainBody(source: Source, clock: Clock): Promise<void> {
  const startedAt = clock.monotonic();
  let bytes = 0;
  try {
    for (let step = await source.next(); step.done !== true; step = await source.next()) {
      bytes += step.value.length;
      if (bytes > maxRestBytes || clock.monotonic() - startedAt > maxRestMs) break;
    }
  } catch {
    // The answer was complete; an error of the upstream's close does not matter.
  }
}

/** Gives the end of a relayed stream that its vendor leaves out. */
export function endOf({ protocol: { streamEnd } }: RelayStreamOptions): Pick<Reshape, 'finish'> {
  return { finish: () => (streamEnd === undefined ? undefined : Buffer.from(streamEnd)) };
}

/** What the client skips; undefined: nothing. */
export function idleFrameOf({ reshape, protocol }: RelayStreamOptions, lastFrame: Buffer | undefined) {
  const frame = reshape?.idleFrame ?? protocol.idleFrame?.(lastFrame) ?? keepAliveFrame;
  return frame === 'none' ? undefined : frame;
}

/** It keeps all of the packet that it came in, for as long as the stream is silent. */
export function keepsLastFrame({ protocol, reshape }: RelayStreamOptions): boolean {
  return protocol.ignoresLastFrame !== true && reshape?.fail === undefined;
}

/** Whether the answer is there, however its stream broke. A translation may reject a complete one. */
export function isAnswered({ error, complete }: UsageMeter, cause: unknown): boolean {
  return error !== undefined || (complete && !(cause instanceof UpstreamRefusal));
}

/** The error that the client gets. A running stream must not be retried automatically. */
export function streamBreakError(cause: unknown): GatewayError {
  const { kind, message, code } = toGatewayError(cause);
  return new GatewayError(kind, message, { shouldRetry: false, cause, ...(code === undefined ? {} : { code }) });
}

/** The upstream's own error frame, scrubbed; a long one is written again. */
export function cleanError(
  raw: Buffer,
  error: GatewayError,
  options: RelayStreamOptions,
  lastFrame: Buffer | undefined,
) {
  if (raw.length <= maxScrubbedBytes) return scrubBytes(raw, options.key());
  return Buffer.from(renderedError(error, options, lastFrame));
}

/** The upstream's error object within a frame. */
export function framedError({ usageMeter, key }: RelayStreamOptions): Uint8Array {
  return scrubBytes(Buffer.from(formatFrame(JSON.stringify(usageMeter.error))), key());
}

/** The frames of the upstream's protocol that report an error. */
export function renderedError(error: GatewayError, options: RelayStreamOptions, lastFrame: Buffer | undefined): string {
  const { exchange, protocol, call, usageMeter, shapeOf } = options;
  return protocol.streamError!(error, {
    exchangeId: exchange.id,
    call,
    upstreamId: usageMeter.upstreamId,
    createdAt: Math.floor(exchange.receivedAt / 1000),
    lastFrame,
    shape: shapeOf?.(error),
  });
}

/** The upstream's own error, read as in an answer of its own: it may name what belongs to the operator. */
export function refusalIn({ protocol, clock, key }: RelayStreamOptions, { error }: UsageMeter): UpstreamRefusal {
  return classifyFrame(protocol.readError?.(error!, {}) ?? error!, clock.now(), key());
}

/** An error behind the beginning of the answer is no refusal of the attempt: the vendor's words are recorded here. */
export function recordedRefusal(options: RelayStreamOptions, usageMeter: UsageMeter): UpstreamRefusal {
  const refusal = refusalIn(options, usageMeter);
  recordVendorWords(options.exchange, options.clock.now(), refusal.vendor);
  return refusal;
}
