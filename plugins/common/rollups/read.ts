/** Reads sums: whole quarters and days from the kept ones, what a span has of quarters at its ends from the rows themselves. */
import { type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { KeySet } from '../domain/admin/accounts.ts';
import { isUuid } from '../domain/database.ts';
import { instantText } from '../kit/paging.ts';
import { type Runner, rowsOf } from '../kit/sql.ts';
import { type Folded, foldedOf } from './fold.ts';
import {
  column,
  type Dimension,
  dayMs,
  dimensionsWithout,
  finePart,
  hourMs,
  namesOf,
  type Part,
  partsFor,
  quarterMs,
  type Range,
  rowsWithin,
  type SumTable,
  withinRange,
} from './table.ts';

/** A condition on one dimension; `null`: the rows that have a value there. */
export type Condition = readonly [dimension: string, values: string | null | readonly string[], not?: 'not'];

/** The keys of a filter as a condition on the dimension `key_id`. */
export const keysCondition = (keys: KeySet | undefined): readonly Condition[] =>
  keys === undefined ? [] : [keys.not === true ? ['key_id', keys.ids, 'not'] : ['key_id', keys.ids]];

/** Sums to read, from rollups and from rows: both give numbers that can be added. */
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

/** Sources of a span: rollups of some parts, and rows. */
interface Sources {
  readonly rows: readonly Range[];
  readonly kept: readonly Kept[];
}

/** A part, and the spans of whole steps that are read of it, in order. */
type Kept = readonly [part: Part, ranges: readonly Range[]];

/** Slots that begin within quarters are read from the rows alone, so their span is bounded. */
const longestFineMs = 2 * dayMs;

/** Where slots are this many steps long, the steps that slots begin within are read from shorter ones. */
const mostOften = 8;

/** A part, and from when until when it is there. */
interface Level {
  readonly part: Part;
  readonly from: number;
  readonly until: number;
  /** Whether its last sum, of a step that is not over, may be read too: it has only rows from before `until`. */
  readonly isOpen: boolean;
}

interface Steps {
  readonly low: number;
  readonly high: number;
  /** The beginnings of steps that a slot begins within. */
  readonly cut: ReadonlySet<number>;
}

/** The part of a range that a level covers; undefined: too little. */
function stepsWithin(
  { part: { stepMs }, from, until, isOpen }: Level,
  range: Range,
  inner: readonly number[],
): Steps | undefined {
  const low = ceiling(Math.max(range[0], from), stepMs);
  const high = isOpen && range[1] >= until ? until : floor(Math.min(range[1], until), stepMs);
  if (low >= high) return undefined;
  const within = inner.filter((at) => at > low && at < high && at % stepMs !== 0);
  if (within.length * stepMs * mostOften > high - low) return undefined;
  return { low, high, cut: new Set(within.map((at) => floor(at, stepMs))) };
}

function sourcesOf(bounds: readonly number[], levels: readonly Level[]): Sources {
  const [first, last] = [bounds[0]!, bounds.at(-1)!];
  const inner = bounds.slice(1, -1);
  if (inner.some((at) => at % quarterMs !== 0)) {
    if (last - first <= longestFineMs) return { rows: [[first, last]], kept: [] };
    const message = `Buckets that do not begin on a quarter of an hour are for spans of at most ${longestFineMs / dayMs} days.`;
    throw new GatewayError('invalid_request', message, { field: 'bounds' });
  }
  const rows: Range[] = [];
  const kept = new Map<Part, Range[]>();
  const cover = ([from, until]: Range, [level, ...finer]: readonly Level[]): void => {
    if (from >= until) return;
    if (level === undefined) {
      rows.push([from, until]);
      return;
    }
    const steps = stepsWithin(level, [from, until], inner);
    if (steps === undefined) {
      cover([from, until], finer);
      return;
    }
    const { part } = level;
    const { low, high, cut } = steps;
    const ranges = kept.get(part) ?? [];
    kept.set(part, ranges);
    cover([from, low], finer);
    let at = low;
    for (const begin of cut) {
      if (at < begin) ranges.push([at, begin]);
      at = Math.min(begin + part.stepMs, high);
      cover([begin, at], finer);
    }
    if (at < high) ranges.push([at, high]);
    cover([high, until], finer);
  };
  cover([first, last], levels);
  return { rows, kept: [...kept].filter(([, ranges]) => ranges.length > 0) };
}

const floor = (at: number, step: number) => Math.floor(at / step) * step;
const ceiling = (at: number, step: number) => Math.ceil(at / step) * step;

const eachMs = { quarter: quarterMs, hour: hourMs, day: dayMs };

/** One row for each slot and group that has anything. */
export async function readSums(orm: Runner, schema: string, sums: SumTable, query: SumsQuery): Promise<SumsRow[]> {
  for (let tries = 1; ; tries++) {
    const folded = await foldedOf(orm, schema, sums);
    const rows = await readFolded(orm, schema, sums, query, { ...folded, isOpen: tries < mostTries });
    // Another hour that came to the last sums meanwhile would be counted twice.
    if (tries === mostTries || (await foldedOf(orm, schema, sums)).until === folded.until) return rows;
  }
}

const mostTries = 3;

async function readFolded(
  orm: Runner,
  schema: string,
  sums: SumTable,
  query: SumsQuery,
  { until, rich, isOpen }: Pick<Folded, 'until' | 'rich'> & Pick<Level, 'isOpen'>,
): Promise<SumsRow[]> {
  const { bounds, conditions, by, each, measures, ending = sql`` } = query;
  const named = new Set([...conditions.map(([name]) => name), ...(by === undefined ? [] : [by].flat())]);
  const longest = each === undefined ? Number.POSITIVE_INFINITY : eachMs[each];
  const levels = partsFor(named)
    .filter((part) => part.stepMs <= longest)
    .map((part): Level => {
      const whole = { part, from: Number.NEGATIVE_INFINITY, until: Number.POSITIVE_INFINITY, isOpen: false };
      return part.number === finePart ? whole : { part, from: part.rich ? rich : 0, until, isOpen };
    });
  const sources = sourcesOf(bounds, levels);
  const read = { sums, schema, bounds, conditions, by, each, measures };
  const selects = [
    ...sources.rows.map((range) => selectRows(read, range)),
    ...(sources.kept.length === 0 ? [] : [selectKept(read, sources.kept, named)]),
  ];
  if (selects.length === 0) return [];
  const totals = measures.map(({ name }) => sql`sum(${column(name)})::text as ${column(name)}`);
  return await rowsOf<SumsRow>(
    orm,
    sql`select slot::text as slot, "group"::text as "group", ${sql.join(totals, sql`, `)}
        from (${sql.join(selects, sql` union all `)}) as found group by slot, "group" ${ending}`,
  );
}

interface Select extends Omit<SumsQuery, 'ending'> {
  readonly sums: SumTable;
  readonly schema: string;
}

function groupSql({ sums, by, each }: Select, at: SQL, isKept: boolean): SQL {
  if (each !== undefined) {
    const step = sql.raw(String(eachMs[each] / 1_000));
    return sql`(floor(extract(epoch from ${at}) / ${step})::bigint * ${step} * 1000)::text`;
  }
  if (by === undefined) return sql`''`;
  const dimensionValue = (wanted: string) => {
    const { name, value, none } = dimensionOf(sums, wanted);
    return isKept ? column(name) : sql`coalesce(${value}, ${none})`;
  };
  // A UUID is sorted and compared in less time than its text.
  return typeof by === 'string'
    ? dimensionValue(by)
    : sql`json_build_array(${sql.join(by.map(dimensionValue), sql`, `)})::text`;
}

function selectRows(select: Select, range: Range): SQL {
  const { sums, schema, bounds, conditions, measures } = select;
  const columns = measures.map(({ name, ofRows }) => sql`${ofRows} as ${column(name)}`);
  return sql`select ${slotOf(sums.at, bounds)} as slot, ${groupSql(select, sums.at, false)} as "group", ${sql.join(columns, sql`, `)}
    from ${rowsWithin(schema, sums, range)} where ${conditionsOfRows(sums, conditions)} group by 1, 2`;
}

/** SQL that requires all conditions of a row of the table. */
export function conditionsOfRows(sums: SumTable, conditions: readonly Condition[]): SQL {
  const chosen = conditions.map((condition) => conditionOf(dimensionOf(sums, condition[0]), true, condition));
  return sql.join([sql`true`, ...chosen], sql` and `);
}

/** So few spans of a part are read one by one, each as one range of an index. */
const mostAlone = 3;

/** Sums of each group of dimensions first, so that only these are looked up: where they are few, the planner would read all groups. */
function selectKept(select: Select, kept: readonly Kept[], named: ReadonlySet<string>): SQL {
  const { sums, schema, bounds, conditions, each, measures } = select;
  const { sums: table, groups } = namesOf(schema, sums);
  const at = column('at');
  const chosen = conditions.map((condition) => conditionOf(dimensionOf(sums, condition[0]), false, condition));
  const wanted = sql.join([sql`true`, ...chosen], sql` and `);
  const stored = sums.measures.filter(({ name }) => measures.some(({ of }) => of === name));
  const names = sql.join(
    stored.map(({ name }) => column(name)),
    sql`, `,
  );
  const time = each === undefined ? sql`` : sql`, ${groupSql(select, at, true)} as "group"`;
  const parts = kept.flatMap(([part, ranges]) =>
    (ranges.length > mostAlone ? [ranges] : ranges.map((range) => [range])).map(
      (
        some,
      ) => sql`select ${slotOf(at, bounds)} as slot, account_id as account, group_id ${time}, ${names} from ${table}
        where part = ${sql.raw(String(part.number))} and ${withinRanges(at, some, part.stepMs)} ${narrowed(select, [part, some], wanted)}`,
    ),
  );
  const inner = stored.map(
    ({ name, isCount }) => sql`sum(${column(name)})${isCount ? sql`::bigint` : sql``} as ${column(name)}`,
  );
  const group = each === undefined ? groupSql(select, at, true) : sql`"group"`;
  const columns = measures.map(({ name, ofKept }) => sql`${ofKept} as ${column(name)}`);
  // There are about as many of them as groups.
  const areMany =
    ['account_id', 'key_id', 'person', 'project'].some((name) => named.has(name)) && !isNarrow(conditions);
  const known = areMany
    ? sql`join ${groups} as groups on groups.account_id = sums.account and groups.id = sums.group_id`
    : sql`cross join lateral (select * from ${groups} as known
        where known.account_id = sums.account and known.id = sums.group_id offset 0) as groups`;
  return sql`select slot, ${group} as "group", ${sql.join(columns, sql`, `)}
    from (select slot, account, group_id ${each === undefined ? sql`` : sql`, "group"`}, ${sql.join(inner, sql`, `)}
      from (${sql.join(parts, sql` union all `)}) as parts group by 1, 2, 3 ${each === undefined ? sql`` : sql`, 4`}) as sums
    ${known} where ${wanted} group by 1, 2`;
}

/** Conditions that leave few groups, which are found by their ids; those of one result, say, are a part of all. */
const isNarrow = (conditions: readonly Condition[]) =>
  conditions.some(([name, values]) => typeof values === 'string' && ofFew.has(name));
const ofFew: ReadonlySet<string> = new Set(['account_id', 'key_id', 'model', 'provider']);
/** Dimensions with so many values that each has a small part of the groups. */
const ofMany: ReadonlySet<string> = new Set(['account_id', 'key_id']);

/**
 * Only groups of a condition. Of a list of values, whether to find each by its id is for the planner to choose; of the fine part, lists
 * of anything but accounts and keys have too many groups, and a short span has fewer sums than there are groups of a list.
 */
function narrowed({ sums, schema, conditions }: Select, [part, ranges]: Kept, wanted: SQL): SQL {
  const isFine = part.number === finePart;
  const isListed = conditions.some(
    ([name, values, not]) => Array.isArray(values) && not === undefined && (!isFine || ofMany.has(name)),
  );
  if (!isNarrow(conditions) && !isListed) return sql``;
  const others = dimensionsWithout(part, sums).map(({ name, none }) => sql`${column(name)} = ${none}`);
  const few = sql`select id from ${namesOf(schema, sums).groups} where ${sql.join([wanted, ...others], sql` and `)}`;
  if (isNarrow(conditions)) return sql`and group_id = any (array(${few}))`;
  const lengthMs = ranges.reduce((sum, [from, until]) => sum + until - from, 0);
  // The test keeps the planner from making it a join: the groups are looked up in a table of their hashes.
  return isFine && lengthMs <= shortMs ? sql`and (group_id in (${few})) is true` : sql`and group_id in (${few})`;
}

const shortMs = 6 * hourMs;

export const dimensionOf = (sums: SumTable, name: string): Dimension =>
  sums.dimensions.find((dimension) => dimension.name === name)!;

/**
 * Where several spans are read: the one from the first to the last without the gaps, or the steps one by one if these
 * are fewer.
 */
function withinRanges(at: SQL, ranges: readonly Range[], stepMs: number): SQL {
  const whole: Range = [ranges[0]![0], ranges.at(-1)![1]];
  if (ranges.length === 1) return withinRange(at, whole);
  const between = stepsIn(
    ranges.slice(1).map(([from], index): Range => [ranges[index]![1], from]),
    stepMs,
  );
  const steps = stepsIn(ranges, stepMs);
  const listed = (list: readonly string[]) =>
    sql`(array(select value::timestamptz from json_array_elements_text(${JSON.stringify(list)}::text::json)))`;
  if (steps.length <= between.length) return sql`${at} = any ${listed(steps)}`;
  return sql`${withinRange(at, whole)} and ${at} <> all ${listed(between)}`;
}

const stepsIn = (ranges: readonly Range[], stepMs: number): string[] =>
  ranges.flatMap(([from, until]) =>
    Array.from({ length: Math.ceil((until - from) / stepMs) }, (_, index) => instantText(from + index * stepMs)),
  );

function slotOf(at: SQL, bounds: readonly number[]): SQL {
  if (bounds.length === 2) return sql`1`;
  const list = JSON.stringify(bounds.map(instantText));
  return sql`width_bucket(${at}, array(select value::timestamptz
    from json_array_elements_text(${list}::text::json) with ordinality order by ordinality))`;
}

function conditionOf(
  { name, value: ofRow, none, isUuid: hasUuids }: Dimension,
  isRow: boolean,
  [, wanted, not]: Condition,
): SQL {
  const value = isRow ? ofRow : column(name);
  if (wanted === null) return sql`${value} <> ${none}`;
  if (typeof wanted === 'string') return sql`${value} = ${wanted}`;
  const listed = (values: readonly string[], type: SQL) =>
    sql`(select value${type} from json_array_elements_text(${JSON.stringify(values)}::text::json))`;
  // An array of the column's type, so that an index of the groups is used.
  if (!isRow && not === undefined)
    return hasUuids
      ? sql`${value} = any (array${listed(wanted.filter(isUuid), sql`::uuid`)})`
      : sql`${value} = any (array${listed(wanted, sql``)})`;
  // A row without a value belongs to the group of `none`.
  const grouped = isRow ? sql`coalesce(${value}, ${none})` : value;
  const chosen = sql`${grouped}::text in ${listed(wanted, sql``)}`;
  return not === undefined ? chosen : sql`not ${chosen}`;
}
