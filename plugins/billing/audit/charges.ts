/** Recomputes the charge of every call from its own row. */
import { type SQL, sql } from 'drizzle-orm';
import { cost } from '../../common/domain/money.ts';
import type { Usage } from '../../common/domain/usage.ts';
import { decodePrice, decodeRatio, type PriceTexts } from '../model/records.ts';
import { type Runner, rowsOf } from '../model/sql.ts';

export const chargeRule = { rule: 'M9', what: 'a charge is not what its own formula comes to' };

interface ChargeRow {
  readonly id: string;
  readonly cost: string;
  readonly usage: Usage;
  readonly price: PriceTexts;
  readonly ratio: string;
}

const pageRows = 5_000;

/**
 * Calls with a cost other than usage × price × ratio. A charge limited to its hold follows no formula and is
 * skipped.
 */
export async function recountCharges(runner: Runner, calls: SQL): Promise<{ subject: string }[]> {
  const wrong: { subject: string }[] = [];
  for (let after = '00000000-0000-0000-0000-000000000000'; ; ) {
    const rows = await readPage(runner, calls, after);
    for (const row of rows) if (!isRight(row)) wrong.push({ subject: row.id });
    if (rows.length < pageRows) return wrong;
    after = rows.at(-1)!.id;
  }
}

function readPage(runner: Runner, calls: SQL, after: string): Promise<ChargeRow[]> {
  return rowsOf<ChargeRow>(
    runner,
    sql`select id::text as id, cost::text as cost, classes as usage, price, ratio from ${calls} as calls
        where settled and reason is distinct from 'absurd' and id > ${after}::uuid order by calls.id limit ${pageRows}::int`,
  );
}

function isRight({ cost: charged, usage, price, ratio }: ChargeRow): boolean {
  try {
    return cost(usage, decodePrice(price), decodeRatio(ratio)) === BigInt(charged);
  } catch {
    // An unreadable count, price or ratio fails the check.
    return false;
  }
}
