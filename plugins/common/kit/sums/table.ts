/**
 * Sums of a table's rows, kept in a table beside it, by quarters of an hour and by UTC days. Each part of that table is one
 * grouping of the same rows. Part 0, of all dimensions by quarters, is written with the rows; the others follow by the hour.
 */
import { type SQL, sql } from 'drizzle-orm';

/** A column that sums are kept by. */
export interface Dimension {
  readonly name: string;
  /** Of a row of the table; may be null. */
  readonly value: SQL;
  /** Stored in place of null, and in parts without this dimension. */
  readonly none: SQL;
}

/** A column of sums. Every measure is a number whose sum over rows is what is wanted. */
export interface Measure {
  readonly name: string;
  /** The aggregate over rows of the table; null where there is nothing to add. */
  readonly sum: SQL;
}

export interface SumTable {
  readonly name: string;
  /** The table whose rows are summed up, and its column of time. */
  readonly rows: string;
  readonly at: SQL;
  /** `account_id`, `key_id`, `model` and `provider`, then those that every part has. */
  readonly dimensions: readonly Dimension[];
  readonly measures: readonly Measure[];
}

/** Time zones differ from UTC by whole quarters of an hour, so the days of each consist of these. */
export const quarterMs = 900_000;
export const dayMs = 86_400_000;

/** The part that is written with the rows. */
export const finePart = 0;

interface Part {
  readonly number: number;
  readonly by: readonly ('account' | 'model' | 'provider')[];
  readonly days: boolean;
}

/** From those with the fewest rows on. `account`: with its keys. The numbers are in the indices' conditions. */
const parts: readonly Part[] = [
  { number: 1, by: [], days: false },
  { number: 2, by: ['provider'], days: false },
  { number: 3, by: ['model', 'provider'], days: false },
  { number: 4, by: ['account'], days: false },
  { number: finePart, by: ['account', 'model', 'provider'], days: false },
  { number: 5, by: [], days: true },
  { number: 6, by: ['provider'], days: true },
  { number: 7, by: ['model', 'provider'], days: true },
  { number: 8, by: ['account'], days: true },
  { number: 9, by: ['account', 'model', 'provider'], days: true },
];

/** The smallest parts that tell these dimensions apart. */
export function partsFor(dimensions: ReadonlySet<string>): { readonly quarters: number; readonly days: number } {
  const needed = parts.filter(({ by }) =>
    flags.every(({ flag, names }) => by.includes(flag) || !names.some((name) => dimensions.has(name))),
  );
  return { quarters: needed.find(({ days }) => !days)!.number, days: needed.find(({ days }) => days)!.number };
}

const flags = [
  { flag: 'account', names: ['account_id', 'key_id'] },
  { flag: 'model', names: ['model'] },
  { flag: 'provider', names: ['provider'] },
] as const;

const partRows = sql.raw(
  parts
    .map(
      ({ number, by, days }) =>
        `(${number}, interval '${days ? '1 day' : '15 minutes'}', ${flags.map(({ flag }) => by.includes(flag)).join(', ')})`,
    )
    .join(', '),
);

/** Tables of a schema: the kept sums, their state, the rows. */
export function namesOf(schema: string, { name, rows }: Pick<SumTable, 'name' | 'rows'>) {
  const table = (text: string) => sql`${sql.identifier(schema)}.${sql.identifier(text)}`;
  return { kept: table(name), state: table(`${name}_state`), rows: table(rows) };
}

export const column = (name: string): SQL => sql.raw(`"${name}"`);

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

/** Rows of the kept table, made from a source of another shape; `chosen` is a condition on `part.number` and `bucket`. */
export function grouped(sums: SumTable, shape: Shape, source: SQL, chosen: SQL): SQL {
  const dimensions = sums.dimensions.map((dimension) => {
    const flag = flags.find(({ names }) => names.some((name) => name === dimension.name))?.flag;
    const value = shape.value(dimension);
    return flag === undefined ? value : sql`case when by_${sql.raw(flag)} then ${value} else ${dimension.none} end`;
  });
  const bucket = sql`date_bin(part.step, ${shape.at}, timestamptz '2000-01-01 00:00:00Z')`;
  const keys = sql.raw(Array.from({ length: dimensions.length + 2 }, (_, index) => index + 1).join(', '));
  const measures = sums.measures.map((measure) => shape.sum(measure));
  return sql`
    select part.number as part, bucket.at as at, ${sql.join([...dimensions, ...measures], sql`, `)}
    from ${source} as given
    cross join (values ${partRows}) as part (number, step, by_account, by_model, by_provider)
    cross join lateral (select ${bucket} as at) as bucket
    where ${chosen} group by ${keys} order by ${keys}`;
}

/** Adds rows of the kept table to it. */
export function added(schema: string, sums: SumTable, rows: SQL): SQL {
  const dimensions = sql.join(
    sums.dimensions.map(({ name }) => column(name)),
    sql`, `,
  );
  const measures = sums.measures.map(({ name }) => column(name));
  const sets = measures.map(
    (name) => sql`${name} = coalesce(kept.${name} + excluded.${name}, kept.${name}, excluded.${name})`,
  );
  return sql`
    insert into ${namesOf(schema, sums).kept} as kept (part, at, ${dimensions}, ${sql.join(measures, sql`, `)}) ${rows}
    on conflict (part, at, ${dimensions}) do update set ${sql.join(sets, sql`, `)}`;
}

/**
 * Two parts of a WITH that add the rows of `source` (a part of it too, with columns of the table) to the sums. What comes to
 * hours that other parts have already goes to those as well: the lock keeps `foldSums` from passing them meanwhile. `after`:
 * a condition that makes the statement's other locks come first.
 */
export function keptWith(schema: string, sums: SumTable, source: string, after = sql`true`): SQL {
  const { state } = namesOf(schema, sums);
  const chosen = sql`part.number = ${sql.raw(String(finePart))} or ${sums.at} < (select until from folded)`;
  return sql`
    folded as (select folded as until from ${state} where ${after} for share),
    sums_added as (${added(schema, sums, grouped(sums, rowShape(sums), sql.raw(source), chosen))})`;
}
