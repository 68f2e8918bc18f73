/** The sums that are kept of calls: what pages and reports tell of usage and money. */
import { sql } from 'drizzle-orm';
import { usageClasses } from '../../common/domain/usage.ts';
import type { SumTable } from '../../common/kit/sums/table.ts';

const ofCharged = sql`filter (where settled)`;

export const callSums: SumTable = {
  name: 'call_sums',
  rows: 'calls',
  at: sql`created_at`,
  timeIndex: 'calls_at',
  dimensions: ['account_id', 'key_id', 'model', 'provider'].map((name) => ({
    name,
    value: sql.raw(name),
    none: sql`''`,
  })),
  measures: [
    { name: 'charged', sum: sql`nullif(count(*) ${ofCharged}, 0)` },
    { name: 'cost', sum: sql`sum(cost)` },
    { name: 'own_cost', sum: sql`sum(own_cost) ${ofCharged}` },
    { name: 'own_unknown', sum: sql`nullif(count(*) filter (where settled and own_cost is null), 0)` },
    { name: 'absorbed', sum: sql`nullif(sum(absorbed), 0)` },
    ...usageClasses.map((name) => ({ name, sum: sql`sum((classes->>${sql.raw(`'${name}'`)})::bigint) ${ofCharged}` })),
  ],
};
