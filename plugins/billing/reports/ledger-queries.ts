/** Ledger queries of the console and the commands, answered from the database, off the path of calls. */
import type { LedgerQueries, Reconciliation } from '../../common/domain/admin/ledger.ts';
import type { ChargeStore } from '../archive/reader.ts';
import { callSumsOf } from '../archive/sums.ts';
import type { AuditReport, Violation } from '../audit/audit.ts';
import { chargesOf, findCharge } from './charges.ts';
import { ledgerPage } from './ledger-pages.ts';
import { listNodes, type Self } from './nodes.ts';
import { balancesOf, spendBetween, spendBy, spendOfGroups, spendTable, totalsOf } from './sums.ts';

export interface LedgerQueriesOptions {
  readonly store: ChargeStore;
  readonly audit: () => Promise<AuditReport>;
  readonly self: () => Self;
  readonly journal: LedgerQueries['journal'];
  /** Called when the ledger does not add up. */
  readonly mismatch: (findings: number) => void;
}

export function openLedgerQueries({ store, audit, self, journal, mismatch }: LedgerQueriesOptions): LedgerQueries {
  const { orm, schema } = store;
  const sumsOf = (bounds: readonly number[], accountId?: string) => callSumsOf(store, bounds, accountId);
  let checking: Promise<Reconciliation> | undefined;
  return {
    ledger: (accountId, filter, page) => ledgerPage(store, accountId, filter, page),
    chargesOf: (requestIds, accountId) => chargesOf(store, requestIds, accountId),
    charge: (requestId, accountId) => findCharge(store, requestId, accountId),
    spend: async (filter, by, limit) =>
      spendBy(orm, schema, filter, by, limit, await sumsOf([filter.from, filter.until], filter.accountId)),
    spendBetween: async (filter, bounds) =>
      spendBetween(orm, schema, filter, bounds, await sumsOf(bounds, filter.accountId)),
    spendOfGroups: async (filter, bounds, by, groups) =>
      spendOfGroups(orm, schema, filter, bounds, by, groups, await sumsOf(bounds, filter.accountId)),
    spendTable: async (query) => spendTable(orm, schema, query, await sumsOf(query.bounds, query.accountId)),
    totals: async (span) => totalsOf(orm, schema, span, await sumsOf([span.from, span.until])),
    balances: (accountIds) => balancesOf(orm, schema, accountIds),
    // Reads every row, so only one runs at a time; concurrent callers share its result.
    reconcile: () => {
      checking ??= audit()
        .then((report) => {
          if (!report.ok) mismatch(report.violations.length);
          return reconciled(report, self().at);
        })
        .finally(() => {
          checking = undefined;
        });
      return checking;
    },
    nodes: () => listNodes(orm, schema, self()),
    journal,
  };
}

function reconciled({ ok, violations, rows }: AuditReport, checkedAt: number): Reconciliation {
  return { checkedAt, ok, findings: violations.map(sentenceOf), rows };
}

function sentenceOf({ rule, what, subject }: Violation): string {
  return `${what.charAt(0).toUpperCase()}${what.slice(1)}: ${subject} (rule ${rule}).`;
}
