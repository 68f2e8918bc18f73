/** The days (UTC) of rollups and of rows, and slices of them, so that each statement reads a bounded number of rows. */
import { type SQL, sql } from 'drizzle-orm';
import { type Runner, rowsOf } from '../kit/sql.ts';
import {
  blockMs,
  column,
  dayMs,
  finePart,
  hourMs,
  namesOf,
  partsWithStep,
  quarterMs,
  type Range,
  type SumTable,
} from './table.ts';

/** Rows that one statement reads to find days. */
const walkRows = 50_000;
/** Rows of a slice, about: it takes a second or two to make or to check its sums. */
const sliceRows = 20_000;
/** Numbers of slices that a day divides into, of whole hours each. */
const divisors = [1, 2, 3, 4, 6, 8, 12, 24];

/** Days since the epoch. */
export const dayRange = (day: number): Range => [day * dayMs, (day + 1) * dayMs];

const dayOf = (at: SQL) => sql`floor(extract(epoch from ${at}) / 86400)::float8`;

/** Days with sums, in order. Of the fine part, which has the most sums, each group goes from one of its days to the next. */
export async function summedDays(runner: Runner, schema: string, sums: SumTable): Promise<number[]> {
  const { sums: kept, groups } = namesOf(schema, sums);
  const fine = sql.raw(String(finePart));
  const next = (after: SQL) =>
    sql`(select min(at) from ${kept} as sums where part = ${fine} and group_id = groups.id
      and sums.account_id = groups.account_id and at >= ${after})`;
  const found = await rowsOf<{ day: number }>(
    runner,
    sql`select day from (
        select ${dayOf(column('at'))} as day from ${kept} where part > ${fine}
        union select day from ${groups} as groups cross join lateral (
          with recursive days as (
            select ${dayOf(next(sql`'-infinity'`))} as day
            union all select ${dayOf(next(sql`to_timestamp((day + 1) * 86400)`))} from days where day is not null
          ) select day from days where day is not null) as walked
      ) as found order by 1`,
  );
  return Array.from(found, ({ day }) => Number(day));
}

/** Days with rows, in order, and how many rows each has. */
async function daysOfRows(runner: Runner, schema: string, sums: SumTable): Promise<Map<number, number>> {
  const { rows } = namesOf(schema, sums);
  const counts = new Map<number, number>();
  for (let after: string | null = '00000000-0000-0000-0000-000000000000'; after !== null; ) {
    const [found]: { last: string | null; days: [day: number, rows: number][] }[] = await rowsOf(
      runner,
      sql`with slice as materialized (
          select id, ${dayOf(sums.at)} as day from ${rows} where id > ${after}::uuid order by id limit ${walkRows}::int)
        select (select id::text from slice order by slice.id desc limit 1) as last,
          (select coalesce(json_agg(json_build_array(day, rows)), '[]')
            from (select day, count(*) as rows from slice group by day) as days) as days`,
    );
    for (const [day, count] of found!.days) counts.set(day, (counts.get(day) ?? 0) + count);
    after = found!.last;
  }
  return new Map([...counts].sort(([one], [other]) => one - other));
}

/** Days with sums or rows, in order, and how many rows each has. */
export async function allDays(runner: Runner, schema: string, sums: SumTable): Promise<Map<number, number>> {
  const rows = await daysOfRows(runner, schema, sums);
  const found = new Set([...(await summedDays(runner, schema, sums)), ...rows.keys()]);
  return new Map([...found].sort((one, other) => one - other).map((day) => [day, rows.get(day) ?? 0]));
}

/** A span of time with the numbers of the parts that are made of it. */
export interface Slice {
  readonly range: Range;
  readonly parts: readonly number[];
}

const [short, days] = [[...partsWithStep(quarterMs), ...partsWithStep(hourMs)], partsWithStep(dayMs)];

/** A day with few rows is one slice; otherwise its hours are several slices, and its parts by days are one. */
export function slicesOf(day: number, rows: number): Slice[] {
  const [from, until] = dayRange(day);
  const count = divisors.find((divisor) => rows <= divisor * sliceRows) ?? divisors.at(-1)!;
  if (count === 1) return [{ range: [from, until], parts: [finePart, ...short, ...days] }];
  const stepMs = (until - from) / count;
  return [
    ...Array.from({ length: count }, (_, index): Slice => {
      return { range: [from + index * stepMs, from + (index + 1) * stepMs], parts: [finePart, ...short] };
    }),
    { range: [from, until], parts: days },
  ];
}

/** The longest steps that these days are in. */
export function blocksOf(all: Iterable<number>): Range[] {
  const begins = new Set(Array.from(all, (day) => Math.floor(dayRange(day)[0] / blockMs) * blockMs));
  return Array.from(begins, (begin): Range => [begin, begin + blockMs]);
}
