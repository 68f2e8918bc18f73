/** SQL statements on recorded bodies and recordings. */
import { type SQL, sql } from 'drizzle-orm';
import type { RecordedBody, Recording, RequestBodies } from '../../common/domain/admin/recorded-bodies.ts';
import { type Database, isUuid } from '../../common/domain/database.ts';
import { noId } from '../../common/rollups/sums-in-memory.ts';

/** Topic of changes of recordings. */
export const recordingsTopic = 'body recordings';

type Row = Readonly<Record<string, unknown>>;

export class BodyStore {
  readonly #database: Database;
  readonly #bodies: SQL;
  readonly #recordings: SQL;

  constructor(database: Database) {
    this.#database = database;
    this.#bodies = sql`${sql.identifier(database.schema)}.request_bodies`;
    this.#recordings = sql`${sql.identifier(database.schema)}.body_recordings`;
  }

  /** `rows`: a JSON array of objects by column name. */
  async insert(rows: string): Promise<void> {
    await this.#rows(
      sql`insert into ${this.#bodies} select * from jsonb_populate_recordset(null::${this.#bodies}, ${rows}::jsonb)
          on conflict (account_id, request_id) do nothing`,
    );
  }

  async find(requestId: string, now: number): Promise<RequestBodies | undefined> {
    if (!isUuid(requestId)) return undefined;
    const [row] = await this.#rows(
      sql`select request_id::text as request_id, nullif(account_id::text, ${noId}) as account_id,
            (extract(epoch from received_at) * 1000)::float8 as received_at,
            (extract(epoch from expires_at) * 1000)::float8 as expires_at,
            request, request_type, request_bytes::float8 as request_bytes, request_left_out::float8 as request_left_out,
            answer, answer_type, answer_bytes::float8 as answer_bytes, answer_left_out::float8 as answer_left_out
          from ${this.#bodies} where request_id = ${requestId}::uuid and expires_at > ${instant(now)}::timestamptz`,
    );
    return row === undefined ? undefined : bodiesOf(row);
  }

  /** Deletes expired bodies, and those older than `oldest`: a shortened retention applies to existing bodies too. */
  async prune(now: number, oldest: number | undefined): Promise<void> {
    const older = oldest === undefined ? sql`` : sql`or received_at < ${instant(oldest)}::timestamptz`;
    await this.#rows(sql`delete from ${this.#bodies} where expires_at <= ${instant(now)}::timestamptz ${older}`);
    await this.#rows(sql`delete from ${this.#recordings} where until <= ${instant(now)}::timestamptz`);
  }

  /** Resolves with the number of deleted rows. */
  async forget({
    requestId,
    accountId,
  }: {
    requestId?: string | undefined;
    accountId?: string | undefined;
  }): Promise<number> {
    if ([requestId, accountId].some((id) => id !== undefined && !isUuid(id))) return 0;
    const which = [
      ...(requestId === undefined ? [] : [sql`request_id = ${requestId}::uuid`]),
      ...(accountId === undefined ? [] : [sql`account_id = ${accountId}::uuid`]),
    ];
    const where = which.length === 0 ? sql`` : sql`where ${sql.join(which, sql` and `)}`;
    const [row] = await this.#rows(
      sql`with gone as (delete from ${this.#bodies} ${where} returning 1) select count(*)::int as count from gone`,
    );
    return Number(row!['count']);
  }

  async recordings(now: number): Promise<Recording[]> {
    const rows = await this.#rows(
      sql`select id::text as id, account_id::text as account_id, key_id::text as key_id, model, errors_only, started_by,
            (extract(epoch from started_at) * 1000)::float8 as started_at,
            (extract(epoch from until) * 1000)::float8 as until
          from ${this.#recordings} where until > ${instant(now)}::timestamptz order by started_at desc, id desc`,
    );
    return rows.map(recordingOf);
  }

  async record({ id, accountId, keyId, model, errorsOnly, startedAt, until, by }: Recording): Promise<void> {
    await this.#change(
      id,
      sql`insert into ${this.#recordings} (id, account_id, key_id, model, errors_only, started_at, until, started_by)
          values (${id}::uuid, ${accountId ?? null}::uuid, ${keyId ?? null}::uuid, ${model ?? null}, ${errorsOnly},
            ${instant(startedAt)}::timestamptz, ${instant(until)}::timestamptz, ${by})`,
    );
  }

  /** Resolves with whether the recording was running. */
  async stopRecording(id: string): Promise<boolean> {
    if (!isUuid(id)) return false;
    const gone = await this.#change(
      id,
      sql`delete from ${this.#recordings} where id = ${id}::uuid returning id::text as id`,
    );
    return gone.length > 0;
  }

  /** Changes one recording and announces it to every process. */
  #change(id: string, statement: SQL): Promise<Row[]> {
    return this.#database.change(recordingsTopic, id, (orm) => this.#rows(statement, orm));
  }

  async #rows(statement: SQL, orm = this.#database.orm): Promise<Row[]> {
    return (await orm.execute(statement)) as unknown as Row[];
  }
}

const instant = (at: number): string => new Date(at).toISOString();

function bodiesOf(row: Row): RequestBodies {
  return {
    requestId: String(row['request_id']),
    accountId: textOf(row['account_id']),
    receivedAt: Math.round(Number(row['received_at'])),
    expiresAt: Math.round(Number(row['expires_at'])),
    request: bodyOf(row, 'request'),
    answer: bodyOf(row, 'answer'),
  };
}

function bodyOf(row: Row, side: 'request' | 'answer'): RecordedBody | undefined {
  const text = textOf(row[side]);
  if (text === undefined) return undefined;
  const [bytes, leftOut] = [Number(row[`${side}_bytes`]), Number(row[`${side}_left_out`])];
  return { text, mediaType: textOf(row[`${side}_type`]), bytes, leftOut };
}

function recordingOf(row: Row): Recording {
  return {
    id: String(row['id']),
    accountId: textOf(row['account_id']),
    keyId: textOf(row['key_id']),
    model: textOf(row['model']),
    errorsOnly: row['errors_only'] === true,
    startedAt: Math.round(Number(row['started_at'])),
    until: Math.round(Number(row['until'])),
    by: String(row['started_by']),
  };
}

const textOf = (value: unknown): string | undefined => (value as string | null) ?? undefined;
