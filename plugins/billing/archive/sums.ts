/** Sums of calls where some of them are in archived files: the rollups stay, and rows are read from the files too. */
import { type SQL, sql } from 'drizzle-orm';
import { quarterMs, type Range, type SumTable, withinRange } from '../../common/rollups/table.ts';
import { callSums } from '../ledger/call-sums.ts';
import { tablesOf } from '../model/sql.ts';
import { callsIn, leastAfterMs } from './format.ts';
import type { ChargeStore } from './reader.ts';

/** The summed columns of a call, and how they are found. */
export const summedColumns = sql.raw(
  'id, account_id, key_id, model, provider, person, project, settled, cost, own_cost, absorbed, classes, created_at',
);

/** The sums of all calls: those that are rows, and those of a source with the same columns. */
export function callSumsBeside(archived: SQL): SumTable {
  return {
    ...callSums,
    given: (schema, span) => {
      // The name of the source must stand behind a table, and does behind a span.
      const calls = span === undefined ? tablesOf(schema)('calls') : callSums.given!(schema, span);
      const ended = span === undefined ? sql`` : sql`where ${withinRange(sql`created_at`, span)}`;
      return sql`(select ${summedColumns} from ${calls} union all
        select ${summedColumns} from ${archived} as archived ${ended}) as given`;
    },
  };
}

/** The sums for a query between these instants. Rows are read only of quarters that it has a part of. */
export async function callSumsOf(
  store: ChargeStore,
  bounds: readonly number[],
  accountId: string | undefined,
): Promise<SumTable> {
  const old = store.now() - leastAfterMs;
  const ranges = rowRanges(bounds).filter(([from]) => from < old);
  if (ranges.length === 0) return callSums;
  const lines = await store.archive.linesWithin(store.orm, store.schema, ranges, accountId);
  if (lines === undefined || lines.length === 0) return callSums;
  return callSumsBeside(callsIn(tablesOf(store.schema), lines));
}

function rowRanges(bounds: readonly number[]): Range[] {
  const [first, last] = [bounds[0]!, bounds.at(-1)!];
  if (bounds.slice(1, -1).some((at) => at % quarterMs !== 0)) return [[first, last]];
  const [low, high] = [Math.ceil(first / quarterMs) * quarterMs, Math.floor(last / quarterMs) * quarterMs];
  const ends: Range[] = [
    [first, Math.min(low, last)],
    [Math.max(high, first), last],
  ];
  return ends.filter(([from, until]) => from < until);
}
