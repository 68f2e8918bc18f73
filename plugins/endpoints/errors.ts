/** Renders errors in the dialects of these endpoints' clients. Pure. */
import { GatewayError } from '../../core/contract/errors.ts';
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
