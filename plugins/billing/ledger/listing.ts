/** A view of an account's grants: the remaining amount of each, the spending in each window, the plan's term. */

import type { GrantView, PoolView, WindowView } from '../../common/domain/ledger.ts';
import { type Money, money } from '../../common/domain/money.ts';
import { remainingIn } from '../grants/allocations.ts';
import { lockedAt, windowsAt } from '../grants/balances.ts';
import { type GrantRow, readGrants } from '../grants/rows.ts';
import type { Entries } from './entries.ts';
import { isRunning } from './terms.ts';

export async function viewPool(entries: Entries): Promise<PoolView> {
  const { open, blocked } = entries;
  const { grants: grantBalances, spent } = await entries.pool();
  const { locked } = lockedAt(grantBalances, spent, entries.at);
  const rows = await readGrants(
    entries.runner,
    entries.schema,
    entries.accountId,
    grantBalances.map(({ grantId }) => grantId),
  );
  const wallet = money(entries.balance + entries.held - remainingIn(grantBalances));
  const byId = new Map(rows.map((row) => [row.id, row]));
  const windows = new Map<string, WindowView>();
  for (const grantBalance of grantBalances) {
    if (grantBalance.expiresAt <= entries.at) continue;
    for (const { name, limit, start, end, key } of windowsAt(grantBalance, entries.at)) {
      windows.set(key, { name, limit, spent: spent.get(key) ?? money(0n), startsAt: start, endsAt: end });
    }
  }
  const term = await entries.tables.terms.last(entries.at);
  return {
    balance: money(entries.balance - open),
    spendable: money(entries.balance - open - locked - blocked),
    held: money(entries.held + open),
    blocked,
    grants: [
      ...grantBalances.map(({ grantId, remaining }) => viewOf(byId.get(grantId)!, remaining)),
      ...(await listNonExpiring(entries, wallet)),
    ],
    windows: [...windows.values()],
    term: isRunning(term, entries.at) ? term : undefined,
  };
}

/**
 * The non-expiring grants with a remaining amount, oldest first. They form one wallet, spent oldest first, so what
 * remains of it belongs to the youngest grants.
 */
export async function listNonExpiring(entries: Entries, wallet: Money): Promise<GrantView[]> {
  const found: GrantView[] = [];
  let left: bigint = wallet;
  for (const row of await entries.tables.nonExpiring()) {
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
