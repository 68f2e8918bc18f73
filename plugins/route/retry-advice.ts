/** Retry advice of the final error: none, or not before a target accepts requests again. Pure. */
import { type ErrorDetails, GatewayError } from '../../core/contract/errors.ts';
import { toGatewayError, UpstreamRefusal } from '../../core/contract/upstream-failures.ts';
import type { Attempt } from '../common/domain/calls.ts';
import type { Candidate } from './candidates.ts';

/** The final error of a request with these attempts and candidates. */
export function finalAdvice(
  error: unknown,
  attempts: readonly Attempt[],
  candidates: readonly Candidate[],
  now: number,
): unknown {
  const mayHaveRun = attempts.some(({ result }) => result === 'unknown');
  // A failed attempt is charged if it is the last one and its vendor has counted, or its answer was refused here.
  const consumed = attempts.at(-1)?.consumed;
  const isCharged = consumed?.estimated === false || consumed?.refusedHere === true;
  return withWait(mayHaveRun ? withRetryAdvice(error, isCharged) : error, closedForMs(candidates, now));
}

/** The target that reopens first. */
export function soonestOpen(skipped: readonly Candidate[], now: number): Candidate {
  const waitOf = ({ health }: Candidate) => health.breaker.opensForMs(now);
  return skipped.reduce((best, other) => (waitOf(other) < waitOf(best) ? other : best));
}

/** The shortest wait that is advised for a target that is being tested, since the test's duration is unknown. */
export const shortestWaitMs = 1_000;

/** How long the circuits of all these targets stay open; undefined: at least one accepts requests. */
function closedForMs(candidates: readonly Candidate[], now: number): number | undefined {
  let soonestMs: number | undefined;
  for (const { health } of candidates) {
    if (health.breaker.allows(now)) return undefined;
    const waitMs = Math.max(health.breaker.opensForMs(now), shortestWaitMs);
    if (soonestMs === undefined || waitMs < soonestMs) soonestMs = waitMs;
  }
  return soonestMs;
}

/** Adds `waitMs` as `retry-after` to an error about the targets. An existing time is kept. */
function withWait(error: unknown, waitMs: number | undefined): unknown {
  const gatewayError = toGatewayError(error);
  const isAboutTargets =
    gatewayError.kind === 'upstream_failed' ||
    gatewayError.kind === 'upstream_timeout' ||
    gatewayError.kind === 'overloaded';
  if (waitMs === undefined || !isAboutTargets || gatewayError.retryAfterMs !== undefined) return error;
  return changed(error, gatewayError, { retryAfterMs: waitMs });
}

/** Statuses that official SDKs retry by default. */
const isRetriedBySdks = (status: number) => status === 408 || status === 409 || status === 429 || status >= 500;

/** The final error after an attempt that may have run: official SDKs are asked to retry unless the client pays for it. */
function withRetryAdvice(error: unknown, isCharged: boolean): unknown {
  const gatewayError = toGatewayError(error);
  const { kind, status, retryAfterMs, shouldRetry } = gatewayError;
  // An internal error is left unchanged: the server logs it and marks it as not retryable.
  if (!isRetriedBySdks(status) || kind === 'internal') return error;
  // The vendor itself says that a repetition of this request cannot help.
  if (error instanceof UpstreamRefusal && shouldRetry === false) return error;
  const wait = isCharged ? undefined : retryAfterMs;
  return changed(error, gatewayError, { retryAfterMs: wait, shouldRetry: !isCharged });
}

/** A copy of the error with other details, in the same class. */
function changed(
  error: unknown,
  gatewayError: GatewayError,
  details: { retryAfterMs: number | undefined; shouldRetry?: boolean },
): unknown {
  const { kind, message, field, code, ownCode, headers, cause } = gatewayError;
  const { retryAfterMs } = details;
  const shouldRetry = details.shouldRetry ?? gatewayError.shouldRetry;
  const kept: ErrorDetails = {
    ...(field === undefined ? {} : { field }),
    ...(code === undefined ? {} : { code }),
    ...(headers === undefined ? {} : { headers }),
    ownCode,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(shouldRetry === undefined ? {} : { shouldRetry }),
    cause,
  };
  const again = new GatewayError(kind, message, kept);
  return error instanceof UpstreamRefusal ? new UpstreamRefusal(again, error) : again;
}
