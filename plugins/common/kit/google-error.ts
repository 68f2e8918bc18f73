/** The error body of Google's protocols: google.rpc.Status. Pure. */
import type { ErrorKind, GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';

const statuses: Readonly<Record<ErrorKind, string>> = {
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
      status: statuses[error.kind],
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
