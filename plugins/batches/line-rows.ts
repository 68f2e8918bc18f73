/** The rows of a batch's lines. Every transition is one statement that checks the old state. */
import { type SQL, sql } from 'drizzle-orm';
import type { Database, Orm } from '../common/domain/database.ts';
import { inMs, jsonOf, rowsOf, tableOf } from '../common/kit/sql.ts';
import type { DoneLine, InputLine, LineAnswer, TakenLine } from './batch.ts';

/** A row beside its texts, with its part of the indexes: as measured. */
export const lineBytes = 400;

interface Taken {
  readonly number: number;
  readonly custom_id: string;
  readonly first_byte: string;
  readonly bytes: number;
  readonly sent_ago: string | null;
}

export class LineRows {
  readonly #orm: Orm;
  readonly #lines: SQL;
  readonly #batches: SQL;

  constructor(database: Database) {
    this.#orm = database.orm;
    this.#lines = tableOf(database, 'batch_lines');
    this.#batches = tableOf(database, 'batches');
  }

  async clear(id: string): Promise<void> {
    await this.#orm.execute(sql`delete from ${this.#lines} where batch_id = ${id}`);
  }

  async add(id: string, lines: readonly InputLine[]): Promise<void> {
    await this.#orm.execute(
      sql`insert into ${this.#lines} (account_id, batch_id, number, custom_id, first_byte, bytes)
        select account_id, id, number, "customId", "firstByte", bytes from ${this.#batches} cross join json_to_recordset(${jsonOf(lines)})
          as lines (number integer, "customId" text, "firstByte" bigint, bytes integer) where id = ${id}`,
    );
  }

  /** Bytes of a batch's lines in the database. */
  async storedBytes(id: string): Promise<number> {
    const [row] = await rowsOf<{ bytes: string }>(
      this.#orm,
      sql`select coalesce(sum(${lineBytes}::bigint + octet_length(custom_id) + coalesce(octet_length(answer), 0)
          + coalesce(octet_length(request), 0)), 0)::text as bytes
        from ${this.#lines} where batch_id = ${id}`,
    );
    return Number(row!.bytes);
  }

  /** Takes lines that are due, and those that a worker which lost the batch had taken; they are `running` from here on. */
  async take(id: string, token: string, limit: number): Promise<TakenLine[]> {
    const rows = await rowsOf<Taken>(
      this.#orm,
      sql`with due as (
          select number from ${this.#lines}
          where batch_id = ${id} and ((state = 'waiting' and due_at <= now()) or (state = 'running' and lease <> ${token}))
            and exists (select from ${this.#batches} where id = ${id} and lease = ${token} and state = 'running'
              and cancel_at is null and expires_at > now())
          order by number limit ${limit}::int for update
        ), before as (
          select number, sent_at from ${this.#lines} where batch_id = ${id} and number in (select number from due)
        )
        update ${this.#lines} as lines set state = 'running', lease = ${token}, sent_at = coalesce(lines.sent_at, now())
        from before where lines.batch_id = ${id} and lines.number = before.number
        returning lines.number, custom_id, first_byte::text as first_byte, bytes,
          (extract(epoch from now() - before.sent_at) * 1000)::bigint::text as sent_ago`,
    );
    return rows.map((row) => ({
      number: row.number,
      customId: row.custom_id,
      firstByte: Number(row.first_byte),
      bytes: row.bytes,
      sentAgoMs: row.sent_ago === null ? undefined : Number(row.sent_ago),
    }));
  }

  async finish(id: string, number: number, { result, status, requestId, answer, cost }: LineAnswer): Promise<void> {
    await this.#orm.execute(
      sql`update ${this.#lines} set state = 'done', result = ${result}, status = ${status ?? null}::int,
          request_id = ${requestId ?? null}, answer = ${answer ?? null}, cost = ${cost?.toString() ?? null}::bigint
        where batch_id = ${id} and number = ${number}::int and state = 'running'`,
    );
  }

  /** It was not begun: it is made later. */
  async postpone(id: string, number: number, token: string, milliseconds: number): Promise<void> {
    await this.#orm.execute(
      sql`update ${this.#lines} set state = 'waiting', due_at = ${inMs(milliseconds)}, sent_at = null
        where batch_id = ${id} and number = ${number}::int and state = 'running' and lease = ${token}`,
    );
  }

  /** Milliseconds until the next line that is made as a call is due; undefined: none is open. */
  async nextDueMs(id: string): Promise<number | undefined> {
    const [row] = await rowsOf<{ milliseconds: number | null }>(
      this.#orm,
      sql`select (extract(epoch from min(due_at) - now()) * 1000)::float8 as milliseconds
        from ${this.#lines} where batch_id = ${id} and state in ('waiting', 'running')`,
    );
    return row?.milliseconds ?? undefined;
  }

  /** Ends lines that were not begun. A line that may have been sent has an unknown outcome. */
  async close(id: string, unknown: string): Promise<void> {
    await this.#orm.execute(
      sql`update ${this.#lines} as lines set state = 'done',
          result = case when lines.state = 'running' then 'errored' when batches.cancel_at is not null then 'cancelled' else 'expired' end,
          status = case when lines.state = 'running' then 500 end, answer = case when lines.state = 'running' then ${unknown} end,
          cost = case when lines.state = 'running' then null else 0 end
        from ${this.#batches} as batches where lines.batch_id = ${id} and batches.id = ${id} and batches.account_id = lines.account_id and lines.state in ('waiting', 'running')`,
    );
  }

  async done(id: string, after: number, limit: number): Promise<DoneLine[]> {
    const rows = await rowsOf<{
      readonly number: number;
      readonly custom_id: string;
      readonly result: DoneLine['result'];
      readonly status: number | null;
      readonly request_id: string | null;
      readonly answer: string | null;
    }>(
      this.#orm,
      sql`select number, custom_id, result, status, request_id, answer from ${this.#lines}
        where batch_id = ${id} and number > ${after}::int and state = 'done' order by number limit ${limit}::int`,
    );
    return rows.map((row) => ({
      number: row.number,
      customId: row.custom_id,
      result: row.result,
      status: row.status ?? undefined,
      requestId: row.request_id ?? undefined,
      answer: row.answer ?? undefined,
    }));
  }
}
