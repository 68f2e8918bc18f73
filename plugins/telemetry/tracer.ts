/** Spans: one for each request, as a child of its caller's, and one for each attempt at an upstream. */
import {
  type Context,
  context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { type Exchange, type Outcome, upstreamRequest } from '../../core/contract.ts';
import { type Attempt, attempts, model } from '../../core/vocabulary.ts';
import { operationOf, spanAttributes } from './attributes.ts';
import { readTraceParent, writeTraceParent } from './trace-parent.ts';

export interface Tracing {
  /** To be ended with the exchange; undefined: this request is not traced. */
  begin(exchange: Exchange): ((outcome: Outcome) => void) | undefined;
}

/** `passOn`: upstreams are told the trace. */
export function createTracing(tracer: Tracer, passOn: boolean): Tracing {
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
      return (outcome) => endSpan(tracer, span, exchange, outcome);
    },
  };
}

function endSpan(tracer: Tracer, span: Span, exchange: Exchange, outcome: Outcome): void {
  const within = trace.setSpan(context.active(), span);
  for (const attempt of exchange.find(attempts) ?? []) attemptSpan(tracer, attempt, within);
  const known = exchange.find(model);
  if (known !== undefined) span.updateName(`${operationOf(exchange)} ${known.id}`);
  span.setAttributes(spanAttributes(exchange, outcome));
  // A client's own mistake is no failure of the gateway.
  if (outcome.kind === 'failed' || outcome.status >= 500)
    span.setStatus({ code: SpanStatusCode.ERROR, ...(outcome.error && { message: outcome.error.kind }) });
  span.end(exchange.receivedAt + outcome.totalMs);
}

function attemptSpan(tracer: Tracer, attempt: Attempt, within: Context): void {
  const { number, provider, model: name, protocol, result, status, startedAt, durationMs, hedge, lost } = attempt;
  const attributes = {
    'gen_ai.provider.name': provider,
    'gen_ai.request.model': name,
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
