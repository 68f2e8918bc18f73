/** SQL statements on the table of issued ids. */

import { type SQL, sql } from 'drizzle-orm';
import type { Database } from '../../common/domain/database.ts';
import { instant, rowsOf, tableOf } from '../../common/kit/sql.ts';

interface Row {
  readonly id: string;
  readonly provider: string;
  readonly credential: string;
  readonly created: string;
  readonly expires: string;
}

export class IssuedRows {
  readonly #database: Database;
  readonly #table: SQL;

  constructor(database: Database) {
    this.#database = database;
    this.#table = tableOf(database, 'issued_ids');
  }

  /** An existing id gets the later expiry. */
  async insert(records: readonly IssuedId[]): Promise<void> {
    const rows = sql.join(records.map(valuesOf), sql`, `);
    await this.#database.orm.execute(sql`
      insert into ${this.#table} as old (account_id, id, provider, credential, created_at, expires_at)
      values ${rows} on conflict (account_id, id) do update set provider = excluded.provider,
        credential = excluded.credential, expires_at = greatest(old.expires_at, excluded.expires_at)`);
  }

  /** The account's ids among these that have not expired. */
  async find(accountId: string, ids: readonly string[], now: number): Promise<IssuedId[]> {
    const rows = await this.#rows(sql`
      select id, provider, credential, (extract(epoch from created_at) * 1000)::bigint::text as created,
        (extract(epoch from expires_at) * 1000)::bigint::text as expires
      from ${this.#table}
      where account_id = ${accountId} and id = any(string_to_array(${ids.join(' ')}, ' '))
        and expires_at > ${instant(now)}`);
    return rows.map(({ id, provider, credential, created, expires }) => ({
      accountId,
      id,
      provider,
      credential,
      createdAt: Number(created),
      expiresAt: Number(expires),
    }));
  }

  /** Also the oldest of accounts that have more than `most`. */
  async deleteExpired(now: number, most: number): Promise<void> {
    await this.#database.orm.execute(sql`delete from ${this.#table} where expires_at <= ${instant(now)}`);
    await this.#database.orm.execute(sql`
      delete from ${this.#table} as surplus using (
        select account_id, id, row_number() over (partition by account_id order by expires_at desc, id) as place
        from ${this.#table}
        where account_id in (select account_id from ${this.#table} group by account_id having count(*) > ${most}::int)
      ) as ranked
      where ranked.place > ${most}::int and surplus.account_id = ranked.account_id and surplus.id = ranked.id`);
  }

  #rows(statement: SQL): Promise<Row[]> {
    return rowsOf(this.#database.orm, statement);
  }
}

function valuesOf({ accountId, id, provider, credential, createdAt, expiresAt }: IssuedId): SQL {
  return sql`(${accountId}, ${id}, ${provider}, ${credential}, ${instant(createdAt)}, ${instant(expiresAt)})`;
}

export interface IssuedId {
  /** '' where the gateway does not authenticate clients. */
  readonly accountId: string;
  readonly id: string;
  /** The provider and key that can use it. */
  readonly provider: string;
  readonly credential: string;
  /** Milliseconds of the wall clock. */
  readonly createdAt: number;
  readonly expiresAt: number;
}
