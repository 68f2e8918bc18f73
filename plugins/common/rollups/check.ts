/** Checks that rollups are the sums of the rows. */
import { type SQL, sql } from 'drizzle-orm';
import { instantText } from '../kit/paging.ts';
import { type Runner, rowsOf } from '../kit/sql.ts';
import { allDays, blocksOf, type Slice, slicesOf, summedDays } from './days.ts';
import { type Folded, foldedOf } from './fold.ts';
import {
  blockParts,
  blockSource,
  column,
  finePart,
  grouped,
  isOneOf,
  keptShape,
  namesOf,
  quarterMs,
  type Range,
  rowShape,
  rowsWithin,
  type SumTable,
  withinRange,
} from './table.ts';

/** At most so many differences of each kind are read. */
const mostRead = 100;
/** Ranges of a condition. */
const mostSampled = 366;

/**
 * Names rollups that are not those of their rows: part, time, then the dimensions. `days`: of so many days, by chance, in
 * place of all, without the sums of longer steps. Sums of deleted rows are only compared with one another.
 */
export async function checkSums(
  runner: Runner,
  schema: string,
  sums: SumTable,
  days?: number,
): Promise<{ subject: string }[]> {
  const counts = days === undefined ? await allDays(runner, schema, sums) : await sampleOf(runner, schema, sums, days);
  const folded = await foldedOf(runner, schema, sums);
  const checked = { runner, schema, sums, folded };
  const found: { subject: string }[] = [];
  for (const [day, rows] of counts)
    for (const slice of slicesOf(day, rows)) found.push(...(await differencesIn(checked, slice, finePart)));
  if (days !== undefined) return found;
  for (const range of blocksOf(counts.keys()))
    found.push(...(await differencesIn(checked, { range, parts: blockParts }, blockSource)));
  return found;
}

interface Checked {
  readonly runner: Runner;
  readonly schema: string;
  readonly sums: SumTable;
  readonly folded: Folded;
}

/** `source`: the part that the parts other than the fine one are made of. */
async function differencesIn({ runner, schema, sums, folded }: Checked, { range, parts }: Slice, source: number) {
  const { kept } = namesOf(schema, sums);
  const at = column('at');
  const found: { subject: string }[] = [];
  if (parts.includes(finePart)) {
    const fromRows: Range = [Math.max(range[0], ceiling(folded.rowsFrom)), range[1]];
    const isFine = sql.raw(`= ${finePart}`);
    found.push(
      ...(await differences(runner, sums, {
        right: grouped(sums, rowShape(sums), rowsWithin(schema, sums, fromRows), sql`part.number ${isFine}`),
        kept: sql`select * from ${kept} where part ${isFine} and ${withinRange(at, fromRows)}`,
      })),
    );
  }
  const others = parts.filter((part) => part !== finePart);
  const made: Range = [range[0], Math.min(range[1], folded.until)];
  const ofSource = sql`(select * from ${kept} where part = ${sql.raw(String(source))} and ${withinRange(at, made)}) as given`;
  const isKept = sql`(not part.rich or at >= ${instantText(folded.rich)}::timestamptz)`;
  found.push(
    ...(await differences(runner, sums, {
      right: grouped(sums, keptShape, ofSource, sql`${isOneOf(sql`part.number`, others)} and ${isKept}`),
      kept: sql`select * from ${kept} where ${isOneOf(column('part'), others)} and ${withinRange(at, range)}`,
    })),
  );
  return found;
}

/** The first quarter of an hour of which no row was deleted. */
export const ceiling = (at: number) => Math.ceil(at / quarterMs) * quarterMs;

/** Days by chance, with as many rows as can be expected at most: they are not counted. */
async function sampleOf(runner: Runner, schema: string, sums: SumTable, days: number): Promise<Map<number, number>> {
  const all = await summedDays(runner, schema, sums);
  const [row] = await rowsOf<{ keys: string }>(
    runner,
    sql`select array_to_json(array(select random() from generate_series(1, ${all.length}::int)))::text as keys`,
  );
  const keys = JSON.parse(row!.keys) as number[];
  const byChance = all.map((day, index) => ({ day, key: keys[index]! })).sort((one, other) => one.key - other.key);
  return new Map(byChance.slice(0, Math.min(days, mostSampled)).map(({ day }) => [day, Number.POSITIVE_INFINITY]));
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
        full join (${kept}) as found using (${keys})
        where row (${measuresOf('made')}) is distinct from row (${measuresOf('found')}) order by 1 limit ${mostRead}::int`,
  );
}
