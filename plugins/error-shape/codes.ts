/** Error codes: one closed table over the kinds of errors. Pure. */
import type { ErrorKind, GatewayError } from '../../core/contract/errors.ts';

/** A 5xx means that the model, or the way to it, failed or is busy; only the gateway's own faults differ. */
const byKind = {
  invalid_request: 'INVALID_REQUEST',
  unauthenticated: 'INVALID_API_KEY',
  insufficient_balance: 'INSUFFICIENT_BALANCE',
  forbidden: 'FORBIDDEN',
  not_found: 'NOT_FOUND',
  method_not_allowed: 'METHOD_NOT_ALLOWED',
  request_timeout: 'REQUEST_TIMEOUT',
  conflict: 'CONFLICT',
  too_large: 'REQUEST_TOO_LARGE',
  unsupported: 'UNSUPPORTED',
  upgrade_required: 'UPGRADE_REQUIRED',
  rate_limited: 'RATE_LIMITED',
  headers_too_large: 'HEADERS_TOO_LARGE',
  client_left: 'CLIENT_LEFT',
  internal: 'INTERNAL_ERROR',
  upstream_failed: 'UPSTREAM_ERROR',
  overloaded: 'UPSTREAM_ERROR',
  upstream_timeout: 'UPSTREAM_ERROR',
} as const satisfies Readonly<Record<ErrorKind, string>>;

/** Kinds with cases that a client must distinguish. */
const byReason = new Map([
  ['model_not_found', 'MODEL_NOT_FOUND'],
  ['model_not_priced', 'MODEL_NOT_FOUND'],
]);

export function codeOf({ kind, code }: GatewayError): string {
  return (kind === 'not_found' && code !== undefined ? byReason.get(code) : undefined) ?? byKind[kind];
}
