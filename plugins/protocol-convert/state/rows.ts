/** SQL statements on the table of stored answers. */
import { type SQL, sql } from 'drizzle-orm';
import type { Database, Orm } from '../../common/domain/database.ts';
import { instant, rowsOf, tableOf } from '../../common/kit/sql.ts';
import type { ResponseRecord } from './record.ts';

/** A row as every driver returns it: times in milliseconds and counts as text, item ids joined by spaces. */
interface Row {
  readonly id: string;
  readonly kind: string;
  readonly item_ids: string;
  readonly input: string | null;
  readonly response: string | null;
  readonly provider: string | null;
  readonly credential: string | null;
  readonly protocol: string | null;
  readonly tokens: string | null;
  readonly created: string;
  readonly expires: string;
}

const columns = sql.raw(`id, kind, array_to_string(item_ids, ' ') as item_ids, input, response, provider, credential,
  protocol, tokens::text as tokens, (extract(epoch from created_at) * 1000)::bigint::text as created,
  (extract(epoch from expires_at) * 1000)::bigint::text as expires`);

/** Stored answers in the database. */
export class ResponseRows {
  readonly #database: Database;
  readonly #table: SQL;

  constructor(database: Database) {
    this.#database = database;
    this.#table = tableOf(database, 'kept_responses');
  }

  /** Ids are unique within an account: of two answers with one id the first stays. */
  async insert(records: readonly ResponseRecord[]): Promise<void> {
    const rows = sql.join(records.map(valuesOf), sql`, `);
    await this.#database.orm.execute(sql`
      insert into ${this.#table} (account_id, id, kind, item_ids, input, response, provider, credential, protocol, tokens,
        created_at, expires_at)
      values ${rows} on conflict do nothing`);
  }

  /** The account's answer with this id, unless it has expired. */
  async find(accountId: string, id: string, now: number): Promise<ResponseRecord | undefined> {
    const rows = await this.#rows(sql`
      select ${columns} from ${this.#table}
      where account_id = ${accountId} and id = ${id} and expires_at > ${instant(now)}`);
    return rows.map((row) => recordOf(row, accountId))[0];
  }

  /** The account's answers that have one of these items. */
  async findByItems(accountId: string, itemIds: readonly string[], now: number): Promise<ResponseRecord[]> {
    const rows = await this.#rows(sql`
      select ${columns} from ${this.#table}
      where account_id = ${accountId} and item_ids && string_to_array(${itemIds.join(' ')}, ' ')
        and expires_at > ${instant(now)}
      order by created_at`);
    return rows.map((row) => recordOf(row, accountId));
  }

  async delete(orm: Orm, accountId: string, id: string): Promise<void> {
    await orm.execute(sql`delete from ${this.#table} where account_id = ${accountId} and id = ${id}`);
  }

  async deleteExpired(now: number): Promise<void> {
    await this.#database.orm.execute(sql`delete from ${this.#table} where expires_at <= ${instant(now)}`);
  }

  #rows(statement: SQL): Promise<Row[]> {
    return rowsOf(this.#database.orm, statement);
  }
}

function valuesOf(record: ResponseRecord): SQL {
  const kept = record.kind === 'kept' ? record : undefined;
  const relayed = record.kind === 'relayed' ? record : undefined;
  return sql`(${record.accountId}, ${record.id}, ${record.kind}, string_to_array(${record.itemIds.join(' ')}, ' '),
    ${kept?.input ?? null}, ${kept?.response ?? null}, ${relayed?.provider ?? null}, ${relayed?.credential ?? null},
    ${relayed?.protocol ?? null}, ${relayed?.tokens ?? null}::bigint, ${instant(record.createdAt)},
    ${instant(record.expiresAt)})`;
}

function recordOf(row: Row, accountId: string): ResponseRecord {
  const common = {
    id: row.id,
    accountId,
    createdAt: Number(row.created),
    expiresAt: Number(row.expires),
    itemIds: row.item_ids === '' ? [] : row.item_ids.split(' '),
  };
  return row.kind === 'kept'
    ? { ...common, kind: 'kept', input: row.input!, response: row.response! }
    : {
        ...common,
        kind: 'relayed',
        provider: row.provider!,
        credential: row.credential!,
        protocol: row.protocol!,
        tokens: row.tokens === null ? undefined : Number(row.tokens),
      };
}
