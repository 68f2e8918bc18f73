/** The error envelope that chat and responses share: `{error: {message, type, param, code}}`. Pure. */
import type { ErrorKind, GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';

/** `type` and default `code` of each kind, as the official API has them. */
const typeByKind: Readonly<Record<ErrorKind, readonly [type: string, code: string | null]>> = {
  invalid_request: ['invalid_request_error', null],
  unauthenticated: ['invalid_request_error', 'invalid_api_key'],
  insufficient_balance: ['insufficient_quota', 'insufficient_quota'],
  forbidden: ['permission_error', 'permission_denied'],
  not_found: ['invalid_request_error', null],
  method_not_allowed: ['invalid_request_error', 'method_not_allowed'],
  request_timeout: ['invalid_request_error', 'request_timeout'],
  conflict: ['invalid_request_error', 'conflict'],
  too_large: ['invalid_request_error', 'request_too_large'],
  unsupported: ['invalid_request_error', 'unsupported'],
  upgrade_required: ['invalid_request_error', 'upgrade_required'],
  rate_limited: ['requests', 'rate_limit_exceeded'],
  headers_too_large: ['invalid_request_error', 'headers_too_large'],
  client_left: ['server_error', 'client_left'],
  internal: ['server_error', null],
  upstream_failed: ['server_error', null],
  overloaded: ['server_error', 'server_is_overloaded'],
  upstream_timeout: ['server_error', 'timeout'],
};

/** Limits of the gateway that count tokens; all others count requests. */
const tokenLimits = new Set(['tpm', 'tokens']);

export interface Envelope {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string | null;
  };
}

export function envelope(error: GatewayError): Envelope {
  const [type, code] = typeByKind[error.kind];
  // Clients act on this one code when a limit of the gateway is hit; which limit it was is in the message.
  const isLimit = error.kind === 'rate_limited';
  return {
    error: {
      message: error.message,
      type: isLimit && tokenLimits.has(error.code ?? '') ? 'tokens' : type,
      param: error.field ?? null,
      code: isLimit && !error.ownCode ? code : (error.code ?? code),
    },
  };
}

/** The error as an answer in this envelope. */
export function envelopeAnswer(error: GatewayError): Answer {
  return {
    status: error.status,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(envelope(error)),
  };
}
