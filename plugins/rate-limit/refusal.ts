/** The error of a request over a limit: which limit, and how long to wait. Pure. */

import { GatewayError } from '../../core/contract/errors.ts';
import type { Headers } from '../../core/contract/message.ts';
import { goDuration } from './headers.ts';
import type { Demand, Dimension } from './limiter.ts';

const refusalText: Readonly<Record<Dimension, (demand: Demand) => string>> = {
  rpm: ({ limit }) => `${limit} requests per minute`,
  rpd: ({ limit }) => `${limit} requests per day`,
  tpm: ({ limit, units }) => `${limit} tokens per minute, of which this request may need ${units}`,
  concurrency: ({ limit }) => `${limit} at a time`,
};

/** `owner` has the limit: `plan "free"`, `this key`. */
export function overLimit(owner: string, demand: Demand, retryAfterMs: number, headers: Headers): GatewayError {
  const message =
    `Rate limit reached: ${owner} allows ${refusalText[demand.dimension](demand)}. ` +
    `Try again in ${goDuration(retryAfterMs)}.`;
  return new GatewayError('rate_limited', message, { code: demand.dimension, retryAfterMs, headers });
}
