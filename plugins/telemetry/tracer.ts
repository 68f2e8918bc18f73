/** Spans: one for each request, as a child of its caller's, and one for each attempt at an upstream. */
import {
  type Context,
  context,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { type Exchange, type Outcome, upstreamRequest } from '../../core/contract/contract.ts';
import { type Attempt, attempts } from '../common/domain/calls.ts';
import { model } from '../common/domain/models.ts';
import { isGeneration, operationOf, type SpanSettings, spanAttributes } from './attributes.ts';

export interface Tracing {
  /** To be ended with the exchange; undefined: this request is not traced. */
  begin(exchange: Exchange): ((outcome: Outcome) => void) | undefined;
}

/** `passOn`: requests to upstreams carry the trace. */
export function createTracing(tracer: Tracer, passOn: boolean, settings: SpanSettings): Tracing {
  return {
    begin(exchange) {
      const parent = readTraceParent(exchange.request.headers['traceparent']);
      const above: Context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
      const options = { kind: SpanKind.SERVER, startTime: exchange.receivedAt };
      const span = tracer.startSpan(exchange.endpoint.operation, options, above);
      if (!span.isRecording()) return undefined;
      if (passOn) {
        const told = writeTraceParent(span.spanContext());
        exchange.beforeSend((sending) => {
          sending.get(upstreamRequest).headers['traceparent'] = told;
        });
      }
      return (outcome) => endSpan({ tracer, span, settings }, exchange, outcome);
    },
  };
}

interface Ending {
  readonly tracer: Tracer;
  readonly span: Span;
  readonly settings: SpanSettings;
}

function endSpan({ tracer, span, settings }: Ending, exchange: Exchange, outcome: Outcome): void {
  const within = trace.setSpan(context.active(), span);
  for (const attempt of exchange.find(attempts) ?? [])
    attemptSpan(tracer, attempt, within, { isGeneration: isGeneration(exchange), id: exchange.id });
  const known = exchange.find(model);
  if (known !== undefined) span.updateName(`${operationOf(exchange, settings.convention)} ${known.id}`);
  span.setAttributes(spanAttributes(exchange, outcome, settings));
  // A client's own mistake is no failure of the gateway.
  if (outcome.kind === 'failed' || outcome.status >= 500)
    span.setStatus({ code: SpanStatusCode.ERROR, ...(outcome.error && { message: outcome.error.kind }) });
  span.end(exchange.receivedAt + outcome.totalMs);
}

function attemptSpan(
  tracer: Tracer,
  attempt: Attempt,
  within: Context,
  of: { isGeneration: boolean; id: string },
): void {
  const { number, provider, model: name, protocol, result, status, startedAt, durationMs, hedge, lost } = attempt;
  const attributes = {
    ...(of.isGeneration
      ? { 'gen_ai.provider.name': provider, 'gen_ai.request.model': name }
      : { 'gateway.provider': provider, 'gateway.model': name }),
    'gateway.request_id': of.id,
    'gateway.protocol': protocol,
    'gateway.attempt': number,
    'gateway.attempt.result': lost === true ? 'lost' : result,
    ...(hedge === true && { 'gateway.attempt.hedge': true }),
    ...(status !== undefined && { 'http.response.status_code': status }),
  };
  const span = tracer.startSpan(`attempt ${name}`, { kind: SpanKind.CLIENT, startTime: startedAt, attributes }, within);
  if (result !== 'answered' && lost !== true) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end(startedAt + (durationMs ?? 0));
}

// W3C trace context, level 1: https://www.w3.org/TR/trace-context/#traceparent-header
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
