/** The sums that are kept of requests, written with their rows: counts by result, and histograms of both durations. */
import { type SQL, sql } from 'drizzle-orm';
import { type Database, MadeParameters } from '../common/domain/database.ts';
import { firstIdAt } from '../common/kit/arrival.ts';
import { instantText } from '../common/kit/paging.ts';
import { jsonOf, type Runner, rowsOf } from '../common/kit/sql.ts';
import { filled, filledBeside, rowsOfColumns, type Wording, wordingOf } from '../common/rollups/named-parameters.ts';
import { column, keptOfColumns, type SumTable } from '../common/rollups/table.ts';
import { histogramOf } from './histogram.ts';
import { causeOf, failed, results } from './queries-sql.ts';
import { idsIn, parametersOf, type RowsInput, rowColumns } from './row-columns.ts';

const noId = sql`'00000000-0000-0000-0000-000000000000'::uuid`;
const noName = sql`''`;

export const requestSums: SumTable = {
  name: 'request_sums',
  rows: 'requests',
  at: sql`received_at`,
  dimensions: [
    { name: 'account_id', value: sql`account_id`, none: noId, isUuid: true },
    { name: 'key_id', value: sql`key_id`, none: noId, isUuid: true },
    { name: 'model', value: sql`model`, none: noName },
    { name: 'provider', value: sql`provider`, none: noName },
    { name: 'operation', value: sql`operation`, none: noName },
    {
      name: 'result',
      value: sql`case when ${results.ok} then 'ok' when ${results.client_error} then 'client_error' when ${results.left} then 'left' else 'upstream_error' end`,
      none: noName,
    },
    { name: 'cause', value: sql`case when ${failed} then ${causeOf} end`, none: noName, later: '' },
    { name: 'person', value: sql`person`, none: noName, later: 'person=' },
    { name: 'project', value: sql`project`, none: noName, later: 'project=' },
  ],
  measures: [
    { name: 'requests', sum: sql`count(*)`, isCount: true },
    { name: 'first_byte', sum: histogramOf(sql`first_byte_ms`), isHistogram: true },
    { name: 'total', sum: histogramOf(sql`total_ms`), isHistogram: true },
  ],
};

/** The sums of all requests: those of the table, and those that are calls, in this view. */
export function requestSumsWith(calls: () => SQL | undefined): SumTable {
  return { ...requestSums, given: (schema, span) => sql`(${givenIn(schema, calls(), span)}) as requests` };
}

/** The core takes a request's id and its time of arrival one after the other. */
const idSlackMs = 1_000;

/** The time of arrival of a call is that in its id, and need not be computed to choose a span. */
function givenIn(schema: string, calls: SQL | undefined, span: readonly [number, number] | undefined): SQL {
  const columns = sql`model, provider, operation, outcome, status, error_kind, error_code, received_at, first_byte_ms, total_ms, person, project`;
  const within = ([from, until]: readonly [number, number]) =>
    sql`id >= ${firstIdAt(from)}::uuid and id < ${firstIdAt(until)}::uuid`;
  const owned =
    span &&
    sql`where ${within([span[0] - idSlackMs, span[1] + idSlackMs])}
      and received_at >= ${instantText(span[0])}::timestamptz and received_at < ${instantText(span[1])}::timestamptz`;
  const own = sql`select id, account_id, key_id, ${columns} from ${sql.identifier(schema)}.requests ${owned ?? sql``}`;
  if (calls === undefined) return own;
  const called = span && sql`where ${within(span)}`;
  return sql`${own} union all select id, account_id::uuid, key_id::uuid, ${columns} from ${calls} ${called ?? sql``}`;
}

/**
 * Adds rows, a JSON array of what the log line has and a timeline, and their sums. A row that is there already changes nothing: it
 * fails the statement, which is then sent for the others.
 */
export async function addRows(place: RowsPlace, rows: string): Promise<void> {
  try {
    await place.orm.execute(rowsStatement(place, { rows, present: [] }));
  } catch (error) {
    if (!isTwice(error)) throw error;
    const present = await presentOf(place.orm, place.schema, idsIn(rows));
    await place.orm.execute(rowsStatement(place, { rows, present }));
  }
}

type RowsPlace = Pick<Database, 'orm' | 'schema' | 'makesParameters'>;

/** PostgreSQL's code of a second value of a unique key. */
const isTwice = (error: unknown): boolean =>
  error instanceof Error && ((error as { code?: unknown }).code === '23505' || isTwice(error.cause));

async function presentOf(runner: Runner, schema: string, ids: readonly string[]): Promise<string[]> {
  const rows = await rowsOf<{ id: string }>(
    runner,
    sql`select id::text as id from ${sql.identifier(schema)}.requests
        where id in (select value::uuid from json_array_elements_text(${jsonOf(ids)}))`,
  );
  return rows.map(({ id }) => id);
}

function rowsStatement({ schema, makesParameters }: RowsPlace, given: Omit<RowsInput, 'names'>): SQL {
  let wording = wordings.get(schema);
  if (wording === undefined) {
    wording = wordingOf(statementFor(schema));
    wordings.set(schema, wording);
  }
  const input: RowsInput = { ...given, names: wording.names };
  if (makesParameters !== true) return filled(wording, parametersOf(input));
  return filledBeside(wording, new MadeParameters(columnsModule, input));
}

const columnsModule = new URL('./row-columns.ts', import.meta.url).href;
/** A process has few schemas. Put together from many parts it takes longer than a row. */
const wordings = new Map<string, Wording>();

function statementFor(schema: string): SQL {
  const names = sql.raw(rowColumns.map(({ name }) => name).join(', '));
  const values = rowColumns.map(({ name, cast }) => {
    const value = column(name);
    if (cast === undefined) return value;
    return cast === 'time' ? sql`to_timestamp(${value}::float8 / 1000)` : sql`${value}::${sql.raw(cast)}`;
  });
  return sql`
    with added as (
      insert into ${sql.identifier(schema)}.requests (${names})
      select ${sql.join(values, sql`, `)} from ${rowsOfColumns(rowColumns)} as given
    ), ${keptOfColumns(schema, requestSums, undefined)} select 1`;
}
