/**
 * Makes rollups again from the rows, in slices of time. Each slice is a transaction of its own, for which batches wait. It
 * leaves sums that are right as they are, so a rebuild may be interrupted and continued from any day.
 */
import { sql } from 'drizzle-orm';
import type { Orm } from '../domain/database.ts';
import { instantText } from '../kit/paging.ts';
import { ceiling } from './check.ts';
import { allDays, blocksOf, dayRange, type Slice, slicesOf } from './days.ts';
import { foldedOf, foldParts, summarizeNew } from './fold.ts';
import {
  addedWith,
  blockParts,
  blockSources,
  column,
  finePart,
  grouped,
  isOneOf,
  namesOf,
  type Range,
  rowShape,
  rowsWithin,
  type SumTable,
  withinRange,
} from './table.ts';

export interface RebuildOptions {
  /** Days since the epoch with the number of their rows, instead of all. */
  readonly days?: ReadonlyMap<number, number> | undefined;
  /** Wall-clock milliseconds: days that end before stay as they are. */
  readonly from?: number | undefined;
  /** Called after each day. */
  readonly progress?: ((progress: RebuildProgress) => void) | undefined;
}

export interface RebuildProgress {
  /** `2026-10-25`: a rebuild that is interrupted now may be continued from here. */
  readonly day: string;
  readonly done: number;
  readonly all: number;
}

/** Sums of deleted rows stay. */
export async function rebuildSums(
  orm: Orm,
  schema: string,
  sums: SumTable,
  { days: given, from = Number.NEGATIVE_INFINITY, progress }: RebuildOptions = {},
): Promise<void> {
  const counts = given ?? (await allDays(orm, schema, sums));
  const chosen = [...counts].filter(([day]) => dayRange(day)[1] > from);
  for (const [index, [day, rows]] of chosen.entries()) {
    for (const slice of slicesOf(day, rows)) await remakeSlice(orm, schema, sums, slice);
    progress?.({ day: instantText(dayRange(day)[0]).slice(0, 10), done: index + 1, all: chosen.length });
  }
  for (const range of blocksOf(chosen.map(([day]) => day)))
    for (const part of blockParts) await remakeSlice(orm, schema, sums, { range, parts: [part] }, blockSources);
  await summarizeNew(orm, schema, sums);
}

function remakeSlice(
  orm: Orm,
  schema: string,
  sums: SumTable,
  { range, parts }: Slice,
  sources?: ReadonlyMap<number, number>,
): Promise<void> {
  const { sums: kept, state } = namesOf(schema, sums);
  const at = column('at');
  return orm.transaction(async (transaction) => {
    await transaction.execute(sql`select from ${state} for update`);
    const { until, rich, rowsFrom } = await foldedOf(transaction, schema, sums);
    if (parts.includes(finePart)) {
      const fromRows: Range = [Math.max(range[0], ceiling(rowsFrom)), range[1]];
      const fine = sql.raw(String(finePart));
      await transaction.execute(sql`delete from ${kept} where part = ${fine} and ${withinRange(at, fromRows)}`);
      const made = grouped(sums, rowShape(sums), rowsWithin(schema, sums, fromRows), sql`part.number = ${fine}`);
      await transaction.execute(sql`with ${addedWith(schema, sums, made)} select 1`);
    }
    const others = parts.filter((part) => part !== finePart);
    await transaction.execute(
      sql`delete from ${kept} where ${isOneOf(column('part'), others)} and ${withinRange(at, range)}`,
    );
    const folded: Range = [range[0], Math.min(range[1], until)];
    await foldParts(transaction, schema, sums, { range: folded, rich, parts: others, ...(sources && { sources }) });
  });
}
