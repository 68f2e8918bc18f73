/** Answers that the core makes by itself, and how an error becomes one. */
import type { Answer, Endpoint, Exchange, Part } from './contract.ts';
import { type GatewayError, toGatewayError } from './errors.ts';

/** What an error's words may name of the request. */
type Told = Pick<Exchange, 'id' | 'request'>;

export function jsonAnswer(status: number, value: unknown, headers: Record<string, string> = {}): Answer {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(value) };
}

/** The shape of an error on paths that belong to no protocol. */
export function plainError(error: GatewayError): Answer {
  const { kind, message, code, field } = error;
  return jsonAnswer(error.status, { error: { type: kind, message, code: code ?? null, param: field ?? null } });
}

/**
 * Whatever was thrown, as the client is told: an answer that the error brings along (a vendor's refusal), else the gateway's
 * own shape, else the protocol's, else plain JSON. A renderer that fails is passed over.
 */
export function renderError(
  thrown: unknown,
  exchange: Exchange | undefined,
  shapes: readonly Part[],
): { answer: Answer; error: GatewayError } {
  const brought = (thrown as { answer?: Answer }).answer;
  const error = toGatewayError(thrown);
  const answer = ownShape(error, exchange, shapes) ?? brought ?? protocolShape(error, exchange);
  return { answer: withErrorHeaders(answer, error), error };
}

/** Of a request that came to no endpoint: the gateway's own shape, else that of the endpoint next to it, else plain JSON. */
export function renderStray(
  error: GatewayError,
  endpoint: Endpoint | undefined,
  told: Told,
  shapes: readonly Part[],
): Answer {
  return withErrorHeaders(ownShape(error, undefined, shapes) ?? worded(error, endpoint, told), error);
}

function ownShape(error: GatewayError, exchange: Exchange | undefined, shapes: readonly Part[]): Answer | undefined {
  for (const part of shapes) {
    try {
      const answer = part.renderError!(error, exchange);
      if (answer !== undefined) return answer;
    } catch {
      // The next shape is asked: the client gets an error that reads, whatever a plugin does.
    }
  }
  return undefined;
}

function protocolShape(error: GatewayError, exchange: Exchange | undefined): Answer {
  return exchange === undefined ? plainError(error) : worded(error, exchange.endpoint, exchange);
}

function worded(error: GatewayError, endpoint: Endpoint | undefined, told: Told): Answer {
  try {
    return endpoint?.renderError?.(error, told) ?? plainError(error);
  } catch {
    return plainError(error);
  }
}

/** Waiting time in whole seconds, rounded up, and whether official SDKs may try again. */
function withErrorHeaders(answer: Answer, error: GatewayError): Answer {
  const headers: Record<string, string> = { ...error.headers };
  if (error.retryAfterMs !== undefined)
    headers['retry-after'] = String(Math.max(1, Math.ceil(error.retryAfterMs / 1000)));
  if (error.shouldRetry !== undefined) headers['x-should-retry'] = String(error.shouldRetry);
  return { ...answer, headers: { ...headers, ...answer.headers } };
}
