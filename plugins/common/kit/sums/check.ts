/** Checks that kept sums are the sums of the rows, and makes them again, day by day. */
import { type SQL, sql } from 'drizzle-orm';
import type { Orm } from '../../domain/database.ts';
import { instantText } from '../paging.ts';
import { foldedOf, foldParts } from './fold.ts';
import { type Runner, rowsOf } from './rows.ts';
import {
  addedWith,
  blockMs,
  blockParts,
  column,
  dayMs,
  finePart,
  grouped,
  keptShape,
  namesOf,
  quarterMs,
  rowShape,
  type SumTable,
} from './table.ts';

type Range = readonly [from: number, until: number];

/** At most so many differences of each kind are read. */
const mostRead = 100;
/** Ranges of a condition. */
const mostSampled = 366;

const isFine = sql`part = ${sql.raw(String(finePart))}`;
const isOther = sql`part <> ${sql.raw(String(finePart))}`;
const ofFine = sql`part.number = ${sql.raw(String(finePart))}`;
const ofOthers = sql`part.number <> ${sql.raw(String(finePart))}`;
const blocks = sql.raw(`(${blockParts.join(', ')})`);

/**
 * Names kept sums that are not those of their rows: part, time, then the dimensions. `days`: of so many days, by chance, in
 * place of all, without the sums of longer steps. Sums of deleted rows are only compared with one another.
 */
export async function checkSums(
  runner: Runner,
  schema: string,
  sums: SumTable,
  days?: number,
): Promise<{ subject: string }[]> {
  const { kept, rows } = namesOf(schema, sums);
  const { until, rich, rowsFrom } = await foldedOf(runner, schema, sums);
  const first = ceiling(rowsFrom);
  const sample = days === undefined ? undefined : await sampleOf(runner, schema, sums, days);
  const chosen = (at: SQL, from: number) =>
    sql`${at} >= ${instantText(from)}::timestamptz and ${sample === undefined ? sql`true` : within(at, sample)}`;
  const at = column('at');
  const fromRows = sql`(select * from ${rows} where ${chosen(sums.at, first)}) as given`;
  const fromFine = sql`(select * from ${kept} where ${isFine} and at < ${instantText(until)}::timestamptz and ${chosen(at, 0)}) as given`;
  const short = days === undefined ? sql`true` : sql`part.number not in ${blocks}`;
  const others = sql`${ofOthers} and ${short} and (not part.rich or at >= ${instantText(rich)}::timestamptz)`;
  const isShort = days === undefined ? sql`true` : sql`part not in ${blocks}`;
  return [
    ...(await differences(runner, sums, {
      right: grouped(sums, rowShape(sums), fromRows, ofFine),
      kept: sql`select * from ${kept} where ${isFine} and ${chosen(at, first)}`,
    })),
    ...(await differences(runner, sums, {
      right: grouped(sums, keptShape, fromFine, others),
      kept: sql`select * from ${kept} where ${isOther} and ${isShort} and ${chosen(at, 0)}`,
    })),
  ];
}

/** The first quarter of an hour of which no row was deleted. */
const ceiling = (at: number) => Math.ceil(at / quarterMs) * quarterMs;

/** Days (UTC) with sums or rows, in order. */
async function daysOf(runner: Runner, schema: string, sums: SumTable): Promise<Range[]> {
  const { sums: kept, rows } = namesOf(schema, sums);
  const day = (at: SQL) => sql`floor(extract(epoch from ${at}) / 86400)::float8`;
  const found = await rowsOf<{ day: number }>(
    runner,
    sql`select ${day(column('at'))} as day from ${kept} union select ${day(sums.at)} from ${rows} order by 1`,
  );
  return Array.from(found, ({ day: number }): Range => [Number(number) * dayMs, (Number(number) + 1) * dayMs]);
}

async function sampleOf(runner: Runner, schema: string, sums: SumTable, days: number): Promise<Range[]> {
  const all = await daysOf(runner, schema, sums);
  const [row] = await rowsOf<{ keys: string }>(
    runner,
    sql`select array_to_json(array(select random() from generate_series(1, ${all.length}::int)))::text as keys`,
  );
  const keys = JSON.parse(row!.keys) as number[];
  const byChance = all.map((range, index) => ({ range, key: keys[index]! })).sort((one, other) => one.key - other.key);
  return byChance.slice(0, Math.min(days, mostSampled)).map(({ range }) => range);
}

function within(at: SQL, sample: readonly Range[]): SQL {
  if (sample.length === 0) return sql`false`;
  const conditions = sample.map(
    ([from, until]) => sql`(${at} >= ${instantText(from)}::timestamptz and ${at} < ${instantText(until)}::timestamptz)`,
  );
  return sql`(${sql.join(conditions, sql` or `)})`;
}

async function differences(
  runner: Runner,
  sums: SumTable,
  { right, kept }: { readonly right: SQL; readonly kept: SQL },
): Promise<{ subject: string }[]> {
  const names = sums.dimensions.map(({ name }) => column(name));
  const measuresOf = (table: string) =>
    sql.join(
      sums.measures.map(({ name }) => sql`${sql.raw(table)}.${column(name)}`),
      sql`, `,
    );
  const keys = sql.join([sql`part`, sql`at`, ...names], sql`, `);
  return await rowsOf<{ subject: string }>(
    runner,
    sql`select concat_ws(' ', 'part ' || part, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"'), ${sql.join(names, sql`, `)}) as subject
        from (${right}) as made
        full join (${kept}) as told using (${keys})
        where row (${measuresOf('made')}) is distinct from row (${measuresOf('told')}) order by 1 limit ${mostRead}::int`,
  );
}

/** Makes all sums again whose rows are there, one day in each transaction; batches wait for the day that is being made. */
export async function rebuildSums(orm: Orm, schema: string, sums: SumTable, days?: readonly Range[]): Promise<void> {
  const all = days ?? (await daysOf(orm, schema, sums));
  for (const day of all) await rebuildDay(orm, schema, sums, day);
  const begins = new Set(all.map(([from]) => Math.floor(from / blockMs) * blockMs));
  for (const from of begins) await rebuildBlock(orm, schema, sums, [from, from + blockMs]);
}

function rebuildDay(orm: Orm, schema: string, sums: SumTable, day: Range): Promise<void> {
  const { sums: kept, rows, state } = namesOf(schema, sums);
  return orm.transaction(async (transaction) => {
    await transaction.execute(sql`select from ${state} for update`);
    const { until, rich, rowsFrom } = await foldedOf(transaction, schema, sums);
    const fromRows: Range = [Math.max(day[0], ceiling(rowsFrom)), day[1]];
    const at = column('at');
    await transaction.execute(
      sql`delete from ${kept} where ${isOther} and part not in ${blocks} and ${within(at, [day])}`,
    );
    await transaction.execute(sql`delete from ${kept} where ${isFine} and ${within(at, [fromRows])}`);
    const source = sums.given?.(schema, fromRows) ?? rows;
    const given = sql`(select * from ${source} where ${within(sums.at, [fromRows])}) as given`;
    const made = grouped(sums, rowShape(sums), given, ofFine);
    await transaction.execute(sql`with ${addedWith(schema, sums, made)} select 1`);
    const folded: Range = [day[0], Math.min(day[1], until)];
    const chosen = rich < day[1] ? sql`true` : sql`not part.rich`;
    await foldParts(transaction, schema, sums, folded, sql`${chosen} and part.number not in ${blocks}`);
  });
}

/** The sums of the longest step, made of the fine ones of its days. */
function rebuildBlock(orm: Orm, schema: string, sums: SumTable, [from, end]: Range): Promise<void> {
  const { sums: kept, state } = namesOf(schema, sums);
  return orm.transaction(async (transaction) => {
    await transaction.execute(sql`select from ${state} for update`);
    const { until, rich } = await foldedOf(transaction, schema, sums);
    await transaction.execute(
      sql`delete from ${kept} where part in ${blocks} and ${within(column('at'), [[from, end]])}`,
    );
    const folded: Range = [Math.max(from, rich), Math.min(end, until)];
    if (folded[0] < folded[1]) await foldParts(transaction, schema, sums, folded, sql`part.number in ${blocks}`);
  });
}
