/** What an account's pool consists of: each grant with its rest, each window with what was spent, the plan's term. */
import { type Money, money } from '../../core/money.ts';
import type { GrantView, PoolView, WindowView } from '../../core/vocabulary.ts';
import { remainingIn } from './draws.ts';
import type { Entries } from './entries.ts';
import { type GrantRow, readGrants } from './grant-rows.ts';
import { lockedAt, windowsAt } from './pots.ts';
import { isRunning } from './terms.ts';

export async function viewPool(entries: Entries): Promise<PoolView> {
  const { pots, spent } = await entries.pool();
  const { locked } = lockedAt(pots, spent, entries.at);
  const expiring = new Map(pots.map((pot) => [pot.grantId, pot]));
  const rows = await readGrants(
    entries.runner,
    entries.schema,
    pots.map(({ grantId }) => grantId),
  );
  const wallet = money(entries.balance + entries.held - remainingIn(pots));
  const byId = new Map(rows.map((row) => [row.id, row]));
  const windows = new Map<string, WindowView>();
  for (const pot of pots) {
    if (pot.expiresAt <= entries.at) continue;
    for (const { name, limit, start, end, key } of windowsAt(pot, entries.at)) {
      windows.set(key, { name, limit, spent: spent.get(key) ?? money(0n), startsAt: start, endsAt: end });
    }
  }
  const term = await entries.tables.terms.last(entries.at);
  return {
    balance: entries.balance,
    spendable: money(entries.balance - locked),
    held: entries.held,
    grants: [
      ...Array.from(expiring.values(), (pot) => viewOf(byId.get(pot.grantId)!, pot.remaining)),
      ...(await lasting(entries, wallet)),
    ],
    windows: [...windows.values()],
    term: isRunning(term, entries.at) ? term : undefined,
  };
}

/**
 * The grants that do not expire and of which something is left, oldest first. They are one heap of money, of which `wallet`
 * is left, spent from the oldest on: so what is left is the youngest of it.
 */
export async function lasting(entries: Entries, wallet: Money): Promise<GrantView[]> {
  const found: GrantView[] = [];
  let left: bigint = wallet;
  for (const row of await entries.tables.lasting()) {
    if (left <= 0n) break;
    const most = BigInt(row.amount) - BigInt(row.paid_out);
    const remaining = most < left ? most : left;
    left -= remaining;
    if (remaining > 0n) found.unshift(viewOf(row, money(remaining)));
  }
  return found;
}

function viewOf(row: GrantRow, remaining: Money): GrantView {
  return {
    id: row.id,
    kind: row.kind,
    reason: row.reason,
    reference: row.reference,
    amount: money(BigInt(row.amount)),
    remaining,
    createdAt: Number.parseInt(row.created_at, 10),
    expiresAt: row.expires_at === null ? undefined : Number.parseInt(row.expires_at, 10),
  };
}
