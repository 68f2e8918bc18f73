/** Grant allocations: which grants paid which rows, computed under the account's lock in row order and stored. */
import { sql } from 'drizzle-orm';
import { type Money, money } from '../../common/domain/money.ts';
import { jsonOf, type Runner, tablesOf } from '../model/sql.ts';
import { allocate, type GrantAllocation } from './balances.ts';
import { type PoolState, readPools } from './funds.ts';

/** A charge as the database gives it. */
export interface ChargeRow {
  readonly seq: string;
  readonly accountId: string;
  readonly cost: string;
  readonly heldAt: string;
}

/** An allocation with its row and the time of the hold. */
export interface PlacedAllocation extends GrantAllocation {
  readonly accountId: string;
  readonly seq: string;
  readonly heldAt: number;
}

/**
 * Allocates charges, in the order of their rows, to the accounts' expiring grants. `uncharged` is all money that each account had
 * before them. The accounts are locked, so all processes see one order of spending.
 */
export async function allocateCharges(
  transaction: Runner,
  schema: string,
  rows: readonly ChargeRow[],
  uncharged: ReadonlyMap<string, Money>,
): Promise<void> {
  const charges = rows.map(({ seq, accountId, cost, heldAt }): Charge => {
    return { seq, accountId, cost: BigInt(cost), heldAt: Number.parseInt(heldAt, 10) };
  });
  const accountIds = [...new Set(charges.map(({ accountId }) => accountId))];
  const times = [...new Set(charges.map(({ heldAt }) => heldAt))];
  const pools = await readPools(transaction, schema, accountIds, times);
  await saveAllocations(transaction, schema, placeAllocations(charges, pools, uncharged));
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
    for (const each of allocate(grantBalances, spent, wallet, cost, heldAt))
      placed.push({ ...each, accountId, seq, heldAt });
    left.set(accountId, before - cost);
  }
  return placed;
}

/** Stores allocations and subtracts them from their grants. */
export async function saveAllocations(
  transaction: Runner,
  schema: string,
  allocations: readonly PlacedAllocation[],
): Promise<void> {
  if (allocations.length === 0) return;
  const table = tablesOf(schema);
  const given = allocations.map(({ accountId, seq, grant: grantBalance, amount, heldAt }) => {
    return {
      account: accountId,
      seq,
      grant: grantBalance.grantId,
      amount: amount.toString(),
      source: grantBalance.windows?.source,
      at: heldAt,
    };
  });
  await transaction.execute(
    sql`with given as (
          select * from json_to_recordset(${jsonOf(given)}) as given (account text, seq bigint, "grant" uuid, amount bigint, source text, at bigint)
        ), written as (
          insert into ${table('allocations')} (account_id, seq, grant_id, amount, source, held_at)
          select account, seq, "grant", amount, source, to_timestamp(at / 1000.0) from given
        )
        update ${table('grant_balances')} as known set remaining = remaining - taken.amount
        from (select account, "grant", sum(amount)::bigint as amount from given group by 1, 2) as taken
        where known.account_id = taken.account and known.grant_id = taken."grant"`,
  );
}

/** The total remaining in these grants. */
export function remainingIn(grantBalances: Iterable<{ readonly remaining: Money }>): Money {
  let sum = 0n;
  for (const { remaining } of grantBalances) sum += remaining;
  return money(sum);
}
