/** Asks the nodes to return unused leased money before a debit outside of calls. */
import type { Host } from '../../../core/contract/contract.ts';
import type { Database } from '../../common/domain/database.ts';
import type { Money } from '../../common/domain/money.ts';
import { lockedAt } from '../grants/balances.ts';
import type { LedgerStore } from '../ledger/store.ts';
import type { Leases } from './store.ts';

/**
 * How long money that living nodes may return is waited for. They answer in milliseconds where the database notifies them, in
 * half a second where they poll, in seconds where the database is slow.
 */
export const patienceMs = 5_000;
const pausesMs = [10, 20, 40, 80, 150, 200];
const longestPauseMs = 250;
/** Nodes that have returned everything may lease again for their own calls. */
const askAgainMs = 1_000;

export interface RecallTools {
  readonly host: Host;
  readonly database: Database;
  readonly store: LedgerStore & { readonly leases: Leases };
}

/**
 * Resolves when `amount` is free of leases, when living nodes have too little to return, or at `until` (monotonic). Only the
 * transaction can tell which: a process may lease the money again before.
 */
export async function recallLeases(
  { host, database, store }: RecallTools,
  accountId: string,
  amount: Money,
  until: number,
): Promise<void> {
  const { clock } = host;
  let requestedAt = Number.NEGATIVE_INFINITY;
  for (let tries = 0; ; tries += 1) {
    const { leased, byLiving } = await store.leases.leasedOf(accountId);
    const at = clock.now();
    const { balance, pool } = (await store.funds([accountId], at)).get(accountId)!;
    // Windows lock some of the money for this request; leases were cut without regard to them.
    const locked = pool === undefined ? 0n : lockedAt(pool.grants, pool.spent, at).locked;
    const free = balance - leased - locked;
    const now = clock.monotonic();
    if (free >= amount || free + byLiving < amount || now >= until) return;
    if (now - requestedAt >= askAgainMs) {
      requestedAt = now;
      await database.announce('lease wanted', ` ${accountId}`);
    }
    await pauseBefore(tries);
  }
}

/** Longer with each try. */
export function pauseBefore(tries: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, pausesMs[tries] ?? longestPauseMs));
}
