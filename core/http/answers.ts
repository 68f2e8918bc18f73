/** Answers of the core itself, and the rendering of errors. */

import type { Endpoint, Exchange, PluginInstance } from '../contract/contract.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Answer, AnswerWatcher } from '../contract/message.ts';
import type { Unrouted } from '../contract/public-operation.ts';
import { toGatewayError } from '../contract/upstream-failures.ts';
import { withNulField } from '../json/nul-field.ts';

/** Parts of the exchange that a rendered error may contain. */
type ErrorContext = Pick<Exchange, 'id' | 'request'>;

function jsonAnswer(status: number, value: unknown, headers: Record<string, string> = {}): Answer {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(value) };
}

/** The error body for paths without a protocol. */
function plainError(error: GatewayError): Answer {
  const { kind, message, code, field } = error;
  return jsonAnswer(error.status, { error: { type: kind, message, code: code ?? null, param: field ?? null } });
}

/**
 * Renders a thrown error: in the gateway's own error shape, if the endpoint has none that must stay, else as the answer that the error carries (a vendor's refusal),
 * else in the endpoint's protocol, else as plain JSON. A renderer that throws is skipped.
 */
export function renderError(
  thrown: unknown,
  exchange: Exchange | undefined,
  shapes: readonly PluginInstance[],
): { answer: Answer; error: GatewayError } {
  const brought = (thrown as { answer?: Answer }).answer;
  const plain = toGatewayError(thrown);
  const error = exchange === undefined ? plain : withNulField(plain, exchange.request);
  const answer = ownShape(error, exchange, exchange?.endpoint, shapes) ?? brought ?? protocolShape(error, exchange);
  return { answer: withErrorHeaders(answer, error), error };
}

/** Renders the error of a request without an endpoint, in the protocol of the nearest `endpoint` if there is one. */
export function renderUnrouted(
  error: GatewayError,
  endpoint: Endpoint | undefined,
  context: ErrorContext,
  shapes: readonly PluginInstance[],
  unrouted: Unrouted | undefined,
): Answer {
  const said = error.kind === 'not_found' ? unrouted?.explain(context.request) : undefined;
  const shown = said === undefined ? error : new GatewayError(error.kind, said, { code: 'unknown_url' });
  const answer =
    ownShape(shown, undefined, endpoint, shapes) ??
    (endpoint === undefined ? unrouted?.renderError(shown, context) : undefined) ??
    renderInProtocol(shown, endpoint, context);
  return withErrorHeaders(answer, shown);
}

function ownShape(
  error: GatewayError,
  exchange: Exchange | undefined,
  endpoint: Endpoint | undefined,
  shapes: readonly PluginInstance[],
): Answer | undefined {
  if (endpoint?.keepsErrorForm === true) return undefined;
  for (const instance of shapes) {
    try {
      const answer = instance.renderError!(error, exchange);
      if (answer !== undefined) return answer;
    } catch {
      // The next shape is tried.
    }
  }
  return undefined;
}

function protocolShape(error: GatewayError, exchange: Exchange | undefined): Answer {
  return exchange === undefined ? plainError(error) : renderInProtocol(error, exchange.endpoint, exchange);
}

function renderInProtocol(error: GatewayError, endpoint: Endpoint | undefined, context: ErrorContext): Answer {
  try {
    return endpoint?.renderError?.(error, context) ?? plainError(error);
  } catch {
    return plainError(error);
  }
}

/** Refusals that the same request would get again. */
const lastingStatuses = new Set([400, 401, 402, 403, 404, 405, 413, 422, 426, 431]);

/** Adds `retry-after` (whole seconds, rounded up) and `x-should-retry`, which official SDKs obey. */
function withErrorHeaders(answer: Answer, error: GatewayError): Answer {
  const headers: Record<string, string> = { ...error.headers };
  if (error.retryAfterMs !== undefined)
    headers['retry-after'] = String(Math.max(1, Math.ceil(error.retryAfterMs / 1000)));
  const isLasting = lastingStatuses.has(answer.status) && error.retryAfterMs === undefined;
  const shouldRetry = error.shouldRetry ?? (isLasting ? false : undefined);
  if (shouldRetry !== undefined) headers['x-should-retry'] = String(shouldRetry);
  return { ...answer, headers: { ...headers, ...answer.headers } };
}

/** One observer instead of two. */
export function both(first: AnswerWatcher, second: AnswerWatcher): AnswerWatcher {
  return {
    head(status, headers) {
      first.head(status, headers);
      second.head(status, headers);
    },
    chunk(bytes) {
      first.chunk(bytes);
      second.chunk(bytes);
    },
  };
}
