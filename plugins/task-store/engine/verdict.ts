/** Classifies a failed attempt: try elsewhere, retry later, or end the task. Pure. */
import { GatewayError } from '../../../core/contract/errors.ts';
import { UpstreamError, UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import type { Attempt } from '../../common/domain/calls.ts';
import type { TaskError } from './rows.ts';

export interface Verdict {
  readonly result: Exclude<Attempt['result'], 'running' | 'answered'>;
  readonly status: number | undefined;
  /** Another key of this target, another target, or the task's end. */
  readonly next: 'key' | 'place' | 'end';
  /** The key cools down, for this model or for all. */
  readonly cooldown?: { readonly forMs: number; readonly allModels: boolean };
  readonly error: TaskError;
  /** The vendor failed: it counts against the target's health, whichever client asked. */
  readonly isFault?: true;
}

const rateLimitedMs = 30_000;
const unauthorizedMs = 600_000;
const shortestRestMs = 1_000;
const longestRestMs = 300_000;

export const busy: TaskError = { code: 'upstream_busy', message: 'The model is overloaded; try again later.' };
const limited: TaskError = { code: 'upstream_rate_limited', message: 'The model takes no more requests for now.' };
export const unknownOutcome: TaskError = {
  code: 'outcome_unknown',
  message: 'The model broke off without an answer. Nothing is charged.',
};
const failed: TaskError = { code: 'generation_failed', message: 'The model failed to make this.' };

/** Only an order that cannot have started is tried elsewhere: one that was sent without an answer might be executed, and billed, twice. */
export function judge(error: unknown): Verdict {
  if (error instanceof UpstreamRefusal) {
    const verdict = judgeRefusal(error);
    return error.status >= 500 && !error.keyAtFault ? { ...verdict, isFault: true } : verdict;
  }
  if (error instanceof UpstreamError && error.phase === 'connect')
    return { result: 'not_sent', status: undefined, next: 'place', error: busy, isFault: true };
  if (error instanceof UpstreamError)
    return { result: 'unknown', status: undefined, next: 'end', error: unknownOutcome, isFault: true };
  if (error instanceof GatewayError && error.kind !== 'internal') {
    // Raised before anything was sent: another vendor may support what this one does not.
    const next = error.code === 'unsupported_by_model' ? 'place' : 'end';
    return { result: 'not_sent', status: undefined, next, error: wordsOf(error) };
  }
  return { result: 'unknown', status: undefined, next: 'end', error: failed };
}

function judgeRefusal(refusal: UpstreamRefusal): Verdict {
  const { status } = refusal;
  const requestedMs = refusal.retryAfterMs;
  const retryAfterMs =
    requestedMs === undefined ? undefined : Math.min(Math.max(requestedMs, shortestRestMs), longestRestMs);
  if (refusal.mayRun || refusal.hasUsage) return { result: 'unknown', status, next: 'end', error: unknownOutcome };
  const refused = { result: 'refused', status } as const;
  if (refusal.keyAtFault) {
    const rest = { forMs: unauthorizedMs, allModels: status !== 403 };
    return { ...refused, next: 'key', cooldown: rest, error: busy };
  }
  if (status === 429) {
    const forMs = retryAfterMs ?? rateLimitedMs;
    return {
      ...refused,
      next: 'key',
      cooldown: { forMs, allModels: false },
      error: { ...limited, retryAfterMs: forMs },
    };
  }
  if (status === 503 || status === 529) {
    if (retryAfterMs === undefined) return { ...refused, next: 'place', error: busy };
    const rest = { forMs: retryAfterMs, allModels: false };
    return { ...refused, cooldown: rest, next: 'place', error: { ...busy, retryAfterMs } };
  }
  if (status >= 400 && status < 500) return { ...refused, next: 'end', error: wordsOf(refusal.error) };
  return { ...refused, next: 'place', error: failed };
}

function wordsOf({ code, message, field }: GatewayError): TaskError {
  return { code: code ?? 'invalid_input', message, ...(field === undefined ? {} : { field }) };
}
