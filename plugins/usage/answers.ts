/** Makes the pages of reports from sums of calls. Pure. */
import type { SpendCell, SpendSums } from '../common/domain/admin/ledger.ts';
import type { ModelKind } from '../common/domain/models.ts';
import { money } from '../common/domain/money.ts';
import { type UsageClass, usageClasses } from '../common/domain/usage.ts';
import type { GroupName, ReportQuery } from './query.ts';
import type { Report } from './reports.ts';

export interface ReportPage {
  readonly object: 'page';
  readonly data: readonly Bucket[];
  readonly has_more: boolean;
  readonly next_page: string | null;
}

interface Bucket {
  readonly object: 'bucket';
  readonly start_time: number;
  readonly end_time: number;
  readonly results: readonly Record<string, unknown>[];
}

/** Every call's model is one of the groups of `cells`, as the first; then those by which the query groups, in its order. */
export function reportPage(
  report: Report,
  query: ReportQuery,
  cells: readonly SpendCell[],
  kindOf: (model: string) => ModelKind,
): ReportPage {
  const wanted = cells.filter(({ group, usage }) =>
    report.counts === undefined ? isOf(report, kindOf(group[0]!)) : report.counts(usage) > 0,
  );
  const bySlot = Map.groupBy(wanted, ({ slot }) => slot);
  return {
    object: 'page',
    data: query.bounds.slice(0, -1).map((start, slot) => ({
      object: 'bucket',
      start_time: start / 1000,
      end_time: query.bounds[slot + 1]! / 1000,
      results: resultsOf(report, query, bySlot.get(slot) ?? []),
    })),
    has_more: query.next !== undefined,
    next_page: query.next ?? null,
  };
}

function isOf({ kind }: Report, found: ModelKind): boolean {
  return kind === undefined || kind === found;
}

function resultsOf(report: Report, { groups }: ReportQuery, cells: readonly SpendCell[]): Record<string, unknown>[] {
  const places: readonly GroupName[] = ['model', ...groups.filter((name) => name !== 'model')];
  const names = groups.map((name) => ({ name, value: (cell: SpendCell) => cell.group[places.indexOf(name)]! }));
  const grouped = Map.groupBy(cells, (cell) => JSON.stringify(names.map(({ value }) => value(cell))));
  return [...grouped.values()]
    .map((same) => ({ cell: same[0]!, sums: addUp(same) }))
    .sort((left, right) => right.sums.requests - left.sums.requests)
    .map(({ cell, sums }) => ({
      object: report.object,
      ...report.members(sums),
      ...Object.fromEntries(report.groups.map((name) => [name, null])),
      ...Object.fromEntries(names.map(({ name, value }) => [memberOf(report, name), value(cell) || null])),
    }));
}

function memberOf({ form }: Report, name: GroupName): string {
  if (name === 'tag') return name;
  return [...form.groups].find(([, group]) => group === name)![0];
}

function addUp(cells: readonly SpendSums[]): SpendSums {
  const usage: { [K in UsageClass]?: number } = {};
  for (const cell of cells)
    for (const name of usageClasses) {
      const counted = cell.usage[name];
      if (counted !== undefined) usage[name] = (usage[name] ?? 0) + counted;
    }
  return {
    requests: cells.reduce((sum, { requests }) => sum + requests, 0),
    cost: money(cells.reduce((sum, { cost }) => sum + cost, 0n)),
    ownCost: money(cells.reduce((sum, { ownCost }) => sum + ownCost, 0n)),
    usage,
  };
}
