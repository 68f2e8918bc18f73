/**
 * Sums of a table's rows, kept in a table beside it, by quarters of an hour, hours and UTC days. Each part of that table is one
 * grouping of the same rows. Part 0, of all dimensions by quarters, is written with the rows; the others follow by the hour.
 */
import { type SQL, sql } from 'drizzle-orm';
import { instantText } from '../kit/paging.ts';
import { rowsOfColumns } from './named-parameters.ts';

/** A column that sums are kept by. */
export interface Dimension {
  readonly name: string;
  /** Its value in a row of the table; may be null. */
  readonly value: SQL;
  /** Stored instead of null, and in parts without this dimension. */
  readonly none: SQL;
  /** Where it is stored as a UUID, not as text. */
  readonly isUuid?: true;
  /**
   * Stands before its value in the hash of groups. Those without a value do without it, so that groups from before this dimension keep their
   * hashes.
   */
  readonly later?: string;
}

/** A column of sums. Every measure is a number that can be summed over rows. */
interface Measure {
  readonly name: string;
  /** The aggregate over rows of the table; null where there is nothing to add. */
  readonly sum: SQL;
  /** It counts rows, so its sums are below 2^63, which are added in less time than others. */
  readonly isCount?: true;
  /** It is a decimal number of any size. */
  readonly isHistogram?: true;
}

export interface SumTable {
  readonly name: string;
  /** The table whose rows are summed up, and its column of time. */
  readonly rows: string;
  /** Where rows are elsewhere too, or are found otherwise: a source of all of them, or of exactly those of a span. */
  readonly given?: (schema: string, span?: Range) => SQL;
  readonly at: SQL;
  /** `account_id`, `key_id`, `model` and `provider`, then `person` and `project` or those that every part has. */
  readonly dimensions: readonly Dimension[];
  readonly measures: readonly Measure[];
}

/** Time zones differ from UTC by whole quarters of an hour, so the days of each consist of these. */
export const quarterMs = 900_000;
export const hourMs = 3_600_000;
export const dayMs = 86_400_000;

/** The part that is written with the rows. */
export const finePart = 0;

export interface Part {
  readonly number: number;
  readonly by: readonly ('account' | 'model' | 'provider')[];
  readonly stepMs: number;
  /** Kept only from the day on when there was much traffic: before, the fine part has hardly more rows. */
  readonly rich: boolean;
}

/** Wall-clock milliseconds. */
export type Range = readonly [from: number, until: number];

/** Eight days: the longest step. */
export const blockMs = 8 * dayMs;

/** The parts, the one with the fewest rows first. `account`: with its keys, people and projects. */
const parts: readonly Part[] = [
  { number: 9, by: ['account'], stepMs: blockMs, rich: true },
  { number: 10, by: ['account', 'model', 'provider'], stepMs: blockMs, rich: true },
  { number: 4, by: [], stepMs: dayMs, rich: false },
  { number: 5, by: ['provider'], stepMs: dayMs, rich: true },
  { number: 6, by: ['model', 'provider'], stepMs: dayMs, rich: true },
  { number: 7, by: ['account'], stepMs: dayMs, rich: true },
  { number: 8, by: ['account', 'model', 'provider'], stepMs: dayMs, rich: true },
  { number: 11, by: [], stepMs: hourMs, rich: false },
  { number: 12, by: ['provider'], stepMs: hourMs, rich: true },
  { number: 13, by: ['model', 'provider'], stepMs: hourMs, rich: true },
  { number: 14, by: ['account'], stepMs: hourMs, rich: true },
  { number: 1, by: [], stepMs: quarterMs, rich: false },
  { number: 2, by: ['provider'], stepMs: quarterMs, rich: true },
  { number: 3, by: ['model', 'provider'], stepMs: quarterMs, rich: true },
  { number: finePart, by: ['account', 'model', 'provider'], stepMs: quarterMs, rich: false },
];

const flags = [
  { flag: 'account', names: ['account_id', 'key_id', 'person', 'project'] },
  { flag: 'model', names: ['model'] },
  { flag: 'provider', names: ['provider'] },
] as const;

/**
 * The parts that tell these dimensions apart: of each step the smallest, from the longest step on; the last is the fine part.
 * Where accounts are not asked for, days of all of them are far fewer sums than eight days of each.
 */
export function partsFor(dimensions: ReadonlySet<string>): readonly Part[] {
  const requested = flags.filter(({ names }) => names.some((name) => dimensions.has(name))).map(({ flag }) => flag);
  const needed = parts.filter(
    ({ by }) =>
      requested.every((flag) => by.includes(flag)) && (requested.includes('account') || !by.includes('account')),
  );
  const smallest = needed.filter(
    ({ stepMs, number }, index) => number !== finePart && needed.findIndex((one) => one.stepMs === stepMs) === index,
  );
  return [...smallest, parts.at(-1)!];
}

/** Parts other than the fine one with steps of this length. */
export const partsWithStep = (step: number): number[] =>
  parts.filter(({ number, stepMs }) => stepMs === step && number !== finePart).map(({ number }) => number);

export const blockParts = partsWithStep(blockMs);

/** Parts that are not kept from the beginning. */
export const richParts = parts.filter(({ rich }) => rich).map(({ number }) => number);

/** Sources of parts while hours are folded: the first ones of the fine part, the others of those, which are far smaller. */
export const sourceOf: ReadonlyMap<number, number> = new Map([
  ...[3, 14, 8, 10].map((part) => [part, finePart] as const),
  ...[1, 2, 4, 5, 6, 11, 12, 13].map((part) => [part, 3] as const),
  ...[7, 9].map((part) => [part, 14] as const),
]);

/** The part by days that blocks are made of: it has the dimensions of all of them. */
export const blockSource = 8;

/** Sources from which parts with the longest step are rebuilt. */
export const blockSources: ReadonlyMap<number, number> = new Map([
  [9, 7],
  [10, blockSource],
]);

export const isOneOf = (number: SQL, numbers: readonly number[]): SQL =>
  sql`${number} in (${sql.raw(numbers.join(', '))})`;

/** Dimensions that a part does not tell apart. */
export function dimensionsWithout({ by }: Part, { dimensions }: SumTable): readonly Dimension[] {
  const apart = flags.flatMap(({ flag, names }): string[] => (by.includes(flag) ? [] : [...names]));
  return dimensions.filter(({ name }) => apart.includes(name));
}

const partRows = sql.raw(
  parts
    .map(({ number, by, stepMs, rich }) => {
      const step = `interval '${stepMs / 60_000} minutes'`;
      return `(${number}, ${step}, ${rich}, ${flags.map(({ flag }) => by.includes(flag)).join(', ')})`;
    })
    .join(', '),
);

export const column = (name: string): SQL => sql.raw(`"${name}"`);

/** Tables of a schema: the state of the sums, the rows, and the sums with their dimensions, to be read. */
export function namesOf(schema: string, { name, rows, given, dimensions }: SumTable) {
  const table = (text: string) => sql`${sql.identifier(schema)}.${sql.identifier(text)}`;
  const [sums, groups] = [table(name), table(`${name}_groups`)];
  // The account is in both.
  const columns = sql.join(
    dimensions.filter((dimension) => dimension.name !== 'account_id').map((dimension) => column(dimension.name)),
    sql`, `,
  );
  return {
    sums,
    groups,
    state: table(`${name}_state`),
    rows: given?.(schema) ?? table(rows),
    kept: sql`(select sums.*, ${columns} from ${sums} as sums join ${groups} as groups
      on groups.account_id = sums.account_id and groups.id = sums.group_id) as kept`,
  };
}

export const withinRange = (at: SQL, [from, until]: Range): SQL =>
  sql`${at} >= ${instantText(from)}::timestamptz and ${at} < ${instantText(until)}::timestamptz`;

/** The rows of a span, as a source. */
export const rowsWithin = (schema: string, sums: SumTable, range: Range): SQL =>
  sums.given?.(schema, range) ??
  sql`(select * from ${namesOf(schema, sums).rows} where ${withinRange(sums.at, range)}) as given`;

/** How the columns of a source are read: of rows, or of the fine part. */
export interface Shape {
  readonly at: SQL;
  value(dimension: Dimension): SQL;
  sum(measure: Measure): SQL;
}

export const rowShape = ({ at }: SumTable): Shape => ({
  at,
  value: ({ value, none }) => sql`coalesce(${value}, ${none})`,
  sum: (measure) => measure.sum,
});

export const keptShape: Shape = {
  at: column('at'),
  value: ({ name }) => column(name),
  sum: ({ name }) => sql`sum(${column(name)})`,
};

/**
 * Sums of a source of that shape, with the columns part, at, dimensions, measures; `chosen` is a condition on `part.number`,
 * `part.rich` and columns of the source.
 */
export function grouped(sums: SumTable, shape: Shape, source: SQL, chosen: SQL): SQL {
  const dimensions = sums.dimensions.map((dimension) => {
    const flag = flags.find(({ names }) => names.some((name) => name === dimension.name))?.flag;
    const value = shape.value(dimension);
    const named = column(dimension.name);
    if (flag === undefined) return sql`${value} as ${named}`;
    return sql`case when by_${sql.raw(flag)} then ${value} else ${dimension.none} end as ${named}`;
  });
  const keys = sql.raw(Array.from({ length: dimensions.length + 2 }, (_, index) => index + 1).join(', '));
  const measures = sums.measures.map((measure) => sql`${shape.sum(measure)} as ${column(measure.name)}`);
  return sql`
    select part.number as part, date_bin(part.step, ${shape.at}, timestamptz 'epoch') as at,
      ${sql.join([...dimensions, ...measures], sql`, `)}
    from ${source} cross join (values ${partRows}) as part (number, step, rich, by_account, by_model, by_provider)
    where ${chosen} group by ${keys}`;
}

/** A name within a statement, which may add to several sums. */
const partOf = ({ name }: SumTable, part: string): SQL => sql.raw(`${name}_${part}`);

/**
 * Three parts of a WITH that add such sums to the kept ones. A group is known by a hash of its dimensions; the order keeps two
 * statements from waiting for each other.
 */
export function addedWith(schema: string, sums: SumTable, found: SQL): SQL {
  const names = namesOf(schema, sums);
  const list = (columns: readonly { readonly name: string }[]) =>
    sql.join(
      columns.map(({ name }) => column(name)),
      sql`, `,
    );
  const [dimensions, measures] = [list(sums.dimensions), list(sums.measures)];
  const hashed = sums.dimensions.map(({ name, none, later }) =>
    later === undefined ? column(name) : sql`${sql.raw(`'${later}'`)} || nullif(${column(name)}, ${none})`,
  );
  const sets = sums.measures.map(({ name }) => {
    const measure = column(name);
    return sql`${measure} = coalesce(kept.${measure} + excluded.${measure}, kept.${measure}, excluded.${measure})`;
  });
  const [foundHere, groupsAdded, sumsAdded] = ['found', 'groups_added', 'added'].map((part) => partOf(sums, part));
  return sql`
    ${foundHere} as materialized (
      select *, hashtextextended(concat_ws(E'\\x1f', ${sql.join(hashed, sql`, `)}), 0) as group_id from (${found}) as found
    ),
    ${groupsAdded} as (
      insert into ${names.groups} (id, ${dimensions})
      select distinct group_id, ${dimensions} from ${foundHere} order by group_id on conflict do nothing
    ),
    ${sumsAdded} as (
      insert into ${names.sums} as kept (account_id, part, group_id, at, ${measures})
      select account_id, part, group_id, at, ${measures} from ${foundHere} order by part, group_id, at
      on conflict (part, group_id, at, account_id) do update set ${sql.join(sets, sql`, `)}
    )`;
}

/**
 * Parts of a WITH that add sums of rows that were added up in memory (sums-in-memory.ts), and of `source`: rows that the statement itself
 * has found beside them, with columns of the table. What comes to hours that other parts have already goes to those as well: the lock
 * keeps `foldSums` from passing them meanwhile.
 */
export function keptOfColumns(schema: string, sums: SumTable, source: string | undefined): SQL {
  const typed = [
    { name: 'at', type: 'bigint' },
    ...sums.dimensions.map(({ name }) => ({ name, type: 'text' })),
    ...sums.measures.map(({ name, isHistogram }) => ({ name, type: isHistogram === true ? 'numeric' : 'bigint' })),
  ];
  const names = typed.map(({ name }) => name);
  const given = typed.map(({ name, type }) => ({ name: `${sums.name}.${name}`, type }));
  const dimensions = sums.dimensions.map(({ name, isUuid }) =>
    isUuid === true ? sql`${column(name)}::uuid` : column(name),
  );
  const columns = sql.join([...dimensions, ...sums.measures.map(({ name }) => column(name))], sql`, `);
  const made = sql`select ${sql.raw(String(finePart))} as part, to_timestamp(at::float8 / 1000) as at, ${columns}
    from ${rowsOfColumns(given, names)} as given`;
  if (source === undefined) return keptAs(schema, sums, made);
  const found = grouped(sums, rowShape(sums), sql.raw(source), isFine);
  return keptAs(schema, sums, grouped(sums, keptShape, sql`(${made} union all ${found}) as given`, isFine));
}

const isFine = sql`part.number = ${sql.raw(String(finePart))}`;

function keptAs(schema: string, sums: SumTable, made: SQL): SQL {
  const [folded, fine] = [partOf(sums, 'folded'), partOf(sums, 'fine')];
  const isLate = sql`part.number <> ${sql.raw(String(finePart))} and at < (select until from ${folded})
    and (not part.rich or at >= (select rich from ${folded}))`;
  // The other parts are made of the few sums of the fine one, not of the rows.
  return sql`
    ${folded} as (select folded as until, rich_from as rich from ${namesOf(schema, sums).state} for share),
    ${fine} as materialized (${made}),
    ${addedWith(schema, sums, sql`select * from ${fine} union all ${grouped(sums, keptShape, sql`(select * from ${fine}) as made`, isLate)}`)}`;
}
