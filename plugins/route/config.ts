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
      .describe('Failures among the latest 32 requests of a target from which on it is passed over …'),
    share: z.number().gt(0).max(1).default(0.5).describe('… if they are at least this share of them: 0.5 is half.'),
    open: longerThanNothing('2s').describe('How long it is passed over the first time; twice as long each time again.'),
    max_open: longerThanNothing('60s').describe('How long it is passed over at most, until one request tries it.'),
    all_open: z
      .enum(['try', 'refuse'])
      .default('try')
      .describe(
        'When every target that could serve a request is passed over. try: the one whose time ends first is asked; ' +
          'refuse: the client is asked to come back then (503, retry-after).',
      ),
  })
  .refine(({ open, max_open: longest }) => open <= longest, { path: ['open'], message: 'must be at most max_open' });

const affinitySchema = z.strictObject({
  sessions: z
    .boolean()
    .default(true)
    .describe('Requests of one session go to the target and key that served it before, while these are well.'),
  headers: z
    .array(z.string().regex(/^[a-z0-9_-]{1,100}$/, 'must be a header name in lower case'))
    .max(20)
    .prefault(['x-session-id', 'x-session-affinity', 'session-id', 'session_id', 'thread-id'])
    .describe('Headers by which clients name a session; the first that is there counts, after what the body says.'),
  openings: z
    .boolean()
    .default(true)
    .describe('Where nothing names a session, long requests that begin alike are taken for one.'),
  keep: longerThanNothing('10m').describe('How long a session is remembered after its last request.'),
});

const hedgeSchema = z.strictObject({
  after: durationOrOff()
    .prefault('off')
    .describe(
      'How long a target may be silent (no word of a stream, no head of an answer) before another one is asked beside ' +
        'it; off: never. The client pays for the one that answers first; the other is booked as absorbed. A model may say otherwise.',
    ),
  share: z
    .number()
    .gt(0)
    .max(1)
    .default(0.05)
    .describe(
      'Share of the requests of the last 5 minutes, in each process, for which that may happen: 0.05 is one in 20.',
    ),
});

export const routeSchema = z.strictObject({
  attempts: z
    .int()
    .min(1)
    .max(attemptsLimit)
    .default(3)
    .describe('Most upstream attempts for one request, the first included; at most 8.'),
  retry_ambiguous: z
    .enum(['pure', 'never', 'always'])
    .default('pure')
    .describe(
      'What follows an attempt that broke off without an answer and may have run (408, 500, 502, 504, a reset, silence). ' +
        'pure: another target, or once more the same one where there is no other, if the call has no effect beside its answer, ' +
        'within `absorb`; always: for every call; never: the error. The client pays for one attempt at most; what the others ' +
        'may have cost is booked as absorbed.',
    ),
  absorb: z
    .number()
    .min(0)
    .max(1)
    .default(0.05)
    .describe(
      'Share of what the calls of the last hour have cost, in each process, that attempts which may have run before another one ' +
        'may cost at most, with `retry_ambiguous: pure`: 0.05 is a twentieth. An hour counts as 10 USD and as 200 calls at least: ' +
        'by 0.05 ten attempts an hour may cost more than the share. 0: none.',
    ),
  strategy: z
    .enum(['ordered', 'fastest'])
    .default('ordered')
    .describe(
      'Which target of a model is tried first. ordered: as listed, by weight where they have one; fastest: the one ' +
        'that answers soonest in recent traffic. A model may set its own.',
    ),
  opening: duration()
    .refine((milliseconds) => milliseconds <= 60_000, 'must be at most 1m')
    .prefault('5s')
    .describe(
      'How long the beginning of a stream is held back while it has nothing that a client can use (no word, reasoning, item or ' +
        'call): until then an error in it is followed by another attempt as before the head. 0s: not at all.',
    ),
  breaker: breakerSchema.prefault({}).describe('When targets that fail are passed over, and for how long.'),
  affinity: affinitySchema.prefault({}).describe('What keeps requests together whose prompts a vendor has cached.'),
  hedge: hedgeSchema.prefault({}).describe('When a second target is asked beside one that is silent.'),
  cooldown: z
    .strictObject({
      rate_limited: cooldownTime('30s').describe('Cooldown of a key for a model after a 429 without retry-after.'),
      max: cooldownTime('5m').describe('Longest cooldown that an upstream may ask for by retry-after.'),
      unauthorized: cooldownTime('10m').describe('Cooldown of a key that the upstream refuses (401, 402, 403).'),
    })
    .prefault({})
    .describe('How long a key is not used after an upstream has refused it.'),
});

export type RouteConfig = z.output<typeof routeSchema>;
export type AffinityConfig = RouteConfig['affinity'];
