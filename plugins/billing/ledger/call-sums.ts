/** The sums that are kept of calls: what pages and reports tell of usage and money. */
import { type SQL, sql } from 'drizzle-orm';
import { usageClasses } from '../../common/domain/usage.ts';
import { firstIdAt } from '../../common/kit/arrival.ts';
import { type Range, type SumTable, withinRange } from '../../common/rollups/table.ts';
import { tablesOf } from '../model/sql.ts';
import { callSumNames, longMs } from './batch-columns.ts';

const ofCharged = sql`filter (where settled)`;

export const callSums: SumTable = {
  name: 'call_sums',
  rows: 'calls',
  given: givenIn,
  at: sql`created_at`,
  dimensions: callSumNames.dimensions.map((name) => ({
    name,
    value: sql.raw(name),
    none: sql`''`,
    ...(name === 'person' || name === 'project' ? { later: name } : {}),
  })),
  measures: [
    { name: 'charged', sum: sql`nullif(count(*) ${ofCharged}, 0)`, isCount: true },
    { name: 'cost', sum: sql`sum(cost)` },
    { name: 'own_cost', sum: sql`sum(own_cost) ${ofCharged}` },
    { name: 'own_unknown', sum: sql`nullif(count(*) filter (where settled and own_cost is null), 0)` },
    { name: 'absorbed', sum: sql`nullif(sum(absorbed), 0)` },
    { name: 'uncosted', sum: sql`nullif(sum(cost) filter (where settled and own_cost is null), 0)` },
    ...usageClasses.map((name) => ({ name, sum: sql`sum((classes->>${sql.raw(`'${name}'`)})::bigint) ${ofCharged}` })),
  ],
};

/** The calls that ended within a span arrived in it or shortly before, or they are long. */
function givenIn(schema: string, span: Range | undefined): SQL {
  const calls = tablesOf(schema)('calls');
  if (span === undefined) return calls;
  const [from, until] = span;
  const ended = withinRange(sql`created_at`, span);
  return sql`(select * from ${calls} where id >= ${firstIdAt(Math.floor(from) - longMs)}::uuid and id < ${firstIdAt(until)}::uuid
        and ${ended} and is_long is null
      union all select * from ${calls} where ${ended} and is_long) as given`;
}
