/** Errors for keyed calls that are not run. Pure. */
import { GatewayError } from '../../core/contract/errors.ts';
import { originHeader } from './stored-answer.ts';

const field = 'idempotency-key';
const shortestWaitMs = 1_000;
const longestWaitMs = 15_000;

/**
 * A call with the same key is running. The longer it has run, the longer it is likely to take: official SDKs wait
 * as long as the response says.
 */
export function inProgress(ageMs: number): GatewayError {
  return new GatewayError(
    'conflict',
    'A request with this Idempotency-Key is still running; ask again for its answer.',
    {
      field,
      code: 'idempotency_in_progress',
      retryAfterMs: Math.min(Math.max(ageMs, shortestWaitMs), longestWaitMs),
      shouldRetry: true,
    },
  );
}

export function keyReused(): GatewayError {
  return new GatewayError('conflict', 'This Idempotency-Key was used with another request; use a new key.', {
    field,
    code: 'idempotency_key_reused',
    shouldRetry: false,
  });
}

/** It ran and may have been charged, but its answer is unknown. */
export function lostAnswer(requestId: string): GatewayError {
  return new GatewayError(
    'conflict',
    'A request with this Idempotency-Key has run, but its answer was not kept; use a new key to run it again.',
    { field, code: 'idempotency_answer_lost', shouldRetry: false, headers: { [originHeader]: requestId } },
  );
}

export function unavailable(cause?: unknown): GatewayError {
  return new GatewayError('overloaded', 'Idempotency-Keys cannot be looked up at the moment; try again later.', {
    code: 'idempotency_unavailable',
    retryAfterMs: 1_000,
    cause,
  });
}
