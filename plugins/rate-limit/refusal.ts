/** The error of a request that is over a limit: which limit, and how long to wait. Pure. */
import type { Headers } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { goDuration } from './headers.ts';
import type { Demand, Dimension, Verdict } from './limiter.ts';

const wording: Readonly<Record<Dimension, (demand: Demand) => string>> = {
  rpm: ({ limit }) => `${limit} requests per minute`,
  rpd: ({ limit }) => `${limit} requests per day`,
  tpm: ({ limit, units }) => `${limit} tokens per minute, of which this request may need ${units}`,
  concurrency: ({ limit }) => `${limit} at a time`,
};

/** `owner` is who sets the limit: `plan "free"`, `this key`. */
export function overLimit(owner: string, demand: Demand, retryAfterMs: number, headers: Headers): GatewayError {
  const message =
    `Rate limit reached: ${owner} allows ${wording[demand.dimension](demand)}. ` +
    `Try again in ${goDuration(retryAfterMs)}.`;
  return new GatewayError('rate_limited', message, { code: demand.dimension, retryAfterMs, headers });
}

const units: Readonly<Record<Dimension, string>> = {
  rpm: 'requests per minute',
  rpd: 'requests per day',
  tpm: 'tokens per minute',
  concurrency: 'at a time',
};

/** For the request's story: `left of the plan: 59 of 60 requests per minute; of the key: 4 of 5 at a time`. */
export function standingWords(
  accountId: string,
  demands: readonly Demand[],
  { refusedBy, standings }: Verdict,
): string {
  const left = { plan: [] as string[], key: [] as string[] };
  standings.forEach(({ dimension, limit, remaining }, index) => {
    const { subject } = demands[index]!;
    left[subject === accountId ? 'plan' : 'key'].push(`${remaining} of ${limit} ${units[dimension]}`);
  });
  const parts = (['plan', 'key'] as const)
    .filter((owner) => left[owner].length > 0)
    .map((owner) => `of the ${owner}: ${left[owner].join(', ')}`);
  return `${refusedBy === undefined ? 'left' : `refused by the limit on ${units[refusedBy.dimension]}; left`} ${parts.join('; ')}`;
}
