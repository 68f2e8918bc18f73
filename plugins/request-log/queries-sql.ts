/** SQL fragments of the request queries: conditions, columns and the mapping of rows. */
import { type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Span } from '../common/domain/admin/pages.ts';
import type { RequestFilter, RequestResult, RequestView, VendorWords } from '../common/domain/admin/requests.ts';
import type { CallRows } from '../common/domain/call-facts.ts';
import { isUuid } from '../common/domain/database.ts';
import { vendorWordsEvent } from '../common/domain/timeline.ts';
import type { GuardrailVerdicts } from '../common/guardrails/verdicts.ts';
import { firstIdAt } from '../common/kit/arrival.ts';
import { noId } from '../common/rollups/sums-in-memory.ts';
import { eventsOf, renderTimeline, type StoredEvent } from './timeline.ts';

export const results: Readonly<Record<RequestResult, SQL>> = {
  left: sql`outcome = 'client_left'`,
  upstream_error: sql`outcome <> 'client_left' and (outcome = 'failed' or status >= 500)`,
  client_error: sql`outcome = 'complete' and status between 400 and 499`,
  ok: sql`outcome = 'complete' and status < 400`,
};

export const failed = sql`((${results.client_error}) or (${results.upstream_error}))`;
/** Why a request failed. */
export const causeOf = sql`coalesce(error_code, error_kind, status::text)`;

/** Rows of requests: a table, and the type that it has for the ids of accounts and keys. */
interface Source {
  readonly table: SQL;
  readonly idType: 'uuid' | 'text';
  /** Ids of rows with a tag; absent: none has any. */
  readonly tagged?: CallRows['tagged'];
  /** Ids of requests with a finding of guardrails; absent: there are none. */
  readonly found?: GuardrailVerdicts['found'] | undefined;
}

/** Requests are rows of their own table, or of the view of calls that have their facts. Each is in one of them. */
export function sourcesOf(
  schema: string,
  calls: CallRows | undefined,
  verdicts: GuardrailVerdicts | undefined,
): readonly Source[] {
  const found: Source['found'] = verdicts && ((...of) => verdicts.found(...of));
  const requests: Source = { table: sql`${sql.identifier(schema)}.requests`, idType: 'uuid', found };
  return calls === undefined
    ? [requests]
    : [requests, { table: calls.view, idType: 'text', tagged: calls.tagged, found }];
}

interface Wanted {
  readonly columns: SQL;
  readonly filter: RequestFilter;
  /** Added to the query of each source, so that each reads an index of its own, and no further than it must. */
  readonly rest?: SQL | undefined;
}

/** The rows of all sources under a filter; undefined: no row can match. */
export function rowsUnder(sources: readonly Source[], { columns, filter, rest = sql`` }: Wanted): SQL | undefined {
  const able = sources.filter(
    ({ tagged, found }) =>
      (filter.tag === undefined || tagged !== undefined) && (filter.finding === undefined || found !== undefined),
  );
  if (able.length === 0) return undefined;
  const parts = able.map(({ table, ...source }) => {
    const wanted = conditionOf(filter, source);
    return wanted && sql`(select ${columns} from ${table} as requests where ${wanted} ${rest})`;
  });
  return parts.includes(undefined) ? undefined : sql.join(parts as SQL[], sql` union all `);
}

/** The row of one request, if it is this account's. */
export function rowWith(sources: readonly Source[], id: string, accountId: string | undefined): SQL {
  const parts = sources.map(({ table, idType }) => {
    const owner = sql`${accountId?.toLowerCase()}::${sql.raw(idType)}`;
    const owned = accountId === undefined ? sql`` : sql`and account_id = ${owner}`;
    return sql`(select ${viewColumns} from ${table} as requests where id = ${id}::uuid ${owned})`;
  });
  return sql.join(parts, sql` union all `);
}

/** Whether there may be rows that a filter means. */
export function canMatch(filter: Omit<RequestFilter, keyof Span>): boolean {
  const { accountId, keyId, personId, projectIds = [], model, provider, operation, cause, tag, finding } = filter;
  if (tag !== undefined && accountId === undefined) return false;
  if ([accountId, keyId].some((id) => id !== undefined && !isUuid(id))) return false;
  // Postgres text cannot hold a NUL and fails on one in a parameter.
  return ![personId, ...projectIds, model, provider, operation, cause, tag, finding?.check].some((text) =>
    text?.includes('\0'),
  );
}

/** The condition of a filter on a source's rows; undefined: no row can match. */
function conditionOf(filter: RequestFilter, { idType, tagged, found }: Omit<Source, 'table'>): SQL | undefined {
  const { accountId, keyId, keys, model, provider, operation, result, cause, tag, finding } = filter;
  if (!canMatch(filter)) return undefined;
  instant(filter.from, 'from');
  instant(filter.until, 'until');
  const [first, end] = [firstIdAt(filter.from), firstIdAt(filter.until)];
  const parts = [sql`id >= ${first}::uuid and id < ${end}::uuid`];
  if (tag !== undefined) parts.push(sql`id in (${tagged!(accountId!.toLowerCase(), tag, first, end)})`);
  if (finding !== undefined) parts.push(sql`id in (${found!(finding, filter, accountId)})`);
  const type = sql.raw(idType);
  if (accountId !== undefined) parts.push(sql`account_id = ${accountId.toLowerCase()}::${type}`);
  if (keyId !== undefined) parts.push(sql`key_id = ${keyId.toLowerCase()}::${type}`);
  if (keys !== undefined) {
    const chosen = sql`key_id in (select value::${type} from json_array_elements_text(${JSON.stringify(keys.ids)}::text::json))`;
    parts.push(keys.not === true ? sql`(${chosen}) is not true` : chosen);
  }
  parts.push(...attributed(filter));
  if (model !== undefined) parts.push(sql`model = ${model}`);
  if (provider !== undefined) parts.push(sql`provider = ${provider}`);
  if (operation !== undefined) parts.push(sql`operation = ${operation}`);
  const { withoutOperations = [], withoutCauses = [] } = filter;
  if (withoutOperations.length > 0)
    parts.push(
      sql`operation not in (select value from json_array_elements_text(${JSON.stringify(withoutOperations)}::text::json))`,
    );
  if (withoutCauses.length > 0)
    parts.push(
      sql`(${failed} and ${causeOf} in (select value from json_array_elements_text(${JSON.stringify(withoutCauses)}::text::json))) is not true`,
    );
  if (result !== undefined) parts.push(results[result]);
  if (cause !== undefined) parts.push(sql`${failed} and ${causeOf} = ${cause}`);
  return sql.join(parts, sql` and `);
}

function attributed({ personId, projectIds }: RequestFilter): SQL[] {
  const ofPerson = personId === undefined ? [] : [sql`person = ${personId}`];
  if (projectIds === undefined) return ofPerson;
  const listed = sql`(select value from json_array_elements_text(${JSON.stringify(projectIds)}::text::json))`;
  return [...ofPerson, sql`coalesce(project, '') in ${listed}`];
}

/** Wall-clock milliseconds as a Postgres timestamp. Throws invalid_request. */
export function instant(at: number, field: string): string {
  const date = new Date(at);
  if (!Number.isNaN(date.getTime()) && date.getUTCFullYear() >= 1 && date.getUTCFullYear() <= 9999)
    return date.toISOString();
  throw new GatewayError('invalid_request', 'This is not a time.', { field });
}

export const viewColumns = sql`id::text as id, (extract(epoch from received_at) * 1000)::float8 as received_at, operation,
  protocol, nullif(account_id::text, ${noId}) as account_id, key_id::text as key_id, project, model, provider, upstream_model, upstream_id, streamed,
  status, outcome, error_kind, error_code, attempts, first_byte_ms::float8 as first_byte_ms, total_ms::float8 as total_ms,
  bytes_in, bytes_out::float8 as bytes_out, usage, usage_estimated, finish, dropped, story::json as story`;

type Row = Readonly<Record<string, unknown>>;

export function viewOf(row: Row): RequestView {
  const text = (name: string) => (row[name] as string | null) ?? undefined;
  const number = (name: string) => (row[name] === null ? undefined : Number(row[name]));
  const story = eventsOf(row['story'] as string | StoredEvent[] | null);
  return {
    id: String(row['id']),
    receivedAt: Math.round(Number(row['received_at'])),
    operation: String(row['operation']),
    protocol: text('protocol'),
    accountId: text('account_id'),
    keyId: text('key_id'),
    projectId: text('project'),
    model: text('model'),
    provider: text('provider'),
    upstreamModel: text('upstream_model'),
    upstreamId: text('upstream_id'),
    streamed: row['streamed'] === true,
    status: Number(row['status']),
    outcome: row['outcome'] as RequestView['outcome'],
    errorKind: text('error_kind'),
    errorCode: text('error_code'),
    attempts: Number(row['attempts']),
    firstByteMs: number('first_byte_ms'),
    totalMs: Number(row['total_ms']),
    bytesIn: Number(row['bytes_in']),
    bytesOut: Number(row['bytes_out']),
    usage: (row['usage'] as Record<string, number> | null) ?? undefined,
    usageEstimated: (row['usage_estimated'] as boolean | null) ?? undefined,
    finish: text('finish'),
    dropped: (row['dropped'] as string[] | null) ?? [],
    story: story.map(renderTimeline),
    vendorWords: story.flatMap(wordsIn),
  };
}

/** Values of another version are left out. */
function wordsIn([, id, attempt, message, requestId]: StoredEvent): VendorWords[] {
  if (id !== vendorWordsEvent.id || typeof attempt !== 'number') return [];
  const textIn = (value: unknown) => (typeof value === 'string' ? value : null);
  return [{ attempt, message: textIn(message), requestId: textIn(requestId) }];
}
