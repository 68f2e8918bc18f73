/** Makes the other parts of rollups from the fine one, by the hour, once an hour is over. */
import { sql } from 'drizzle-orm';
import type { Orm } from '../domain/database.ts';
import { instantText } from '../kit/paging.ts';
import { type Runner, rowsOf } from '../kit/sql.ts';
import {
  addedWith,
  dayMs,
  finePart,
  grouped,
  hourMs,
  isOneOf,
  keptShape,
  namesOf,
  type Range,
  richParts,
  type SumTable,
  sourceOf,
  withinRange,
} from './table.ts';

/** Rows of an hour come within this time after it, nearly all of them. */
const settledMs = 300_000;
/** Batches wait while a slice is folded. Where there is much traffic it is an hour, so that it ends within the time of a statement. */
const sliceMs = 6 * hourMs;
/** Rows of the fine part in a day: with so many, a month of them is too much for a page. */
export const usualRich = 5_000;

/** How often to look whether an hour is over. */
export const foldEveryMs = 300_000;

/** Wall-clock milliseconds. */
export interface Folded {
  /** Up to here there are all parts. */
  readonly until: number;
  /** The day from which parts are folded that need much traffic to be worth it. */
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
  if (begun < until) await summarizeNew(orm, schema, sums);
}

/**
 * Takes new pages into the index of the fine part by time: until then each of its queries reads all of them. Autovacuum comes late to it, and
 * to the embedded database never.
 */
export async function summarizeNew(orm: Orm, schema: string, sums: SumTable): Promise<void> {
  const fine = `${sums.name}_fine`;
  await orm.execute(sql`select brin_summarize_new_values(format('%I.%I', ${schema}::text, ${fine}::text)::regclass)`);
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
    const first = await firstAfter(transaction, schema, sums, [from, until]);
    // Hours without any row are passed at once.
    const begin = first === undefined ? until : Math.max(from, Math.floor(first / hourMs) * hourMs);
    const end = Math.min(until, begin + (earlier <= begin ? hourMs : sliceMs));
    if (end <= from) return end;
    const rich = await richFrom(transaction, schema, sums, { end, rich: earlier, richRows });
    // On the day when they begin, those that need much traffic come from its beginning.
    if (rich < from && rich !== earlier)
      await foldParts(transaction, schema, sums, { range: [rich, from], rich, parts: richParts });
    await foldParts(transaction, schema, sums, { range: [from, end], rich });
    await transaction.execute(
      sql`update ${state} set folded = ${instantText(end)}::timestamptz
          ${rich === earlier ? sql`` : sql`, rich_from = ${instantText(rich)}::timestamptz`}`,
    );
    return end;
  });
}

/** Looks into the next slice first, then into ever longer spans: there may be many sums behind them. */
async function firstAfter(
  runner: Runner,
  schema: string,
  sums: SumTable,
  [from, until]: Range,
): Promise<number | undefined> {
  for (let [begin, length] = [from, sliceMs]; begin < until; begin += length, length *= 2) {
    const [row] = await rowsOf<{ at: number | null }>(
      runner,
      sql`select extract(epoch from min(at))::float8 * 1000 as at from ${namesOf(schema, sums).sums}
          where ${isFine} and ${within([begin, Math.min(begin + length, until)])}`,
    );
    if (row!.at !== null) return Number(row!.at);
  }
  return undefined;
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

const within = (range: Range) => withinRange(sql`at`, range);

interface Folding {
  readonly range: Range;
  /** Before this there are not all parts. */
  readonly rich: number;
  /** All by default. */
  readonly parts?: readonly number[];
  /** Sources of the parts, in the order in which these are made. */
  readonly sources?: ReadonlyMap<number, number>;
}

/** Adds what there is of a range to parts: to the larger ones from the fine part, to the others from these. */
export async function foldParts(
  runner: Runner,
  schema: string,
  sums: SumTable,
  { range: [from, until], rich, parts = [...sourceOf.keys()], sources = sourceOf }: Folding,
): Promise<void> {
  const middle = Math.min(Math.max(from, rich), until);
  const plain = parts.filter((part) => !richParts.includes(part));
  const all = Map.groupBy(
    [...sources.keys()].filter((part) => parts.includes(part)),
    (part) => sources.get(part)!,
  );
  for (const [range, bySource] of [
    [[from, middle], new Map([[finePart, plain]])],
    [[middle, until], all],
  ] as const)
    for (const [source, wanted] of bySource)
      if (range[0] < range[1] && wanted.length > 0) await foldFrom(runner, schema, sums, range, { source, wanted });
}

async function foldFrom(
  runner: Runner,
  schema: string,
  sums: SumTable,
  range: Range,
  { source, wanted }: { readonly source: number; readonly wanted: readonly number[] },
): Promise<void> {
  const ofSource = sql`part = ${sql.raw(String(source))} and ${within(range)}`;
  const rows = sql`(select * from ${namesOf(schema, sums).kept} where ${ofSource}) as given`;
  const made = grouped(sums, keptShape, rows, isOneOf(sql`part.number`, wanted));
  await runner.execute(sql`with ${addedWith(schema, sums, made)} select 1`);
}
