/** W3C trace context, level 1: the header `traceparent`. Pure. https://www.w3.org/TR/trace-context/#traceparent-header */
import { type SpanContext, TraceFlags } from '@opentelemetry/api';

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** The caller's span; undefined where there is none or it is malformed, and then a new trace begins. */
export function readTraceParent(text: string | undefined): SpanContext | undefined {
  const match = text === undefined ? null : form.exec(text);
  if (match === null) return undefined;
  const [, version, traceId, spanId, flags, more] = match as unknown as [
    string,
    string,
    string,
    string,
    string,
    string?,
  ];
  // Version ff is forbidden, version 00 has no further members; later ones may.
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
}

export function writeTraceParent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${(traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, '0')}`;
}
