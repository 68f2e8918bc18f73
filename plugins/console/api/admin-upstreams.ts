/** The vendors behind the gateway: their keys' health, and taking them out of use. */
import { createRoute, z } from '@hono/zod-openapi';
import type { TargetView, UpstreamView } from '../../../core/desk.ts';
import { requestDesk, upstreamDesk } from '../desks.ts';
import { requestSums, tellSums } from './request-rows.ts';
import { audited, type Console, need, nothingHere, router } from './router.ts';
import { answers, done, hourMs, reasonAsked, takes } from './words.ts';

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
  })
  .openapi('Upstream');

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
  summary: "End the rests of a vendor's keys",
  request: { params: provider, body: takes(z.strictObject({ reason: reasonAsked })) },
  responses: answers(done),
});

export function upstreamRoutes(hall: Console) {
  return router()
    .openapi(list, async (ask) => {
      const until = hall.clock.now() + 1;
      const groups = await hall.find(requestDesk)?.groups({ from: until - hourMs, until }, 'provider', 500);
      const traffic = new Map(groups?.map((sums) => [sums.group, sums]));
      const rows = need(hall, upstreamDesk)
        .list()
        .map((view) => {
          const sums = traffic.get(view.provider);
          return { ...tellUpstream(view), lastHour: sums === undefined ? null : tellSums(sums) };
        });
      return ask.json({ rows }, 200);
    })
    .openapi(enable, async (ask) => {
      const { credential, reason } = ask.req.valid('json');
      const name = known(hall, ask.req.valid('param').provider, credential);
      const subject = credential ?? name;
      await audited(hall, ask, { action: 'upstream.enable', subject, reason }, () =>
        need(hall, upstreamDesk).setDisabled(name, credential, false),
      );
      return ask.json({ ok: true } as const, 200);
    })
    .openapi(disable, async (ask) => {
      const { credential, reason } = ask.req.valid('json');
      const name = known(hall, ask.req.valid('param').provider, credential);
      const subject = credential ?? name;
      await audited(hall, ask, { action: 'upstream.disable', subject, reason }, () =>
        need(hall, upstreamDesk).setDisabled(name, credential, true),
      );
      return ask.json({ ok: true } as const, 200);
    })
    .openapi(wake, async (ask) => {
      const name = known(hall, ask.req.valid('param').provider, undefined);
      const { reason } = ask.req.valid('json');
      await audited(hall, ask, { action: 'upstream.wake', subject: name, reason }, async () =>
        need(hall, upstreamDesk).wake(name),
      );
      return ask.json({ ok: true } as const, 200);
    });
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
