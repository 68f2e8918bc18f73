/** The vendors behind the gateway: their keys' health, taking them out of use, and testing whether they answer. */

import { z } from '@hono/zod-openapi';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { UpstreamView } from '../../../common/domain/admin/upstreams.ts';
import { ledgerQueries, requestQueries, upstreamAdmin, upstreamProbes } from '../../services.ts';
import { requestSums, sumsJson } from '../request-rows.ts';
import { changesBetween } from '../routing/audit-changes.ts';
import { type ConsoleServices, need, nothingHere } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, done, hourMs, reasonInput, takes, usage, usd, writerOf } from '../schemas.ts';
import { moneyJson } from '../spend.ts';

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
    ownCost: usd
      .nullable()
      .describe('What the calls of the last hour cost the operator; null: not known of all of them.'),
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
    error: z.string().nullable().describe('Error of the vendor, without keys and addresses.'),
    text: z.string().describe('The beginning of what it said.'),
    usage,
  })
  .openapi('UpstreamTest');

const provider = z.object({ provider: z.string().min(1).max(100) });
const change = z.strictObject({
  credential: z.string().min(1).max(120).optional().describe('One key of it; without, the whole provider.'),
  reason: reasonInput,
});

const list = route('get', '/admin/upstreams', 'Vendors and their keys', answers(z.object({ rows: z.array(upstream) })));
const enable = route(
  'post',
  '/admin/upstreams/{provider}/enable',
  'Take a vendor, or one of its keys, into use again',
  answers(done),
  { params: provider, body: takes(change) },
);
const disable = route(
  'post',
  '/admin/upstreams/{provider}/disable',
  'Take a vendor, or one of its keys, out of use',
  answers(done),
  { params: provider, body: takes(change) },
);
const wake = route(
  'post',
  '/admin/upstreams/{provider}/wake',
  "End the rests of a vendor's keys and close the circuits of its models",
  answers(done),
  { params: provider, body: takes(z.strictObject({ reason: reasonInput })) },
);

const choices = route(
  'get',
  '/admin/upstreams/{provider}/choices',
  'Models of the catalogue by which a vendor can be tested',
  answers(
    z.object({
      rows: z.array(z.object({ model: z.string(), upstreamModel: z.string(), protocols: z.array(z.string()) })),
    }),
  ),
  { params: provider },
);
const test = route(
  'post',
  '/admin/upstreams/{provider}/test',
  'Make the smallest real call to a vendor, by one of its keys, charged to no account',
  answers(tested),
  {
    params: provider,
    body: takes(
      z.strictObject({
        credential: z.string().min(1).max(120),
        model: z.string().min(1).max(200).describe('As the catalogue names it.'),
        protocol: z.string().min(1).max(40).optional().describe('One that the vendor speaks; by default the first.'),
      }),
    ),
  },
);

/** Each costs the operator a few tokens. */
const testsPerMinute = 30;

export function upstreamRoutes(services: ConsoleServices) {
  return new Routes(services)
    .read(list, async () => {
      const until = services.clock.now() + 1;
      const span = { from: until - hourMs, until };
      const [groups, spend] = await Promise.all([
        services.find(requestQueries)?.groups(span, 'provider', 500),
        services.find(ledgerQueries)?.spend(span, 'provider', 500),
      ]);
      const traffic = new Map(groups?.map((sums) => [sums.group, sums]));
      const costs = new Map(spend?.map((sums) => [sums.group, moneyJson(sums).ownCost]));
      const rows = need(services, upstreamAdmin)
        .list()
        .map((view) => {
          const sums = traffic.get(view.provider);
          const lastHour = sums === undefined ? null : sumsJson(sums);
          return {
            ...upstreamJson({ ...view, targets: view.targets ?? [] }),
            lastHour,
            ownCost: costs.get(view.provider) ?? null,
          };
        });
      return { rows };
    })
    .action(enable, ({ param, json }) => setDisabled(services, param.provider, json, false))
    .action(disable, ({ param, json }) => setDisabled(services, param.provider, json, true))
    .action(wake, ({ param: { provider }, json: { reason } }) => {
      known(services, provider, undefined);
      return {
        action: 'upstream.wake',
        subject: provider,
        reason,
        run: async () => need(services, upstreamAdmin).clearCooldown(provider),
      };
    })
    .read(choices, ({ param: { provider } }) => {
      const rows = need(services, upstreamProbes).choices(provider);
      return { rows: rows.map((row) => ({ ...row, protocols: [...row.protocols] })) };
    })
    .action(test, ({ param: { provider }, json, c }) => {
      const probes = need(services, upstreamProbes);
      const retryAfterMs = services.throttle.take('test upstreams', testsPerMinute, 60_000);
      if (retryAfterMs > 0)
        throw new GatewayError('rate_limited', 'Many tests were made in this minute; wait a little.', {
          retryAfterMs,
        });
      return {
        action: 'upstream.test',
        subject: json.credential,
        reason: json.model,
        run: async () => testJson(await probes.probe({ ...json, provider }, c.env.send)),
        outcome: ({ ok }) => (ok ? 'done' : 'failed'),
      };
    });
}

const testJson = writerOf(tested);
const upstreamJson = writerOf(upstream.omit({ lastHour: true, ownCost: true }));

function setDisabled(
  services: ConsoleServices,
  provider: string,
  { credential, reason }: z.output<typeof change>,
  disabled: boolean,
) {
  const view = known(services, provider, credential);
  const before = credential === undefined ? view : view.keys.find((key) => key.credential === credential)!;
  const run = () => need(services, upstreamAdmin).setDisabled(provider, credential, disabled);
  const changes = changesBetween({ disabled: before.disabled }, { disabled });
  const action = disabled ? 'upstream.disable' : 'upstream.enable';
  return { action, subject: credential ?? provider, reason, changes, run };
}

function known(services: ConsoleServices, name: string, credential: string | undefined): UpstreamView {
  const view = need(services, upstreamAdmin)
    .list()
    .find((upstream) => upstream.provider === name);
  if (view === undefined) throw nothingHere('upstream', 'provider');
  if (credential !== undefined && !view.keys.some((key) => key.credential === credential))
    throw nothingHere('upstream key', 'credential');
  return view;
}
