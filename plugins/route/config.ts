/** The settings of `route`. */

import { duration, durationOrOff, z } from '../../core/contract/schema.ts';

/** http-proxy-3 adds listeners to the request for each attempt; above ten Node warns of a leak. */
const attemptsLimit = 8;

const cooldownTime = (fallback: string) =>
  duration()
    .refine((milliseconds) => milliseconds >= 1_000 && milliseconds <= 86_400_000, 'must be from 1s to 1d')
    .prefault(fallback);

const longerThanNothing = (fallback: string) =>
  duration()
    .refine((milliseconds) => milliseconds > 0 && milliseconds <= 3_600_000, 'must be more than 0 and at most 1h')
    .prefault(fallback);

const breakerSchema = z
  .strictObject({
    failures: z
      .int()
      .min(1)
      .max(32)
      .default(5)
      .describe(
        'Failures among the latest 32 requests of a target from which on it is passed over, if `share` holds too. Lower it to leave failing targets sooner.',
      ),
    share: z
      .number()
      .gt(0)
      .max(1)
      .default(0.5)
      .describe(
        'Share of failures from which on a target is passed over, if `failures` holds too: 0.5 is half. Lower it to leave failing targets sooner.',
      ),
    open: longerThanNothing('2s').describe(
      'How long a failing target is passed over the first time; twice as long each time again. Raise it for vendors that take minutes to recover.',
    ),
    max_open: longerThanNothing('60s').describe(
      'How long a failing target is passed over at most, until one request tries it. Lower it when targets come back sooner.',
    ),
    all_open: z
      .enum(['try', 'refuse'])
      .default('try')
      .describe(
        'What happens when every target that could serve a request is passed over. try: the one whose time ends first is asked; refuse: the client is asked to come back then (503, retry-after). Use refuse to spare a vendor that struggles.',
      ),
  })
  .refine(({ open, max_open: longest }) => open <= longest, { path: ['open'], message: 'must be at most max_open' });

const affinitySchema = z.strictObject({
  sessions: z
    .boolean()
    .default(true)
    .describe(
      'Requests of one session go to the target and key that served it before, while these are well. Turn it off when traffic must be spread evenly.',
    ),
  headers: z
    .array(z.string().regex(/^[a-z0-9_-]{1,100}$/, 'must be a header name in lower case'))
    .max(20)
    .prefault(['x-session-id', 'x-session-affinity', 'session-id', 'session_id', 'thread-id'])
    .describe(
      'Headers by which clients name a session; the first that is there counts, after what the body says. Add the header of your client program.',
    ),
  openings: z
    .boolean()
    .default(true)
    .describe(
      'Where nothing names a session, long requests that begin alike are taken for one. Turn it off when many clients send the same long beginning.',
    ),
  keep: longerThanNothing('10m').describe(
    'How long a session is remembered after its last request. Raise it to the time for which the vendor keeps its cache.',
  ),
});

const hedgeSchema = z.strictObject({
  after: durationOrOff()
    .prefault('off')
    .describe(
      'How long a target may be silent (no word of a stream, no head of an answer) before another one is asked beside it; off: never. The client pays for the one that answers first; the other is booked as absorbed; a model may say otherwise. Set it when the first word must come soon.',
    ),
  share: z
    .number()
    .gt(0)
    .max(1)
    .default(0.05)
    .describe(
      'Share of the requests of the last 5 minutes, in each process, for which a second target may be asked: 0.05 is one in 20. Lower it to bound what hedging costs.',
    ),
});

export const routeSchema = z.strictObject({
  attempts: z
    .int()
    .min(1)
    .max(attemptsLimit)
    .default(3)
    .describe(
      'Most upstream attempts for one request, the first included; at most 8. Raise it for models with many targets.',
    ),
  retry_ambiguous: z
    .enum(['pure', 'never', 'always'])
    .default('pure')
    .describe(
      'What follows an attempt that broke off without an answer and may have run (408, 500, 502, 504, a reset, silence). pure: another target, or once more the same one where there is no other, if the call has no effect beside its answer, within `absorb`; always: for every call; never: the error. The client pays for one attempt at most; what the others may have cost is booked as absorbed. Use never when you must not pay for an attempt twice.',
    ),
  absorb: z
    .number()
    .min(0)
    .max(1)
    .default(0.05)
    .describe(
      'Share of what the calls of the last hour have cost, in each process, that attempts which may have run before another one may cost at most, with `retry_ambiguous: pure`. An hour counts as 10 USD and as 200 calls at least: by 0.05 ten attempts an hour may cost more than the share; 0: none. Raise it when answers matter more than their cost.',
    ),
  strategy: z
    .enum(['ordered', 'fastest'])
    .default('ordered')
    .describe(
      'Which target of a model is tried first. ordered: as listed, by weight where they have one; fastest: the one that answers soonest in recent traffic; a model may set its own. Use fastest where targets cost the same.',
    ),
  opening: duration()
    .refine((milliseconds) => milliseconds <= 60_000, 'must be at most 1m')
    .prefault('5s')
    .describe(
      'How long the beginning of a stream is held back while it has nothing that a client can use (no word, reasoning, item or call): until then an error in it is followed by another attempt as before the head; 0s: not at all. Lower it when clients need the head of the answer at once.',
    ),
  breaker: breakerSchema.prefault({}).describe('When targets that fail are passed over, and for how long.'),
  affinity: affinitySchema.prefault({}).describe('What keeps requests together whose prompts a vendor has cached.'),
  hedge: hedgeSchema.prefault({}).describe('When a second target is asked beside one that is silent.'),
  cooldown: z
    .strictObject({
      rate_limited: cooldownTime('30s').describe(
        'Cooldown of a key for a model after a 429 without retry-after. Raise it when the same key is refused again at once.',
      ),
      max: cooldownTime('5m').describe(
        'Longest cooldown that an upstream may ask for by retry-after. Raise it for vendors with limits by the day.',
      ),
      unauthorized: cooldownTime('10m').describe(
        'Cooldown of a key that the upstream refuses (401, 402, 403). Lower it when you often replace keys at the vendor.',
      ),
    })
    .prefault({})
    .describe('How long a key is not used after an upstream has refused it.'),
});

export type RouteConfig = z.output<typeof routeSchema>;
export type AffinityConfig = RouteConfig['affinity'];
