/** Observed values by kind, with what their messages say. */

import type { LedgerQueries } from '../common/domain/admin/ledger.ts';
import type { AccountEnds, CappedKey, NoticeObservation, OldKey } from '../common/domain/admin/notices.ts';
import type { WindowView } from '../common/domain/ledger.ts';
import { formatUsd, type Money, money } from '../common/domain/money.ts';
import type { BudgetWarning } from '../common/domain/organizations/budgets.ts';
import type { CreditMonth } from '../common/domain/organizations/credit-lines.ts';
import { capSpend } from '../common/kit/money/cap-spend.ts';

const dayMs = 86_400_000;
const nanoPerUsd = 1_000_000_000n;
type EndingKey = Awaited<ReturnType<AccountEnds['endingKeys']>>[number];
type EndingPlan = Awaited<ReturnType<AccountEnds['endingPlans']>>[number];

export function lowBalance(balance: Money): NoticeObservation {
  const fields = { balance: formatUsd(balance) };
  return { kind: 'low_balance', subject: '', period: '', value: balance, of: nanoPerUsd, fields };
}

/** What keys have spent in the running periods of their caps. */
export async function capSharesOf(
  money: LedgerQueries,
  accountId: string,
  keys: readonly CappedKey[],
  when: Parameters<typeof capSpend>[3],
): Promise<NoticeObservation[]> {
  const found = await capSpend(money, accountId, keys, when);
  return found.map(({ key: { keyId, name, cap }, from, spent }) => {
    const amounts = { spent: formatUsd(spent), limit: formatUsd(cap.amount) };
    const fields = { key: name, ...amounts, period: cap.every };
    const period = new Date(from).toISOString();
    return { kind: 'cap_share', subject: keyId, period, value: spent, of: cap.amount, fields };
  });
}

/** Each share of a budget that is passed is observed by itself, once in each period. */
export function budgetShare({
  scope,
  rule,
  name,
  share,
  spent,
  ceiling,
  from,
  until,
}: BudgetWarning): NoticeObservation {
  const { of, models, tag, every } = rule;
  const period = `${new Date(from).toISOString()} ${every}`;
  const fields = {
    of,
    ...(models === undefined ? {} : { models: models.join(', ') }),
    ...(tag === undefined ? {} : { tag }),
    ...(name === undefined ? {} : { name }),
    ...{ period: every, spent: formatUsd(spent), limit: formatUsd(ceiling), share: String(share) },
    ...(until === undefined ? {} : { ends_at: new Date(until).toISOString() }),
  };
  return { kind: 'budget_share', subject: `${scope} ${share}`, period, value: spent, of: ceiling, fields };
}

export function creditOverdue({ month, used, paid, dueAt }: CreditMonth): NoticeObservation {
  const fields = { month, due: formatUsd(money(used - paid)), due_at: new Date(dueAt).toISOString() };
  return { kind: 'credit_overdue', subject: month, period: fields.due_at, value: used - paid, of: 1n, fields };
}

export function windowSharesOf(windows: readonly WindowView[]): NoticeObservation[] {
  const fuller = (one: WindowView, other: WindowView | undefined) =>
    other === undefined || one.spent * other.limit > other.spent * one.limit;
  // Plans of several sources have windows of one name: the fuller one counts.
  const byName = new Map<string, WindowView>();
  for (const window of windows)
    if (window.limit > 0n && fuller(window, byName.get(window.name))) byName.set(window.name, window);
  return [...byName.values()].map(({ name, limit, spent, startsAt, endsAt }) => ({
    ...{ kind: 'window_share', subject: name, period: new Date(startsAt).toISOString(), value: spent, of: limit },
    fields: {
      ...{ window: name, spent: formatUsd(spent), limit: formatUsd(limit) },
      ends_at: new Date(endsAt).toISOString(),
    },
  }));
}

export function keyExpiry({ keyId, name, prefix, endsAt }: EndingKey, now: number): NoticeObservation {
  const period = new Date(endsAt).toISOString();
  const fields = { key: name, prefix, ends_at: period };
  return { ...{ kind: 'key_expiry', subject: keyId, period, fields }, ...remaining(endsAt, now) };
}

/** Another secret begins another age. */
export function keyAge({ keyId, name, prefix, since }: OldKey, now: number): NoticeObservation {
  const period = new Date(since).toISOString();
  const fields = { key: name, prefix, since: period };
  return { kind: 'key_age', subject: keyId, period, fields, value: BigInt(now - since), of: BigInt(dayMs) };
}

export function planEnd({ plan, endsAt }: EndingPlan, renews: boolean, now: number): NoticeObservation {
  const period = new Date(endsAt).toISOString();
  const fields = { plan, ends_at: period, renews: String(renews) };
  return { ...{ kind: 'plan_end', subject: plan, period, fields }, ...remaining(endsAt, now) };
}

const remaining = (endsAt: number, now: number) => ({ value: BigInt(endsAt - now), of: BigInt(dayMs) });
