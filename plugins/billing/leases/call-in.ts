/** Before money is taken from an account beside its calls: asks the nodes for what they have leased and do not use. */
import type { Host } from '../../../core/contract.ts';
import type { Money } from '../../../core/money.ts';
import type { Database } from '../../../core/vocabulary.ts';
import { lockedAt } from '../pots.ts';
import type { Store } from '../store.ts';

/** Nodes answer in milliseconds where the database notifies them, in half a second where they poll. */
const pausesMs = [10, 20, 40, 80, 150, 200, 250, 250];

export interface CallInTools {
  readonly host: Host;
  readonly database: Database;
  readonly store: Store;
}

/**
 * Resolves when `amount` is free of leases (true), or nothing more will come. Whether it is there is for the transaction to
 * say: a process may lease it again before.
 */
export async function callIn(
  { host, database, store }: CallInTools,
  accountId: string,
  amount: Money,
): Promise<boolean> {
  let told = false;
  for (const pauseMs of pausesMs) {
    const { leased, byLiving } = await store.leases.leasedOf(accountId);
    const now = host.clock.now();
    const { balance, pool } = (await store.funds([accountId], now)).get(accountId)!;
    // Windows keep money from some of what asks; leases were cut beside that.
    const locked = pool === undefined ? 0n : lockedAt(pool.pots, pool.spent, now).locked;
    const isFree = balance - leased - locked >= amount;
    if (byLiving === 0n || isFree || balance < amount) return isFree;
    if (!told) await database.announce('lease wanted', ` ${accountId}`);
    told = true;
    await new Promise((resolve) => void setTimeout(resolve, pauseMs));
  }
  return false;
}
