/** The money desk: what people ask of the books, answered from the database, and nothing of it on a call's way. */
import type { MoneyDesk, Reconciliation } from '../../../core/desk.ts';
import type { Database } from '../../../core/vocabulary.ts';
import type { AuditReport, Violation } from '../audit.ts';
import { chargePage, findCharge } from './charges.ts';
import { ledgerPage } from './ledger-pages.ts';
import { listNodes, type Self } from './nodes.ts';
import { balancesOf, spendBy, totalsOf } from './sums.ts';

export interface DeskParts {
  readonly store: Database;
  readonly audit: () => Promise<AuditReport>;
  readonly self: () => Self;
}

export function openMoneyDesk({ store, audit, self }: DeskParts): MoneyDesk {
  const { orm, schema } = store;
  let checking: Promise<Reconciliation> | undefined;
  return {
    ledger: (accountId, filter, page) => ledgerPage(orm, schema, accountId, filter, page),
    charges: (filter, page) => chargePage(orm, schema, filter, page),
    charge: (requestId, accountId) => findCharge(orm, schema, requestId, accountId),
    spend: (filter, by, limit) => spendBy(orm, schema, filter, by, limit),
    totals: (span) => totalsOf(orm, schema, span),
    balances: (accountIds) => balancesOf(orm, schema, accountIds),
    // It reads every row, so one runs at a time, and whoever asks meanwhile is told the same.
    reconcile: () => {
      checking ??= audit()
        .then((report) => reconciled(report, self().at))
        .finally(() => {
          checking = undefined;
        });
      return checking;
    },
    nodes: () => listNodes(orm, schema, self()),
  };
}

function reconciled({ ok, violations, rows }: AuditReport, checkedAt: number): Reconciliation {
  return { checkedAt, ok, findings: violations.map(sentenceOf), rows };
}

function sentenceOf({ rule, what, subject }: Violation): string {
  return `${what.charAt(0).toUpperCase()}${what.slice(1)}: ${subject} (rule ${rule}).`;
}
