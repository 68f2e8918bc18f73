/** Grant allocations: which grants paid which rows, computed under the account's lock in row order and stored. */
import { sql } from 'drizzle-orm';
import { type Money, money } from '../../common/domain/money.ts';
import { jsonOf, millisecondsOf, type Runner, rowsOf, tablesOf } from '../model/sql.ts';
import { allocate, type GrantAllocation } from './balances.ts';
import { type PoolState, readPools } from './funds.ts';

interface ChargeRow {
  readonly seq: string;
  readonly account_id: string;
  readonly cost: string;
  readonly held_at: string;
}

/** An allocation with its row and the time of the hold. */
export interface PlacedAllocation extends GrantAllocation {
  readonly seq: string;
  readonly heldAt: number;
}

/**
 * Allocates the charges of these rows to the accounts' expiring grants. `uncharged` is all money that each account had
 * before them. The accounts are locked, so all processes see one order of spending.
 */
export async function allocateCharges(
  transaction: Runner,
  schema: string,
  seqs: readonly string[],
  uncharged: ReadonlyMap<string, Money>,
): Promise<void> {
  const charges = await readCharges(transaction, schema, seqs);
  const accountIds = [...new Set(charges.map((charge) => charge.account_id))];
  const times = [...new Set(charges.map((charge) => Number.parseInt(charge.held_at, 10)))];
  const pools = await readPools(transaction, schema, accountIds, times);
  const placed = placeAllocations(
    charges.map(({ seq, account_id: accountId, cost, held_at: heldAt }) => {
      return { seq, accountId, cost: BigInt(cost), heldAt: Number.parseInt(heldAt, 10) };
    }),
    pools,
    uncharged,
  );
  await saveAllocations(transaction, schema, placed);
}

/** A charge in row order, with the time of its hold. */
export interface Charge {
  readonly seq: string;
  readonly accountId: string;
  readonly cost: bigint;
  readonly heldAt: number;
}

/** Determines which grants pay these charges. Changes `pools`. Pure. */
export function placeAllocations(
  charges: readonly Charge[],
  pools: ReadonlyMap<string, PoolState>,
  uncharged: ReadonlyMap<string, bigint>,
): PlacedAllocation[] {
  const placed: PlacedAllocation[] = [];
  const left = new Map(uncharged);
  for (const { seq, accountId, cost, heldAt } of charges) {
    const { grants: grantBalances, spent } = pools.get(accountId)!;
    const before = left.get(accountId)!;
    const wallet = before - remainingIn(grantBalances);
    for (const each of allocate(grantBalances, spent, wallet, cost, heldAt)) placed.push({ ...each, seq, heldAt });
    left.set(accountId, before - cost);
  }
  return placed;
}

/** The rows in order, each with the time of its request's hold, which determines its grants and windows. */
function readCharges(transaction: Runner, schema: string, seqs: readonly string[]): Promise<ChargeRow[]> {
  const table = tablesOf(schema);
  return rowsOf<ChargeRow>(
    transaction,
    sql`select charge.seq::text as seq, charge.account_id, charge.revenue::text as cost,
          ${millisecondsOf(sql`calls.held_at`)} as held_at
        from json_array_elements_text(${jsonOf(seqs)}) as given (seq)
        join ${table('ledger')} as charge on charge.seq = given.seq::bigint
        join ${table('calls')} as calls on calls.id = charge.request_id
        order by charge.seq`,
  );
}

/** Stores allocations and subtracts them from their grants. */
export async function saveAllocations(
  transaction: Runner,
  schema: string,
  allocations: readonly PlacedAllocation[],
): Promise<void> {
  if (allocations.length === 0) return;
  const table = tablesOf(schema);
  const given = allocations.map(({ seq, grant: grantBalance, amount, heldAt }) => {
    return {
      seq,
      grant: grantBalance.grantId,
      amount: amount.toString(),
      source: grantBalance.windows?.source,
      at: heldAt,
    };
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

/** The total remaining in these grants. */
export function remainingIn(grantBalances: Iterable<{ readonly remaining: Money }>): Money {
  let sum = 0n;
  for (const { remaining } of grantBalances) sum += remaining;
  return money(sum);
}
