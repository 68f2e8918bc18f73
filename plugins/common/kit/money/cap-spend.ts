/** What keys have spent in the running periods of their caps. */
import type { KeyCap } from '../../domain/accounts.ts';
import type { LedgerQueries } from '../../domain/admin/ledger.ts';
import { type Money, zero } from '../../domain/money.ts';

interface Capped {
  readonly keyId: string;
  readonly cap: KeyCap;
}

const dayMs = 86_400_000;

/** A statement for each kind of period. */
export async function capSpend<Key extends Capped>(
  money: LedgerQueries,
  accountId: string,
  keys: readonly Key[],
  now: number,
): Promise<readonly { readonly key: Key; readonly from: number; readonly spent: Money }[]> {
  const found = [];
  for (const [every, ofPeriod] of Map.groupBy(keys, ({ cap }) => cap.every)) {
    const from = startOf(every, now);
    const ids = ofPeriod.map(({ keyId }) => keyId);
    const groups = await money.spend({ accountId, keys: { ids }, from, until: now + 1 }, 'key', ids.length);
    const spent = new Map(groups.map(({ group, cost }) => [group, cost] as const));
    found.push(...ofPeriod.map((key) => ({ key, from, spent: spent.get(key.keyId) ?? zero })));
  }
  return found;
}

/** Where the period that contains `at` begins, by the calendar in UTC. */
function startOf(every: KeyCap['every'], at: number): number {
  const day = at - (((at % dayMs) + dayMs) % dayMs);
  const date = new Date(at);
  switch (every) {
    case 'day':
      return day;
    case 'week':
      // Weeks begin on Monday.
      return day - ((date.getUTCDay() + 6) % 7) * dayMs;
    case 'month':
      return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
    case 'ever':
      return 0;
  }
}
