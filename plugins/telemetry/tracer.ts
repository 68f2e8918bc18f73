/** Spans: one for each request, as a child of its caller's, one for each attempt at an upstream, and those of ordered work, linked to the order's. */
import {
  type Attributes,
  type Context,
  context,
  type Link,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { type Exchange, type Outcome, upstreamRequest } from '../../core/contract/contract.ts';
import { type Attempt, attempts } from '../common/domain/calls.ts';
import { model } from '../common/domain/models.ts';
import {
  type OrderedBy,
  orderTrace,
  readTraceParent,
  trace as traceOfExchange,
  type VendorCallSpan,
  writeTraceParent,
} from '../common/wire/trace.ts';
import { identityAttributes, isGeneration, operationOf, type SpanSettings, spanAttributes } from './attributes.ts';

export interface Tracing {
  /** To be ended with the exchange; undefined: this request is not traced. */
  begin(exchange: Exchange): ((outcome: Outcome) => void) | undefined;
  /** A call of a vendor that no exchange makes. */
  add(order: OrderedBy, made: VendorCallSpan): void;
}

/** `passOn`: requests to upstreams carry the trace. */
export function createTracing(tracer: Tracer, passOn: boolean, settings: SpanSettings): Tracing {
  return {
    begin(exchange) {
      const parent = readTraceParent(exchange.request.headers['traceparent']);
      const above: Context =
        parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, { ...parent, isRemote: true });
      const order = exchange.find(orderTrace);
      const links = order === undefined ? [] : [{ context: { ...order, isRemote: true } }];
      const options = { kind: SpanKind.SERVER, startTime: exchange.receivedAt, links };
      const span = tracer.startSpan(exchange.endpoint.operation, options, above);
      exchange.set(traceOfExchange, span.spanContext());
      if (!span.isRecording()) return undefined;
      if (passOn) {
        const traceparent = writeTraceParent(span.spanContext());
        exchange.beforeSend((sending) => {
          sending.get(upstreamRequest).headers['traceparent'] = traceparent;
        });
      }
      return (outcome) => endSpan({ tracer, span, settings }, exchange, outcome);
    },
    add(order, { operation, isGeneration: generates, attempt }) {
      const of = readTraceParent(order.trace);
      if (of === undefined) return;
      const links = [{ context: { ...of, isRemote: true } }];
      const { accountId, keyId, requestId } = order;
      const more = { 'gateway.operation': operation, ...identityAttributes({ accountId, keyId }, settings) };
      const facts = { isGeneration: generates, id: requestId, more, links };
      attemptSpan(tracer, attempt, ROOT_CONTEXT, facts);
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

interface AttemptFacts {
  readonly isGeneration: boolean;
  /** Id of the request. */
  readonly id: string | undefined;
  readonly more?: Attributes;
  readonly links?: Link[];
}

function attemptSpan(
  tracer: Tracer,
  attempt: VendorCallSpan['attempt'] & Pick<Attempt, 'hedge' | 'lost'>,
  within: Context,
  of: AttemptFacts,
): void {
  const { number, provider, model: name, protocol, result, status, startedAt, durationMs, hedge, lost } = attempt;
  const attributes = {
    ...(of.isGeneration
      ? { 'gen_ai.provider.name': provider, 'gen_ai.request.model': name }
      : { 'gateway.provider': provider, 'gateway.model': name }),
    ...(of.id !== undefined && { 'gateway.request_id': of.id }),
    'gateway.protocol': protocol,
    'gateway.attempt': number,
    'gateway.attempt.result': lost === true ? 'lost' : result,
    ...(hedge === true && { 'gateway.attempt.hedge': true }),
    ...(status !== undefined && { 'http.response.status_code': status }),
    ...of.more,
  };
  const options = { kind: SpanKind.CLIENT, startTime: startedAt, attributes, ...(of.links && { links: of.links }) };
  const span = tracer.startSpan(`attempt ${name}`, options, within);
  if (result !== 'answered' && lost !== true) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end(startedAt + (durationMs ?? 0));
}
