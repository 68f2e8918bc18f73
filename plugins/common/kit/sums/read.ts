/** Reads sums: whole quarters and days from the kept ones, what a span has of quarters at its ends from the rows themselves. */
import { type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../../../core/contract/errors.ts';
import { instantText } from '../paging.ts';
import { foldedOf } from './fold.ts';
import { type Runner, rowsOf } from './rows.ts';
import {
  column,
  type Dimension,
  dayMs,
  dimensionsWithout,
  fine,
  finePart,
  namesOf,
  type Part,
  partsFor,
  quarterMs,
  type SumTable,
} from './table.ts';

/** A condition on one dimension; `null`: the rows that have a value there. */
export type Condition = readonly [dimension: string, values: string | null | readonly string[], not?: 'not'];

/** What is read, from kept sums and from rows: both give numbers that can be added. */
export interface ReadMeasure {
  readonly name: string;
  /** The stored measure that it is of. */
  readonly of: string;
  readonly ofKept: SQL;
  readonly ofRows: SQL;
}

export interface SumsQuery {
  /** Wall-clock milliseconds in order, two at least: each begins a slot that the next one ends. */
  readonly bounds: readonly number[];
  readonly conditions: readonly Condition[];
  /** A group for each value of it; of several, for each combination, as a JSON array. */
  readonly by?: string | readonly string[] | undefined;
  /** A group for each quarter of an hour, hour or day (UTC): its start in milliseconds. */
  readonly each?: 'quarter' | 'hour' | 'day' | undefined;
  readonly measures: readonly ReadMeasure[];
  /** Groups without any row may be left out; also an order, and a limit. */
  readonly ending?: SQL;
}

/** `slot` from 1; `group` is empty without groups. Then the measures as text. */
export type SumsRow = Readonly<Record<string, string | null>> & { readonly slot: string; readonly group: string };

type Range = readonly [from: number, until: number];

/** Where the sums of a span come from. `quarters` and `days` are of the smallest parts. */
interface Sources {
  readonly rows: readonly Range[];
  readonly fine: readonly Range[];
  readonly quarters: readonly Range[];
  readonly days: readonly Range[];
}

/** Slots that begin within quarters are read from the rows alone, so their span is bounded. */
const longestFineMs = 2 * dayMs;

/** Between these two there is a part. */
type Kept = Range | undefined;

/** Whole days and quarters within the bounds, as far as the parts are there, and the rest. */
function sourcesOf(bounds: readonly number[], quarters: Kept, days: Kept): Sources {
  const [first, last] = [bounds[0]!, bounds.at(-1)!];
  const inner = bounds.slice(1, -1);
  const [low, high] = [ceiling(first, quarterMs), floor(last, quarterMs)];
  const whole: Sources = { rows: ranges([first, last]), fine: [], quarters: [], days: [] };
  if (low >= high) return whole;
  if (inner.some((at) => at % quarterMs !== 0)) {
    if (last - first <= longestFineMs) return whole;
    const message = `Buckets that do not begin on a quarter of an hour are for spans of at most ${longestFineMs / dayMs} days.`;
    throw new GatewayError('invalid_request', message, { field: 'bounds' });
  }
  const canDays = days !== undefined && inner.every((at) => at % dayMs === 0);
  const [firstDay, lastDay] = canDays
    ? [Math.max(ceiling(low, dayMs), days[0]), floor(Math.min(high, days[1]), dayMs)]
    : [low, low];
  const rest = firstDay < lastDay ? ranges([low, firstDay], [lastDay, high]) : ranges([low, high]);
  const byQuarters = quarters === undefined ? [] : rest.flatMap((range) => ranges(common(range, quarters)));
  const fine =
    quarters === undefined
      ? rest
      : rest.flatMap(([from, until]) =>
          ranges([from, Math.min(until, quarters[0])], [Math.max(from, quarters[1]), until]),
        );
  return { rows: ranges([first, low], [high, last]), fine, quarters: byQuarters, days: ranges([firstDay, lastDay]) };
}

const common = ([from, until]: Range, [first, last]: Range): Range => [Math.max(from, first), Math.min(until, last)];
const floor = (at: number, step: number) => Math.floor(at / step) * step;
const ceiling = (at: number, step: number) => Math.ceil(at / step) * step;
const ranges = (...all: Range[]) => all.filter(([from, until]) => from < until);

/** One row for each slot and group that has anything. */
export async function readSums(orm: Runner, schema: string, sums: SumTable, query: SumsQuery): Promise<SumsRow[]> {
  const { bounds, conditions, by, each, measures, ending = sql`` } = query;
  const parts = partsFor(new Set([...conditions.map(([name]) => name), ...(by === undefined ? [] : [by].flat())]));
  const { until, rich } = await foldedOf(orm, schema, sums);
  const rangeOf = ({ number, rich: isRich }: typeof parts.days): Kept =>
    number === finePart || (isRich && rich >= until) ? undefined : [isRich ? rich : 0, until];
  const sources = sourcesOf(
    bounds,
    rangeOf(parts.quarters),
    each === 'quarter' || each === 'hour' ? undefined : rangeOf(parts.days),
  );
  const read = { sums, schema, bounds, conditions, by, each, measures };
  const selects = [
    ...sources.rows.map((range) => selectRows(read, range)),
    ...sources.fine.map((range) => selectKept(read, fine, range)),
    ...sources.quarters.map((range) => selectKept(read, parts.quarters, range)),
    ...sources.days.map((range) => selectKept(read, parts.days, range)),
  ];
  if (selects.length === 0) return [];
  const totals = measures.map(({ name }) => sql`sum(${column(name)})::text as ${column(name)}`);
  return await rowsOf<SumsRow>(
    orm,
    sql`select slot::text as slot, "group", ${sql.join(totals, sql`, `)}
        from (${sql.join(selects, sql` union all `)}) as found group by slot, "group" ${ending}`,
  );
}

interface Select extends Omit<SumsQuery, 'ending'> {
  readonly sums: SumTable;
  readonly schema: string;
}

const seconds = { quarter: '900', hour: '3600', day: '86400' };

function groupSql({ sums, by, each }: Select, at: SQL, isKept: boolean): SQL {
  if (each !== undefined) {
    const step = sql.raw(seconds[each]);
    return sql`(floor(extract(epoch from ${at}) / ${step})::bigint * ${step} * 1000)::text`;
  }
  if (by === undefined) return sql`''`;
  const textOf = (wanted: string) => {
    const { name, value, none } = dimensionOf(sums, wanted);
    return isKept ? sql`${column(name)}::text` : sql`coalesce(${value}, ${none})::text`;
  };
  return typeof by === 'string' ? textOf(by) : sql`json_build_array(${sql.join(by.map(textOf), sql`, `)})::text`;
}

function selectRows(select: Select, range: Range): SQL {
  const { sums, schema, bounds, conditions, measures } = select;
  const within = [
    withinRange(sums.at, range),
    ...conditions.map((condition) => conditionOf(dimensionOf(sums, condition[0]), true, condition)),
  ];
  const columns = measures.map(({ name, ofRows }) => sql`${ofRows} as ${column(name)}`);
  return sql`select ${slotOf(sums.at, bounds)} as slot, ${groupSql(select, sums.at, false)} as "group", ${sql.join(columns, sql`, `)}
    from ${sums.given?.(schema, range) ?? namesOf(schema, sums).rows} where ${sql.join(within, sql` and `)} group by 1, 2`;
}

/** Sums of each group of dimensions first, so that only these are looked up: the planner would read all groups instead. */
function selectKept(select: Select, part: Part, range: Range): SQL {
  const { sums, schema, bounds, conditions, each, measures } = select;
  const { sums: kept, groups } = namesOf(schema, sums);
  const at = column('at');
  const chosen = conditions.map((condition) => conditionOf(dimensionOf(sums, condition[0]), false, condition));
  const wanted = sql.join([sql`true`, ...chosen], sql` and `);
  // Only few groups: found by their ids.
  const isNarrow = conditions.some(([, values, not]) => values !== null && not === undefined);
  const others = dimensionsWithout(part).map((name) => sql`${column(name)} = ${dimensionOf(sums, name).none}`);
  const few = sql.join([wanted, ...others], sql` and `);
  const narrow = isNarrow ? sql`and group_id = any (array(select id from ${groups} where ${few}))` : sql``;
  const stored = sums.measures.filter(({ name }) => measures.some(({ of }) => of === name));
  const inner = stored.map(({ name }) => sql`sum(${column(name)}) as ${column(name)}`);
  const time = each === undefined ? sql`` : sql`, ${groupSql(select, at, true)} as "group"`;
  const group = each === undefined ? groupSql(select, at, true) : sql`"group"`;
  const columns = measures.map(({ name, ofKept }) => sql`${ofKept} as ${column(name)}`);
  return sql`select slot, ${group} as "group", ${sql.join(columns, sql`, `)}
    from (select ${slotOf(at, bounds)} as slot, group_id ${time}, ${sql.join(inner, sql`, `)} from ${kept}
      where part = ${sql.raw(String(part.number))} and ${withinRange(at, range)} ${narrow} group by 1, 2 ${each === undefined ? sql`` : sql`, 3`}) as sums
    cross join lateral (select * from ${groups} as known where known.id = sums.group_id offset 0) as groups
    where ${wanted} group by 1, 2`;
}

const dimensionOf = (sums: SumTable, name: string): Dimension =>
  sums.dimensions.find((dimension) => dimension.name === name)!;

const withinRange = (at: SQL, [from, until]: Range): SQL =>
  sql`${at} >= ${instantText(from)}::timestamptz and ${at} < ${instantText(until)}::timestamptz`;

function slotOf(at: SQL, bounds: readonly number[]): SQL {
  if (bounds.length === 2) return sql`1`;
  const list = JSON.stringify(bounds.map(instantText));
  return sql`width_bucket(${at}, array(select value::timestamptz
    from json_array_elements_text(${list}::text::json) with ordinality order by ordinality))`;
}

function conditionOf({ name, value: ofRow, none }: Dimension, isRow: boolean, [, wanted, not]: Condition): SQL {
  const value = isRow ? ofRow : column(name);
  if (wanted === null) return sql`${value} <> ${none}`;
  if (typeof wanted === 'string') return sql`${value} = ${wanted}`;
  // A row without a value belongs to the group of `none`.
  const grouped = isRow ? sql`coalesce(${value}, ${none})` : value;
  const chosen = sql`${grouped}::text in (select value from json_array_elements_text(${JSON.stringify(wanted)}::text::json))`;
  return not === undefined ? chosen : sql`not ${chosen}`;
}
