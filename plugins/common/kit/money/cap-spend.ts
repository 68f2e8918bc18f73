/** What keys have spent in the running periods of their caps. */
import '../../../../core/tools/temporal.ts';
import type { KeyCap } from '../../domain/accounts.ts';
import type { LedgerQueries } from '../../domain/admin/ledger.ts';
import { type Money, zero } from '../../domain/money.ts';

interface Capped {
  readonly keyId: string;
  readonly cap: KeyCap;
}

/** A statement for each kind of period. */
export async function capSpend<Key extends Capped>(
  money: LedgerQueries,
  accountId: string,
  keys: readonly Key[],
  { now, zone = 'UTC' }: { readonly now: number; readonly zone: string | undefined },
): Promise<readonly { readonly key: Key; readonly from: number; readonly spent: Money }[]> {
  const found = [];
  for (const [every, ofPeriod] of Map.groupBy(keys, ({ cap }) => cap.every)) {
    const from = startOf(every, now, zone);
    const ids = ofPeriod.map(({ keyId }) => keyId);
    const groups = await money.spend({ accountId, keys: { ids }, from, until: now + 1 }, 'key', ids.length);
    const spent = new Map(groups.map(({ group, cost }) => [group, cost] as const));
    found.push(...ofPeriod.map((key) => ({ key, from, spent: spent.get(key.keyId) ?? zero })));
  }
  return found;
}

/** Where the period that contains `at` begins, by the calendar of the zone. Weeks begin on Monday. */
function startOf(every: KeyCap['every'], at: number, zone: string): number {
  if (every === 'ever') return 0;
  const day = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(zone).toPlainDate();
  const starts = {
    day: () => day,
    week: () => day.subtract({ days: day.dayOfWeek - 1 }),
    month: () => day.with({ day: 1 }),
  };
  return starts[every]().toZonedDateTime(zone).epochMilliseconds;
}
