/** What an operator may set about trying again. */
import { duration, z } from '../../core/schema.ts';

/** http-proxy-3 leaves listeners on a request for each attempt; past ten Node warns of a leak. */
const attemptsLimit = 8;

const rest = (fallback: string) =>
  duration()
    .refine((milliseconds) => milliseconds >= 1_000 && milliseconds <= 86_400_000, 'must be from 1s to 1d')
    .prefault(fallback);

export const routeSchema = z.strictObject({
  attempts: z
    .int()
    .min(1)
    .max(attemptsLimit)
    .default(3)
    .describe('Most upstream attempts for one request, the first included; at most 8.'),
  retry_unknown: z
    .boolean()
    .default(false)
    .describe(
      'Try another target also when an attempt broke off without an answer and may have run (500, 502, 504, a reset, ' +
        'silence). The client pays for one attempt at most; what the others may have cost is booked as absorbed.',
    ),
  rest: z
    .strictObject({
      rate_limited: rest('30s').describe('How long a key rests for a model after a 429 that names no time.'),
      max: rest('5m').describe('Longest rest that an upstream may ask for by retry-after.'),
      unauthorized: rest('10m').describe('How long a key rests that the upstream refuses (401, 402, 403).'),
    })
    .prefault({})
    .describe('How long keys rest that an upstream turned away.'),
});

export type RouteConfig = z.output<typeof routeSchema>;
