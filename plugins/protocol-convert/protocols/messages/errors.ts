/** Words errors in the messages protocol, before an answer and inside a stream. Pure. */
import type { Answer, Exchange } from '../../../../core/contract.ts';
import type { ErrorKind, GatewayError } from '../../../../core/errors.ts';
import { formatFrame } from '../../../../core/sse.ts';
import { contextOverflow, overflowWords } from '../../foreign-error.ts';
import type { BrokenStream, ShapeMembers } from '../../protocol.ts';

const types: Readonly<Record<ErrorKind, string>> = {
  invalid_request: 'invalid_request_error',
  unauthenticated: 'authentication_error',
  insufficient_balance: 'billing_error',
  forbidden: 'permission_error',
  not_found: 'not_found_error',
  method_not_allowed: 'invalid_request_error',
  request_timeout: 'timeout_error',
  conflict: 'conflict_error',
  too_large: 'request_too_large',
  unsupported: 'invalid_request_error',
  upgrade_required: 'invalid_request_error',
  rate_limited: 'rate_limit_error',
  headers_too_large: 'request_too_large',
  client_left: 'api_error',
  internal: 'api_error',
  upstream_failed: 'api_error',
  overloaded: 'overloaded_error',
  upstream_timeout: 'timeout_error',
};

/** A shape's members stand on both levels; the protocol's own `type` and `error` they cannot replace. */
function errorBody(error: GatewayError, exchangeId: string, shape?: ShapeMembers): string {
  const type = types[error.kind];
  const details = error.code === undefined ? {} : { details: { error_code: error.code } };
  const message = error.code === contextOverflow ? overflowWords(error.message) : error.message;
  const told = { type, message, ...details, ...shape };
  const body = { type: 'error', error: told, request_id: `req_${exchangeId}` };
  return JSON.stringify({ ...body, ...shape, type: 'error', error: { ...told, type } } satisfies object);
}

export function renderError(error: GatewayError, { id }: Pick<Exchange, 'id'>): Answer {
  return {
    status: error.status,
    headers: { 'content-type': 'application/json', 'request-id': `req_${id}` },
    body: errorBody(error, id),
  };
}

/** An `error` event; no `message_stop` follows. */
export function streamError(error: GatewayError, stream: Pick<BrokenStream, 'exchangeId' | 'shape'>): string {
  return formatFrame(errorBody(error, stream.exchangeId, stream.shape), 'error');
}
