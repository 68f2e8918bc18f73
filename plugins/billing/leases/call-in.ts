/** Before money is taken from an account beside its calls: asks the nodes for what they have leased and do not use. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Host } from '../../../core/contract.ts';
import type { Money } from '../../../core/money.ts';
import type { Database } from '../../../core/vocabulary.ts';
import { readFunds } from '../funds.ts';
import { lockedAt } from '../pots.ts';
import { leasedOf } from './store.ts';

/** Nodes answer in milliseconds where the database notifies them, in half a second where they poll. */
const pausesMs = [10, 20, 40, 80, 150, 200, 250, 250];

/** Resolves when `amount` is free of leases, or nothing more will come. Whether it is there is for the transaction to say. */
export async function callIn(host: Host, store: Database, accountId: string, amount: Money): Promise<void> {
  const { orm, schema } = store;
  let told = false;
  for (const pauseMs of pausesMs) {
    const { leased, byLiving } = await leasedOf(orm, schema, accountId);
    const now = host.clock.now();
    const { balance, pool } = (await readFunds(orm, schema, [accountId], now)).get(accountId)!;
    // Windows keep money from some of what asks; leases were cut beside that.
    const locked = pool === undefined ? 0n : lockedAt(pool.pots, pool.spent, now).locked;
    if (byLiving === 0n || balance - leased - locked >= amount || balance < amount) return;
    if (!told) await store.announce('lease wanted', ` ${accountId}`);
    told = true;
    await pause(pauseMs);
  }
}
