/** The error bodies of several plugins: the envelope of chat and responses, `{error: {message, type, param, code}}`, and google.rpc.Status. Pure. */
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

/** The `status` of google.rpc.Status for each kind. */
const googleStatuses: Readonly<Record<ErrorKind, string>> = {
  invalid_request: 'INVALID_ARGUMENT',
  unauthenticated: 'UNAUTHENTICATED',
  insufficient_balance: 'FAILED_PRECONDITION',
  forbidden: 'PERMISSION_DENIED',
  not_found: 'NOT_FOUND',
  method_not_allowed: 'INVALID_ARGUMENT',
  request_timeout: 'DEADLINE_EXCEEDED',
  conflict: 'ABORTED',
  too_large: 'INVALID_ARGUMENT',
  unsupported: 'UNIMPLEMENTED',
  upgrade_required: 'FAILED_PRECONDITION',
  rate_limited: 'RESOURCE_EXHAUSTED',
  headers_too_large: 'INVALID_ARGUMENT',
  client_left: 'CANCELLED',
  internal: 'INTERNAL',
  upstream_failed: 'UNAVAILABLE',
  overloaded: 'UNAVAILABLE',
  upstream_timeout: 'DEADLINE_EXCEEDED',
};

export interface GoogleError {
  readonly error: {
    readonly code: number;
    readonly message: string;
    readonly status: string;
    readonly details?: readonly object[];
  };
}

export function googleError(error: GatewayError): GoogleError {
  const details = detailsOf(error);
  return {
    error: {
      code: error.status,
      message: error.message,
      status: googleStatuses[error.kind],
      ...(details.length === 0 ? {} : { details }),
    },
  };
}

/** The error as an answer with this body. */
export function googleErrorAnswer(error: GatewayError): Answer {
  return {
    status: error.status,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(googleError(error)),
  };
}

/** The reason, the field and the retry delay, each in the detail type that official clients read. */
function detailsOf(error: GatewayError): object[] {
  const details: object[] = [];
  if (error.code !== undefined) {
    const reason = error.code.toUpperCase().replaceAll('-', '_');
    details.push({ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'gateway' });
  }
  if (error.field !== undefined) {
    const fieldViolations = [{ field: error.field, description: error.message }];
    details.push({ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations });
  }
  if (error.retryAfterMs !== undefined) {
    const retryDelay = `${Math.max(1, Math.ceil(error.retryAfterMs / 1000))}s`;
    details.push({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay });
  }
  return details;
}
