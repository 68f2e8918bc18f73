/** The vendors behind the gateway: their keys' health, taking them out of use, and testing whether they answer. */
import { createRoute, z } from '@hono/zod-openapi';
import type { ProbeResult, TargetView, UpstreamView } from '../../../core/desk.ts';
import { GatewayError } from '../../../core/errors.ts';
import { moneyDesk, probeDesk, requestDesk, upstreamDesk } from '../desks.ts';
import { requestSums, tellSums } from './request-rows.ts';
import { type Ask, audited, type Console, need, nothingHere, router } from './router.ts';
import { answers, done, hourMs, reasonAsked, takes, usage, usd, usdOrNull } from './words.ts';

const milliseconds = z.number().nullable().describe('Moving average; null: nothing was measured.');
const target = z.object({
  model: z.string(),
  circuit: z.enum(['closed', 'open', 'half_open']),
  opensForMs: z.number(),
  inFlight: z.number(),
  recent: z.number().describe('Latest requests that count, at most 32.'),
  failed: z.number(),
  firstByteMs: milliseconds,
  wholeMs: milliseconds,
  keys: z.array(
    z.object({ credential: z.string(), answered: z.number(), firstByteMs: milliseconds, wholeMs: milliseconds }),
  ),
});

const upstream = z
  .object({
    provider: z.string(),
    protocols: z.record(z.string(), z.string()).describe('Protocol to base address.'),
    disabled: z.boolean(),
    keys: z.array(
      z.object({
        credential: z.string(),
        disabled: z.boolean(),
        restsMs: z.number(),
        modelRests: z.array(z.object({ model: z.string(), restsMs: z.number() })),
        reason: z.string().nullable(),
      }),
    ),
    room: z
      .object({ limit: z.number(), inFlight: z.number(), queue: z.number(), waiting: z.number() })
      .nullable()
      .describe('Requests at once, and those that wait, in this process; null: no bound is set.'),
    targets: z.array(target).describe('How its models do in the traffic of this process.'),
    lastHour: requestSums.nullable(),
    ownCost: usd.nullable().describe('What the calls of the last hour cost the operator, as far as it is known.'),
  })
  .openapi('Upstream');

const tested = z
  .object({
    ok: z.boolean(),
    protocol: z.string(),
    upstreamModel: z.string(),
    status: z.number().nullable().describe('Of the vendor; null: no answer came.'),
    firstByteMs: z.number().nullable(),
    totalMs: z.number(),
    error: z.string().nullable().describe('What went wrong, in the words of the vendor, without keys and addresses.'),
    text: z.string().describe('The beginning of what it said.'),
    usage,
  })
  .openapi('UpstreamTest');

const provider = z.object({ provider: z.string().min(1).max(100) });
const change = z.strictObject({
  credential: z.string().min(1).max(120).optional().describe('One key of it; without, the whole provider.'),
  reason: reasonAsked,
});

const list = createRoute({
  method: 'get',
  path: '/admin/upstreams',
  summary: 'Vendors and their keys',
  responses: answers(z.object({ rows: z.array(upstream) })),
});
const enable = createRoute({
  method: 'post',
  path: '/admin/upstreams/{provider}/enable',
  summary: 'Take a vendor, or one of its keys, into use again',
  request: { params: provider, body: takes(change) },
  responses: answers(done),
});
const disable = createRoute({
  method: 'post',
  path: '/admin/upstreams/{provider}/disable',
  summary: 'Take a vendor, or one of its keys, out of use',
  request: { params: provider, body: takes(change) },
  responses: answers(done),
});
const wake = createRoute({
  method: 'post',
  path: '/admin/upstreams/{provider}/wake',
  summary: "End the rests of a vendor's keys and close the circuits of its models",
  request: { params: provider, body: takes(z.strictObject({ reason: reasonAsked })) },
  responses: answers(done),
});

const choices = createRoute({
  method: 'get',
  path: '/admin/upstreams/{provider}/choices',
  summary: 'Models of the catalogue by which a vendor can be tested',
  request: { params: provider },
  responses: answers(
    z.object({
      rows: z.array(z.object({ model: z.string(), upstreamModel: z.string(), protocols: z.array(z.string()) })),
    }),
  ),
});
const test = createRoute({
  method: 'post',
  path: '/admin/upstreams/{provider}/test',
  summary: 'Make the smallest real call to a vendor, by one of its keys, charged to no account',
  request: {
    params: provider,
    body: takes(
      z.strictObject({
        credential: z.string().min(1).max(120),
        model: z.string().min(1).max(200).describe('As the catalogue names it.'),
        protocol: z.string().min(1).max(40).optional().describe('One that the vendor speaks; by default the first.'),
      }),
    ),
  },
  responses: answers(tested),
});

/** Each costs the operator a few tokens. */
const testsPerMinute = 30;

export function upstreamRoutes(hall: Console) {
  return router()
    .openapi(list, async (ask) => {
      const until = hall.clock.now() + 1;
      const span = { from: until - hourMs, until };
      const [groups, spend] = await Promise.all([
        hall.find(requestDesk)?.groups(span, 'provider', 500),
        hall.find(moneyDesk)?.spend(span, 'provider', 500),
      ]);
      const traffic = new Map(groups?.map((sums) => [sums.group, sums]));
      const costs = new Map(spend?.map(({ group, ownCost }) => [group, ownCost]));
      const rows = need(hall, upstreamDesk)
        .list()
        .map((view) => {
          const sums = traffic.get(view.provider);
          const lastHour = sums === undefined ? null : tellSums(sums);
          return { ...tellUpstream(view), lastHour, ownCost: usdOrNull(costs.get(view.provider)) };
        });
      return ask.json({ rows }, 200);
    })
    .openapi(enable, async (ask) => {
      await setDisabled(hall, ask, { ...ask.req.valid('param'), ...ask.req.valid('json') }, false);
      return ask.json({ ok: true } as const, 200);
    })
    .openapi(disable, async (ask) => {
      await setDisabled(hall, ask, { ...ask.req.valid('param'), ...ask.req.valid('json') }, true);
      return ask.json({ ok: true } as const, 200);
    })
    .openapi(wake, async (ask) => {
      const name = known(hall, ask.req.valid('param').provider, undefined);
      const { reason } = ask.req.valid('json');
      await audited(hall, ask, { action: 'upstream.wake', subject: name, reason }, async () =>
        need(hall, upstreamDesk).wake(name),
      );
      return ask.json({ ok: true } as const, 200);
    })
    .openapi(choices, (ask) => {
      const rows = need(hall, probeDesk).choices(ask.req.valid('param').provider);
      return ask.json({ rows: rows.map((row) => ({ ...row, protocols: [...row.protocols] })) }, 200);
    })
    .openapi(test, async (ask) => {
      const wanted = { ...ask.req.valid('json'), provider: ask.req.valid('param').provider };
      const desk = need(hall, probeDesk);
      const retryAfterMs = hall.throttle.take('test upstreams', testsPerMinute, 60_000);
      if (retryAfterMs > 0)
        throw new GatewayError('rate_limited', 'Many tests were made in this minute; wait a little.', { retryAfterMs });
      const { credential, model } = wanted;
      const change = { action: 'upstream.test', subject: credential, reason: model };
      const outcomeOf = ({ ok }: ProbeResult) => (ok ? 'done' : 'failed');
      const result = await audited(hall, ask, change, () => desk.probe(wanted, ask.env.send), outcomeOf);
      return ask.json(tellTest(result), 200);
    });
}

function tellTest({ status, firstByteMs, error, usage, ...told }: ProbeResult): z.infer<typeof tested> {
  return {
    ...told,
    status: status ?? null,
    firstByteMs: firstByteMs ?? null,
    error: error ?? null,
    usage: { ...usage },
  };
}

async function setDisabled(
  hall: Console,
  ask: Ask,
  { provider: named, credential, reason }: z.output<typeof provider> & z.output<typeof change>,
  disabled: boolean,
): Promise<void> {
  const name = known(hall, named, credential);
  const action = disabled ? 'upstream.disable' : 'upstream.enable';
  await audited(hall, ask, { action, subject: credential ?? name, reason }, () =>
    need(hall, upstreamDesk).setDisabled(name, credential, disabled),
  );
}

function known(hall: Console, name: string, credential: string | undefined): string {
  const view = need(hall, upstreamDesk)
    .list()
    .find((upstream) => upstream.provider === name);
  if (view === undefined) throw nothingHere('upstream', 'provider');
  if (credential !== undefined && !view.keys.some((key) => key.credential === credential))
    throw nothingHere('upstream key', 'credential');
  return name;
}

function tellUpstream({ provider, protocols, disabled, keys, room, targets = [] }: UpstreamView) {
  return {
    provider,
    protocols: { ...protocols },
    disabled,
    keys: keys.map(({ credential, disabled, restsMs, modelRests, reason }) => ({
      credential,
      disabled,
      restsMs,
      modelRests: modelRests.map(({ model, restsMs }) => ({ model, restsMs })),
      reason: reason ?? null,
    })),
    room: room === undefined ? null : { ...room },
    targets: targets.map(({ keys: own, ...figures }) => ({
      ...timed(figures),
      keys: own.map(timed),
    })),
  };
}

function timed<Figures extends Pick<TargetView, 'firstByteMs' | 'wholeMs'>>(figures: Figures) {
  return { ...figures, firstByteMs: figures.firstByteMs ?? null, wholeMs: figures.wholeMs ?? null };
}
