/** Renders errors in the generate-content protocol (google.rpc.Status), before an answer and inside a stream. Pure. */

import type { ErrorKind, GatewayError } from '../../../../core/contract/errors.ts';
import type { Answer } from '../../../../core/contract/message.ts';
import type { ShapeMembers } from '../../../common/domain/error-shape.ts';
import { formatFrame } from '../../../common/kit/sse.ts';
import type { BrokenStream } from '../../../common/wire/protocols.ts';

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

function errorBody(error: GatewayError, shape?: ShapeMembers): string {
  const details = detailsOf(error);
  const body = {
    error: {
      code: error.status,
      message: error.message,
      status: statuses[error.kind],
      ...(details.length === 0 ? {} : { details }),
    },
  };
  return JSON.stringify({ ...body, ...shape, ...body });
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

export function renderError(error: GatewayError): Answer {
  return { status: error.status, headers: { 'content-type': 'application/json' }, body: errorBody(error) };
}

/**
 * An error object instead of a chunk: official SDKs throw on it if its `code` is a status, so an error shape is added beside
 * it.
 */
export function streamError(error: GatewayError, { shape }: Pick<BrokenStream, 'shape'>): string {
  return formatFrame(errorBody(error, shape));
}
