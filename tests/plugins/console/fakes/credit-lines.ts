/** Credit lines in memory: decisions alone. */
import { type Money, money } from '../../../../plugins/common/domain/money.ts';
import type { CreditLineAdmin, CreditLineView } from '../../../../plugins/common/domain/organizations/credit-lines.ts';

export function fakeCreditLines(): CreditLineAdmin {
  const lines = new Map<string, CreditLineView>();
  const none = { isStopped: false, stopsAt: undefined, months: [] };
  return {
    find: async (accountId) => lines.get(accountId),
    set: async (accountId: string, amount: Money) => {
      const line = { ...none, amount, left: amount };
      lines.set(accountId, { ...line, months: [monthOf(1), monthOf(0)] });
      return lines.get(accountId)!;
    },
    unpaid: async () => [],
  };
}

const monthOf = (index: number): CreditLineView['months'][number] => ({
  month: `2026-1${index}`,
  until: Date.UTC(2026, 10 + index, 1),
  dueAt: Date.UTC(2026, 10 + index, 15),
  used: money(5_000_000_000n),
  paid: money(index === 0 ? 2_000_000_000n : 0n),
  state: index === 0 ? 'overdue' : 'running',
});
