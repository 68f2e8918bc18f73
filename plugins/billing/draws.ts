/** Which grants paid which rows: worked out under the account's lock, in the order of the rows, and written down for good. */
import { sql } from 'drizzle-orm';
import { type Money, money } from '../../core/money.ts';
import { millisecondsOf, readPools } from './funds.ts';
import { type Draw, draw } from './pots.ts';
import { jsonOf, type Runner, rowsOf, tablesOf } from './sql.ts';

interface ChargeRow {
  readonly seq: string;
  readonly account_id: string;
  readonly cost: string;
  readonly held_at: string;
}

/** A draw with its row and the time at which the money was set aside. */
export interface PlacedDraw extends Draw {
  readonly seq: string;
  readonly heldAt: number;
}

/**
 * Draws the charges of these rows from the accounts' grants that expire. `uncharged` tells what each account had before
 * them, money set aside included. The rows' accounts are locked, so that there is one order of spending for all processes.
 */
export async function drawCharges(
  transaction: Runner,
  schema: string,
  seqs: readonly string[],
  uncharged: ReadonlyMap<string, Money>,
): Promise<void> {
  const charges = await readCharges(transaction, schema, seqs);
  const accountIds = [...new Set(charges.map((charge) => charge.account_id))];
  const times = [...new Set(charges.map((charge) => Number.parseInt(charge.held_at, 10)))];
  const pools = await readPools(transaction, schema, accountIds, times);
  const placed: PlacedDraw[] = [];
  const left = new Map<string, bigint>(uncharged);
  for (const { seq, account_id: accountId, cost, held_at: heldAt } of charges) {
    const { pots, spent } = pools.get(accountId)!;
    const before = left.get(accountId)!;
    const wallet = before - pots.reduce((sum, pot) => sum + pot.remaining, 0n);
    const at = Number.parseInt(heldAt, 10);
    for (const each of draw(pots, spent, wallet, BigInt(cost), at)) placed.push({ ...each, seq, heldAt: at });
    left.set(accountId, before - BigInt(cost));
  }
  await saveDraws(transaction, schema, placed);
}

/** The rows in their order, each with the time of its request's hold: by that its grants and windows are chosen. */
function readCharges(transaction: Runner, schema: string, seqs: readonly string[]): Promise<ChargeRow[]> {
  const ledger = tablesOf(schema)('ledger');
  return rowsOf<ChargeRow>(
    transaction,
    sql`select charge.seq::text as seq, charge.account_id, charge.revenue::text as cost,
          ${millisecondsOf(sql`coalesce(hold.created_at, charge.created_at)`)} as held_at
        from json_array_elements_text(${jsonOf(seqs)}) as given (seq)
        join ${ledger} as charge on charge.seq = given.seq::bigint
        left join ${ledger} as hold on hold.request_id = charge.request_id and hold.kind = 'HOLD'
        order by charge.seq`,
  );
}

/** Writes draws down and takes them out of what is left of their grants. */
export async function saveDraws(transaction: Runner, schema: string, draws: readonly PlacedDraw[]): Promise<void> {
  if (draws.length === 0) return;
  const table = tablesOf(schema);
  const given = draws.map(({ seq, pot, amount, heldAt }) => {
    return { seq, grant: pot.grantId, amount: amount.toString(), source: pot.windows?.source, at: heldAt };
  });
  await transaction.execute(
    sql`with given as (
          select * from json_to_recordset(${jsonOf(given)}) as given (seq bigint, "grant" uuid, amount bigint, source text, at bigint)
        ), written as (
          insert into ${table('draws')} (seq, grant_id, amount, source, held_at)
          select seq, "grant", amount, source, to_timestamp(at / 1000.0) from given
        )
        update ${table('pots')} as pots set remaining = remaining - taken.amount
        from (select "grant", sum(amount)::bigint as amount from given group by 1) as taken
        where pots.grant_id = taken."grant"`,
  );
}

/** What is left of these grants together. */
export function remainingIn(pots: Iterable<{ readonly remaining: Money }>): Money {
  let sum = 0n;
  for (const { remaining } of pots) sum += remaining;
  return money(sum);
}
