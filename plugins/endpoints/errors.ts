/** Renders errors in the dialects of these endpoints' clients. Pure. */
import { type ErrorKind, GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import { UpstreamRefusal } from '../../core/contract/upstream-failures.ts';
import { envelope } from '../common/kit/error-envelope.ts';
import { notAnAnswer } from '../common/kit/upstream-errors.ts';

function json(status: number, body: object): Answer {
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

/**
 * Rerank clients read `message` (Cohere) or `detail` (Jina, Voyage); `error` is for those that call it through a gateway.
 * `id`: the gateway's request.
 */
export function rerankError(error: GatewayError, { id }: { readonly id: string }): Answer {
  return json(error.status, { id, message: error.message, detail: error.message, ...envelope(error) });
}

/** The message as `detail`, as servers that check requests by a schema send it; `error` as in chat. */
export function detailedError(error: GatewayError): Answer {
  return json(error.status, { detail: error.message, ...envelope(error) });
}

const googleStatuses: Readonly<Partial<Record<ErrorKind, string>>> = {
  unauthenticated: 'UNAUTHENTICATED',
  insufficient_balance: 'FAILED_PRECONDITION',
  forbidden: 'PERMISSION_DENIED',
  not_found: 'NOT_FOUND',
  request_timeout: 'DEADLINE_EXCEEDED',
  conflict: 'ABORTED',
  unsupported: 'UNIMPLEMENTED',
  rate_limited: 'RESOURCE_EXHAUSTED',
  client_left: 'CANCELLED',
  internal: 'INTERNAL',
  upstream_failed: 'UNAVAILABLE',
  overloaded: 'UNAVAILABLE',
  upstream_timeout: 'DEADLINE_EXCEEDED',
};

/** google.rpc.Status, with the field where one is at fault. */
export function googleError(error: GatewayError): Answer {
  const { status: code, message, field, kind } = error;
  const fieldViolations = [{ field, description: message }];
  const details =
    field === undefined ? {} : { details: [{ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations }] };
  return json(code, { error: { code, message, status: googleStatuses[kind] ?? 'INVALID_ARGUMENT', ...details } });
}

/** A refusal by an upstream of another protocol: its body and its fields mean nothing to this client. */
export function foreignRefusal(refusal: UpstreamRefusal): UpstreamRefusal {
  const { kind, message, code, retryAfterMs, shouldRetry, cause } = refusal.error;
  const error = new GatewayError(kind, message, {
    ...(code === undefined ? {} : { code }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(shouldRetry === undefined ? {} : { shouldRetry }),
    cause,
  });
  return new UpstreamRefusal(error, { ...refusal, answer: undefined });
}

/** A body that is not the answer that it should be; the vendor may have billed it. */
export function unreadable(what: string): UpstreamRefusal {
  return notAnAnswer(what, true);
}
