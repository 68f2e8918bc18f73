/** Makes the other parts of kept sums from the fine one, by the hour, once an hour is over. */
import { type SQL, sql } from 'drizzle-orm';
import type { Orm } from '../../domain/database.ts';
import { instantText } from '../paging.ts';
import { type Runner, rowsOf } from './rows.ts';
import { addedWith, dayMs, finePart, grouped, keptShape, namesOf, type SumTable } from './table.ts';

const hourMs = 3_600_000;
/** Rows of an hour come within this time after it, nearly all of them. */
const settledMs = 300_000;
/** Batches wait while a slice is folded. Where there is much traffic it is an hour, so that it ends within the time of a statement. */
const sliceMs = 6 * hourMs;
/** Rows of the fine part in a day: with so many, a month of them is too much for a page. */
const usualRich = 5_000;

/** How often to look whether an hour is over. */
export const foldEveryMs = 300_000;

/** Wall-clock milliseconds. */
export interface Folded {
  /** Up to here there are all parts. */
  readonly until: number;
  /** From this day on also those that need much traffic to be worth it. */
  readonly rich: number;
  /** The rows before were deleted. */
  readonly rowsFrom: number;
}

export async function foldedOf(runner: Runner, schema: string, sums: SumTable): Promise<Folded> {
  const milliseconds = (name: string) =>
    sql`least(greatest(extract(epoch from ${sql.raw(name)}) * 1000, 0), 1e15)::float8`;
  const [row] = await rowsOf<{ until: number; rich: number; first: number }>(
    runner,
    sql`select ${milliseconds('folded')} as until, ${milliseconds('rich_from')} as rich, ${milliseconds('rows_from')} as first
        from ${namesOf(schema, sums).state}`,
  );
  return { until: Number(row!.until), rich: Number(row!.rich), rowsFrom: Number(row!.first) };
}

/** Every part up to the last full hour, in one transaction for every few hours. `richRows`: of a day that needs all parts. */
export async function foldSums(
  orm: Orm,
  schema: string,
  sums: SumTable,
  now: number,
  richRows = usualRich,
): Promise<void> {
  const until = Math.floor((now - settledMs) / hourMs) * hourMs;
  const { until: begun } = await foldedOf(orm, schema, sums);
  for (let from = begun; from < until; ) from = await foldSlice(orm, schema, sums, { until, richRows });
  // No other process does this for the embedded database.
  if (begun >= until) return;
  for (const name of [`${sums.name}_fine`, ...(sums.timeIndex === undefined ? [] : [sums.timeIndex])])
    await orm.execute(sql`select brin_summarize_new_values(format('%I.%I', ${schema}::text, ${name}::text)::regclass)`);
}

/** Resolves with the end of the slice. */
function foldSlice(
  orm: Orm,
  schema: string,
  sums: SumTable,
  { until, richRows }: { readonly until: number; readonly richRows: number },
): Promise<number> {
  const { state } = namesOf(schema, sums);
  return orm.transaction(async (transaction) => {
    // Waits for the batches that are being written; later ones wait for this.
    await transaction.execute(sql`select from ${state} for update`);
    const { until: from, rich: earlier } = await foldedOf(transaction, schema, sums);
    const first = await firstAfter(transaction, schema, sums, from);
    // Hours without any row are passed at once.
    const begin = first === undefined ? until : Math.max(from, Math.floor(first / hourMs) * hourMs);
    const end = Math.min(until, begin + (earlier <= begin ? hourMs : sliceMs));
    if (end <= from) return end;
    const rich = await richFrom(transaction, schema, sums, { end, rich: earlier, richRows });
    await foldParts(transaction, schema, sums, [from, end], sql`not part.rich`);
    // On the day when it begins, from its beginning.
    const richBegin = rich === earlier ? Math.max(from, rich) : rich;
    if (richBegin < end) await foldParts(transaction, schema, sums, [richBegin, end], sql`part.rich`);
    await transaction.execute(
      sql`update ${state} set folded = ${instantText(end)}::timestamptz
          ${rich === earlier ? sql`` : sql`, rich_from = ${instantText(rich)}::timestamptz`}`,
    );
    return end;
  });
}

async function firstAfter(runner: Runner, schema: string, sums: SumTable, from: number): Promise<number | undefined> {
  const [row] = await rowsOf<{ at: number | null }>(
    runner,
    sql`select extract(epoch from min(at))::float8 * 1000 as at from ${namesOf(schema, sums).sums}
        where ${isFine} and at >= ${instantText(from)}::timestamptz`,
  );
  return row!.at === null ? undefined : Number(row!.at);
}

/** The day from which on all parts are kept: it stays once there is one. */
async function richFrom(
  runner: Runner,
  schema: string,
  sums: SumTable,
  { end, rich, richRows }: { readonly end: number; readonly rich: number; readonly richRows: number },
): Promise<number> {
  if (rich < end) return rich;
  const [row] = await rowsOf<{ rows: number }>(
    runner,
    sql`select count(*)::int as rows from ${namesOf(schema, sums).sums} where ${isFine} and ${within([end - dayMs, end])}`,
  );
  return row!.rows < richRows ? rich : Math.floor((end - 1) / dayMs) * dayMs;
}

const isFine = sql`part = ${sql.raw(String(finePart))}`;

const within = ([from, until]: readonly [number, number]) =>
  sql`at >= ${instantText(from)}::timestamptz and at < ${instantText(until)}::timestamptz`;

/** Adds what the fine part has of a range to the parts of a condition on `part`. */
export async function foldParts(
  runner: Runner,
  schema: string,
  sums: SumTable,
  range: readonly [number, number],
  chosen: SQL,
): Promise<void> {
  const rows = sql`(select * from ${namesOf(schema, sums).kept} where ${isFine} and ${within(range)}) as fine`;
  const others = sql`part.number <> ${sql.raw(String(finePart))} and ${chosen}`;
  await runner.execute(sql`with ${addedWith(schema, sums, grouped(sums, keptShape, rows, others))} select 1`);
}
