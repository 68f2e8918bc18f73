/** Does every charge's sum once more, from what its own row tells. */
import { sql } from 'drizzle-orm';
import { cost } from '../../core/money.ts';
import type { Usage } from '../../core/usage.ts';
import { decodePrice, decodeRatio, type PriceTexts } from './records.ts';
import { type Runner, rowsOf, tablesOf } from './sql.ts';

export const chargeRule = { rule: 'M9', what: 'a charge is not what its own formula comes to' };

interface ChargeRow {
  readonly seq: string;
  readonly revenue: string;
  readonly usage: Usage;
  readonly price: PriceTexts;
  readonly ratio: string;
}

const pageRows = 5_000;

/** The rows whose usage × price × ratio is another amount. A charge that was absurd is its hold: that has no formula. */
export async function recountCharges(runner: Runner, schema: string): Promise<{ subject: string }[]> {
  const wrong: { subject: string }[] = [];
  for (let after = '0'; ; ) {
    const rows = await readPage(runner, schema, after);
    for (const row of rows) if (!isRight(row)) wrong.push({ subject: `row ${row.seq}` });
    if (rows.length < pageRows) return wrong;
    after = rows.at(-1)!.seq;
  }
}

function readPage(runner: Runner, schema: string, after: string): Promise<ChargeRow[]> {
  return rowsOf<ChargeRow>(
    runner,
    sql`select seq::text as seq, revenue::text as revenue, detail->'usage' as usage, detail->'price' as price,
          detail->>'ratio' as ratio
        from ${tablesOf(schema)('ledger')}
        where kind = 'SETTLE' and detail->>'reason' <> 'absurd' and seq > ${after}::bigint order by seq limit ${pageRows}::int`,
  );
}

function isRight({ revenue, usage, price, ratio }: ChargeRow): boolean {
  try {
    return cost(usage, decodePrice(price), decodeRatio(ratio)) === BigInt(revenue);
  } catch {
    // A count, price or ratio that cannot be read is none.
    return false;
  }
}
