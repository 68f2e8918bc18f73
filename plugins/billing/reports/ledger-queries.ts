/** Ledger queries of the console and the commands, answered from the database, off the path of calls. */
import type { LedgerQueries, Reconciliation } from '../../common/domain/admin/ledger.ts';
import type { Database } from '../../common/domain/database.ts';
import type { AuditReport, Violation } from '../audit/audit.ts';
import { chargePage, findCharge } from './charges.ts';
import { ledgerPage } from './ledger-pages.ts';
import { listNodes, type Self } from './nodes.ts';
import { balancesOf, spendBetween, spendBy, totalsOf } from './sums.ts';

export interface LedgerQueriesOptions {
  readonly store: Database;
  readonly audit: () => Promise<AuditReport>;
  readonly self: () => Self;
}

export function openLedgerQueries({ store, audit, self }: LedgerQueriesOptions): LedgerQueries {
  const { orm, schema } = store;
  let checking: Promise<Reconciliation> | undefined;
  return {
    ledger: (accountId, filter, page) => ledgerPage(orm, schema, accountId, filter, page),
    charges: (filter, page) => chargePage(orm, schema, filter, page),
    charge: (requestId, accountId) => findCharge(orm, schema, requestId, accountId),
    spend: (filter, by, limit) => spendBy(orm, schema, filter, by, limit),
    spendBetween: (filter, bounds) => spendBetween(orm, schema, filter, bounds),
    totals: (span) => totalsOf(orm, schema, span),
    balances: (accountIds) => balancesOf(orm, schema, accountIds),
    // Reads every row, so only one runs at a time; concurrent callers share its result.
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
