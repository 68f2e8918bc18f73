/** Credit lines of the database in memory: decisions, and what they have brought. */
import { type CreditGrant, type CreditRows, creditKind } from '../../plugins/billing/grants/credit-rows.ts';
import { money } from '../../plugins/common/domain/money.ts';
import type { MemoryLedger, StoredGrant } from './memory-ledger.ts';
import { putIn, type Undo } from './memory-undo.ts';

export function creditRowsOf(ledger: MemoryLedger, account: string, undo: Undo): CreditRows {
  const { grants, grantsById, grantBalances } = ledger;
  const { lines } = ledger.terms;
  return {
    line: async () => lines.get(account)?.at(-1),
    setLine: async ({ number, amount }) =>
      putIn(lines, account, [...(lines.get(account) ?? []), { number, amount }], undo),
    grants: async (since) =>
      [...grants.values()]
        .filter((grant) => grant.kind === creditKind && grant.account === account)
        .sort((left, right) => left.at - right.at || (left.id < right.id ? -1 : 1))
        .map((grant) => creditGrantOf(ledger, grant))
        .filter(({ monthEnd, used, paid }) => monthEnd > since || used !== paid),
    end: async (grantId, expiresAt) => {
      const held = grantBalances.draws.filter((draw) => draw.grantId === grantId).map(({ heldAt }) => heldAt + 1);
      undo.push(grantBalances.end(grantId, Math.max(expiresAt, ...held)));
    },
    paidOf: async (requestId) => {
      const charge = ledger.rows.find(({ request, kind }) => request === requestId && kind === 'CHARGE');
      const draws = grantBalances.draws.filter(
        ({ seq, grantId }) => seq === String(charge?.seq) && grantsById.get(grantId)!.kind === creditKind,
      );
      return draws.map(({ grantId, amount }) => ({
        reference: grantsById.get(grantId)!.reference,
        amount: money(amount),
      }));
    },
  };
}

/** What was used is the sum of what was drawn. */
export function creditGrantOf(ledger: MemoryLedger, { id, reference, amount, expiresAt }: StoredGrant): CreditGrant {
  const drawn = ledger.grantBalances.draws.filter(({ grantId }) => grantId === id);
  return {
    ...{ id, reference, amount: money(amount), used: money(drawn.reduce((sum, draw) => sum + draw.amount, 0n)) },
    ...{ paid: money(ledger.paidOutOf(id)), monthEnd: expiresAt! },
    expiresAt: ledger.grantBalances.byGrant.get(id)!.grant.expiresAt,
  };
}
