/** How models, and the vendors of one model, have done in the last seven days: success, first byte, speed. */
import { z } from '@hono/zod-openapi';
import { noiseCauses, ownCauses, type RequestSums } from '../../../common/domain/admin/requests.ts';
import { mean } from '../../../common/domain/money.ts';
import { ledgerQueries, requestQueries } from '../../services.ts';
import { type ConsoleServices, need } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, dayMs, id, usd, usdOrNull } from '../schemas.ts';

const measured = z.object({
  succeeded: z.number().nullable().describe('Share of the calls that were served, from 0 to 1; null: there were none.'),
  firstByteP50Ms: z.number().nullable(),
  firstByteP95Ms: z.number().nullable(),
  tokensPerSecond: z
    .number()
    .nullable()
    .describe('About so many tokens a second come behind the first byte: the mean answer in the median time.'),
});
const models = route(
  'get',
  '/models/comparison',
  'How each model has done in the last seven days, over all traffic',
  answers(z.object({ rows: z.array(measured.extend({ model: z.string() })) })),
);
const vendors = route(
  'get',
  '/admin/monitor/vendors',
  'How each vendor of a model has done in the last seven days',
  answers(
    z.object({
      rows: z.array(
        measured.extend({
          provider: z.string(),
          requests: z.number(),
          ownCostPerRequest: usd.nullable().describe('null: the own cost of a call is not known.'),
        }),
      ),
    }),
  ),
  { query: z.object({ model: id }) },
);
const days = 7;
const mostGroups = 200;
/** A shorter time behind the first byte is that of answers that come whole. */
const leastMs = 100;

export function comparisonRoutes(services: ConsoleServices) {
  return new Routes(services)
    .read(models, async () => ({
      rows: (await measuredIn(services, 'model', undefined)).map(({ group, measures }) => ({
        model: group,
        ...measures,
      })),
    }))
    .read(vendors, async ({ query: { model } }) => ({
      rows: (await measuredIn(services, 'provider', model)).map(({ group, measures, requests, cost }) => ({
        provider: group,
        ...measures,
        requests,
        ownCostPerRequest: usdOrNull(cost),
      })),
    }));
}

async function measuredIn(services: ConsoleServices, by: 'model' | 'provider', model: string | undefined) {
  const until = services.clock.now() + 1;
  const span = { from: until - days * dayMs, until };
  const groups = await need(services, requestQueries).groups(
    { ...span, model, withoutCauses: [...ownCauses, ...noiseCauses] },
    by,
    mostGroups,
  );
  const names = groups.map(({ group }) => group);
  const charged =
    names.length === 0
      ? []
      : ((await services.find(ledgerQueries)?.spendOfGroups({ model }, [span.from, span.until], by, names)) ?? []);
  const sums = new Map(charged.map((row) => [row.group, row]));
  return groups.map(({ group, ...row }) => {
    const spent = sums.get(group);
    const known = spent === undefined ? 0 : spent.requests - (spent.ownCostUnknown ?? 0);
    const output = spent === undefined ? 0 : outputOf(spent.usage) / Math.max(1, spent.requests);
    return {
      group,
      requests: row.requests,
      measures: measuresOf(row, output),
      cost: spent === undefined || known === 0 ? undefined : mean(spent.ownCost, known),
    };
  });
}

const outputOf = ({ output = 0, reasoning = 0 }: Readonly<Record<string, number>>) => output + reasoning;

function measuresOf({ results, firstByte, total }: RequestSums, output: number): z.infer<typeof measured> {
  // What clients got wrong says nothing of the model.
  const served = results.ok + results.upstream_error;
  const restMs = (total.p50 ?? 0) - (firstByte.p50 ?? 0);
  const isKnown = output > 0 && firstByte.p50 !== undefined && restMs >= leastMs;
  return {
    succeeded: served === 0 ? null : results.ok / served,
    firstByteP50Ms: firstByte.p50 ?? null,
    firstByteP95Ms: firstByte.p95 ?? null,
    tokensPerSecond: isKnown ? Math.round((output * 10_000) / restMs) / 10 : null,
  };
}
