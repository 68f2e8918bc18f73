/** The rows of uploads in parts, and of the parts that have come; the bytes are kept by the plugin `files`. */
import { type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock, Random } from '../../../core/contract/host-tools.ts';
import type { Database } from '../../common/domain/database.ts';
import {
  column,
  columnsOf,
  countColumn,
  instant,
  optional,
  rowsOf,
  tableOf,
  timeColumn,
} from '../../common/kit/sql.ts';

/** Lifetime of an upload that is not completed, by OpenAI's rule. */
export const lifetimeMs = 3_600_000;
/** Uploads of one account within their lifetime. */
const mostUploads = 1_000;
const mostParts = 1_000;
const idFormat = /^upload_[0-9a-f]{32}$/;

export interface PartUpload {
  readonly id: string;
  readonly accountId: string;
  /** Id of the file that is made of the parts. */
  readonly fileId: string;
  readonly name: string;
  readonly purpose: string;
  readonly mediaType: string;
  /** As announced. */
  readonly bytes: number;
  /** Lifetime of the file. */
  readonly lifetimeMs?: number | undefined;
  readonly status: 'pending' | 'completed' | 'cancelled';
  readonly createdAt: number;
  readonly expiresAt: number;
}

const columns = columnsOf({
  id: column<string>('id'),
  accountId: column<string>('account_id'),
  fileId: column<string>('file_id'),
  name: column<string>('name'),
  purpose: column<string>('purpose'),
  mediaType: column<string>('media_type'),
  bytes: countColumn('bytes'),
  lifetimeMs: optional(countColumn('lifetime_ms')),
  status: column<PartUpload['status']>('status'),
  createdAt: timeColumn('created_at'),
});

export class PartUploads {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(database: Database, clock: Clock, random: Random) {
    this.#database = database;
    this.#clock = clock;
    this.#random = random;
  }

  async begin(order: Omit<PartUpload, 'id' | 'status' | 'createdAt' | 'expiresAt'>): Promise<PartUpload> {
    const id = this.#newId('upload');
    const createdAt = this.#clock.now();
    // Uploads dated by a clock that was ahead, and came back, do not count.
    const made = await this.#rows(sql`
      insert into ${this.#uploads} (id, account_id, file_id, name, purpose, media_type, bytes, lifetime_ms, created_at)
      select ${id}, ${order.accountId}, ${order.fileId}, ${order.name}, ${order.purpose}, ${order.mediaType},
        ${order.bytes}::bigint, ${order.lifetimeMs ?? null}::bigint, ${instant(createdAt)}
      where (select count(*) from ${this.#uploads} where account_id = ${order.accountId} and created_at > ${this.#oldest}
          and created_at < ${instant(createdAt + lifetimeMs)})
        < ${mostUploads}::int
      returning id`);
    if (made.length === 0) throw tooMany(`At most ${mostUploads} uploads of an account are begun in an hour.`);
    return { ...order, id, status: 'pending', createdAt, expiresAt: createdAt + lifetimeMs };
  }

  /** undefined: the account has none of this id, or it has expired. */
  async find(accountId: string, id: string): Promise<PartUpload | undefined> {
    if (!idFormat.test(id)) return undefined;
    const [row] = await this.#rows<never>(sql`
      select ${columns.select}
      from ${this.#uploads} where id = ${id} and account_id = ${accountId} and created_at > ${this.#oldest}`);
    if (row === undefined) return undefined;
    const upload = columns.read(row);
    return { ...upload, expiresAt: upload.createdAt + lifetimeMs };
  }

  /** Makes room for a part of this many bytes, within the announced size. */
  async addPart(
    { id: uploadId, accountId, bytes: announced }: PartUpload,
    bytes: number,
  ): Promise<{ id: string; createdAt: number }> {
    const id = this.#newId('part');
    const createdAt = this.#clock.now();
    // The lock lets parts that come at the same time be counted one after the other.
    const made = await this.#database.orm.transaction(async (transaction) => {
      const upload = sql`account_id = ${accountId} and id = ${uploadId}`;
      await transaction.execute(sql`select id from ${this.#uploads} where ${upload} for update`);
      return (await transaction.execute(sql`
        insert into ${this.#parts} (id, account_id, upload_id, bytes)
        select ${id}, ${accountId}, ${uploadId}, ${bytes}::bigint
        where exists (select from ${this.#uploads} where ${upload} and status = 'pending')
          and (select count(*) < ${mostParts}::int and coalesce(sum(bytes), 0) + ${bytes}::bigint <= ${announced}::bigint
            from ${this.#parts} where account_id = ${accountId} and upload_id = ${uploadId})
        returning id`)) as unknown as unknown[];
    });
    if (made.length > 0) return { id, createdAt };
    throw new GatewayError(
      'invalid_request',
      `The upload has ended, or its parts would have more than the announced ${announced} bytes, or it has ${mostParts} parts.`,
      { field: 'data', shouldRetry: false },
    );
  }

  async removePart({ accountId, id: uploadId }: PartUpload, id: string): Promise<void> {
    await this.#rows(
      sql`delete from ${this.#parts} where account_id = ${accountId} and upload_id = ${uploadId} and id = ${id}`,
    );
  }

  /** The bytes of each part, by its id. */
  async parts({ accountId, id }: PartUpload): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#rows<{ id: string; bytes: string }>(
      sql`select id, bytes::text as bytes from ${this.#parts} where account_id = ${accountId} and upload_id = ${id}`,
    );
    return new Map(rows.map((row) => [row.id, Number(row.bytes)]));
  }

  async end(upload: PartUpload, status: 'completed' | 'cancelled'): Promise<PartUpload> {
    await this.#rows(
      sql`update ${this.#uploads} set status = ${status} where account_id = ${upload.accountId} and id = ${upload.id}`,
    );
    return { ...upload, status };
  }

  async deleteExpired(): Promise<void> {
    await this.#rows(sql`delete from ${this.#uploads} where created_at <= ${this.#oldest}`);
  }

  #newId(kind: string): string {
    return `${kind}_${this.#random.bytes(16).toString('hex')}`;
  }

  #rows<T>(statement: SQL): Promise<T[]> {
    return rowsOf(this.#database.orm, statement);
  }

  get #oldest(): SQL {
    return instant(this.#clock.now() - lifetimeMs);
  }

  get #uploads(): SQL {
    return tableOf(this.#database, 'part_uploads');
  }

  get #parts(): SQL {
    return tableOf(this.#database, 'upload_parts');
  }
}

function tooMany(message: string): GatewayError {
  return new GatewayError('rate_limited', message, { code: 'uploads', retryAfterMs: 60_000 });
}
