/** Ledger queries of the console and the commands, answered from the database, off the path of calls. */
import type { ChargeFilter, LedgerQueries, Reconciliation } from '../../common/domain/admin/ledger.ts';
import type { ChargeStore } from '../archive/reader.ts';
import { callSumsOf } from '../archive/sums.ts';
import type { AuditReport, Violation } from '../audit/audit.ts';
import { chargesOf, findCharge } from './charges.ts';
import { flowsOf } from './flows.ts';
import { ledgerPage } from './ledger-pages.ts';
import { listNodes, type Self } from './nodes.ts';
import { groupsLessRefunds, lessRefunds, type Refund, refundsIn, slotsLessRefunds } from './refunds.ts';
import {
  balancesOf,
  movementsIn,
  none,
  type SpendBy,
  spendBetween,
  spendBy,
  spendOfGroups,
  spendTable,
} from './sums.ts';
import { tagNames } from './tags.ts';

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
  let checking: Promise<Reconciliation> | undefined;
  return {
    ...rowsAndSums(store),
    charge: (requestId, accountId) => findCharge(store, requestId, accountId),
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

/** Pages read rows and sums by `orm`, if it is there. Single charges and balances are what refunds and grants are decided by. */
export function withPages(
  queries: LedgerQueries,
  store: ChargeStore,
  orm: ChargeStore['orm'] | undefined,
): LedgerQueries {
  if (orm === undefined) return queries;
  return { ...queries, pages: { ...queries, ...rowsAndSums({ ...store, orm }) } };
}

type RowsAndSums = Omit<LedgerQueries, 'pages' | 'charge' | 'balances' | 'reconcile' | 'nodes' | 'journal'>;

function rowsAndSums(store: ChargeStore): RowsAndSums {
  const { orm, schema } = store;
  const sumsOf = (bounds: readonly number[], accountId?: string) => callSumsOf(store, bounds, accountId);
  const between: LedgerQueries['spendBetween'] = async (filter, bounds) => {
    const sums = await sumsOf(bounds, filter.accountId);
    const [slots, refunds] = await Promise.all([
      spendBetween(orm, schema, filter, bounds, sums),
      refundsIn(store, { ...filter, ...spanOf(bounds) }),
    ]);
    return slotsLessRefunds(slots, refunds);
  };
  return {
    ledger: (accountId, filter, page) => ledgerPage(store, accountId, filter, page),
    chargesOf: (requestIds, accountId) => chargesOf(store, requestIds, accountId),
    spend: (filter, by, limit) => spendLessRefunds(store, filter, by, limit),
    spendBetween: between,
    spendOfGroups: async (filter, bounds, by, groups) => {
      const sums = await sumsOf(bounds, filter.accountId);
      const [found, refunds] = await Promise.all([
        spendOfGroups(orm, schema, filter, bounds, by, groups, sums),
        refundsIn(store, { ...filter, ...spanOf(bounds) }),
      ]);
      return groupsLessRefunds(found, refunds, { by, wanted: groups, bounds });
    },
    spendTable: async (query) => spendTable(orm, schema, query, await sumsOf(query.bounds, query.accountId)),
    tagNames: (accountId) => tagNames(orm, schema, accountId),
    totals: async (span) => {
      const bounds = [span.from, span.until];
      const [movements, calls] = await Promise.all([
        movementsIn(orm, schema, span),
        span.from < span.until ? between({}, bounds) : [none],
      ]);
      return { ...movements, calls: calls[0]! };
    },
    flows: (span) => flowsOf(orm, schema, span, (bounds) => sumsOf(bounds)),
  };
}

async function spendLessRefunds(store: ChargeStore, filter: ChargeFilter, by: SpendBy, limit: number) {
  const sums = await callSumsOf(store, [filter.from, filter.until], filter.accountId);
  const [groups, refunds] = await Promise.all([
    spendBy(store.orm, store.schema, filter, by, limit, sums),
    refundsIn(store, filter),
  ]);
  const byGroup = Map.groupBy(refunds, (refund) => groupOfRefund(refund, by));
  return groups.map((group) => lessRefunds(group, byGroup.get(group.group) ?? []));
}

const spanOf = (bounds: readonly number[]) => ({ from: bounds[0]!, until: bounds.at(-1)! });

const stepMs = { day: 86_400_000, hour: 3_600_000 } as const;

function groupOfRefund(refund: Refund, by: SpendBy): string {
  return by === 'day' || by === 'hour' ? String(Math.floor(refund.at / stepMs[by]) * stepMs[by]) : refund[by];
}

function reconciled({ ok, violations, rows }: AuditReport, checkedAt: number): Reconciliation {
  return { checkedAt, ok, findings: violations.map(sentenceOf), rows };
}

function sentenceOf({ rule, what, subject }: Violation): string {
  return `${what.charAt(0).toUpperCase()}${what.slice(1)}: ${subject} (rule ${rule}).`;
}
