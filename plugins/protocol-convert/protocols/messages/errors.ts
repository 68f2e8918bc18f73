/** Renders errors in the messages protocol, before an answer and inside a stream. Pure. */

import type { Exchange } from '../../../../core/contract/contract.ts';
import type { ErrorKind, GatewayError } from '../../../../core/contract/errors.ts';
import type { Answer } from '../../../../core/contract/message.ts';
import type { ShapeMembers } from '../../../common/domain/error-shape.ts';
import { formatFrame } from '../../../common/kit/sse.ts';
import type { BrokenStream } from '../../../common/wire/protocols.ts';
import { contextOverflow, overflowPattern } from '../../translate/upstream-error.ts';

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

/** Members of an error shape are added on both levels; they cannot replace the protocol's own `type` and `error`. */
function errorBody(error: GatewayError, exchangeId: string, shape?: ShapeMembers): string {
  const type = types[error.kind];
  const details = error.code === undefined ? {} : { details: { error_code: error.code } };
  const message = error.code === contextOverflow ? overflowPattern(error.message) : error.message;
  const members = { type, message, ...details, ...shape };
  const body = { type: 'error', error: members, request_id: `req_${exchangeId}` };
  return JSON.stringify({ ...body, ...shape, type: 'error', error: { ...members, type } } satisfies object);
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
