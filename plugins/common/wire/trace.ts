/** The trace of a request, as W3C trace context has it, and the spans of work that outlives the request that ordered it. */
import { defineContextKey, defineService, type Exchange } from '../../../core/contract/contract.ts';
import type { Attempt } from '../domain/calls.ts';

export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 of them. */
  readonly spanId: string;
  /** 1: sampled. */
  readonly traceFlags: number;
}

/** The span of the exchange, or the caller's where the gateway sends none. Set by the plugin that traces. */
export const trace = defineContextKey<TraceContext>('trace');

/** The order of which an exchange is a part, such as a line of a batch: its span is linked to the order's. */
export const orderTrace = defineContextKey<TraceContext>('order trace');

// W3C trace context, level 1: https://www.w3.org/TR/trace-context/#traceparent-header
const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const sampled = 1;

/** undefined: there is none, or it is malformed. */
export function readTraceParent(text: string | null | undefined): TraceContext | undefined {
  const match = text === undefined || text === null ? null : form.exec(text);
  if (match === null) return undefined;
  const [, version, traceId, spanId, flags, more] = match as unknown as [
    ...[string, string, string, string, string],
    string?,
  ];
  // Version ff is forbidden, version 00 has no further members; later ones may.
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & sampled };
}

export function writeTraceParent({ traceId, spanId, traceFlags }: TraceContext): string {
  return `00-${traceId}-${spanId}-${(traceFlags & sampled).toString(16).padStart(2, '0')}`;
}

/** As rows keep it; null: the request is not traced. */
export function storedTrace(exchange: Exchange): string | null {
  const of = exchange.find(trace);
  return of === undefined ? null : writeTraceParent(of);
}

/** Who asked for work that is done after the request or beside it, and in which trace. */
export interface OrderedBy {
  readonly requestId?: string | undefined;
  readonly accountId?: string | undefined;
  readonly keyId?: string | undefined;
  /** As W3C trace context. */
  readonly trace?: string | null | undefined;
}

/** Its fields in log lines about the work. */
export function orderFields({ requestId, accountId, keyId, trace: text }: OrderedBy): Record<string, string> {
  const traceId = readTraceParent(text)?.traceId;
  return {
    ...(requestId !== undefined && { request_id: requestId }),
    ...(accountId !== undefined && { account_id: accountId }),
    ...(keyId !== undefined && { key_id: keyId }),
    ...(traceId !== undefined && { trace_id: traceId }),
  };
}

/** A call of a vendor that no exchange makes: of a task, or of a batch or file at the vendor. */
export interface VendorCallSpan {
  /** Few values: `create_task`, `upload_file`. */
  readonly operation: string;
  readonly isGeneration: boolean;
  readonly attempt: Pick<
    Attempt,
    'number' | 'provider' | 'model' | 'protocol' | 'result' | 'status' | 'startedAt' | 'durationMs'
  >;
}

/** Spans of such calls, linked to the span of the order. Provided where traces are sent. */
export const orderSpans = defineService<{ add(order: OrderedBy, call: VendorCallSpan): void }>('order spans');
