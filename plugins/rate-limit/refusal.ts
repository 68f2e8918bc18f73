/** The error of a request that is over a limit: which limit, and how long to wait. Pure. */
import type { Headers } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { goDuration } from './headers.ts';
import type { Demand, Dimension } from './limiter.ts';

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
