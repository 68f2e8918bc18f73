/** SQL statements on the tables of kept conversations. Each change of one locks its row, so changes follow one another. */
import { type SQL, sql } from 'drizzle-orm';
import type { Database, Orm } from '../../../common/domain/database.ts';
import { instant, rowsOf, tableOf } from '../../../common/kit/sql.ts';
import {
  type AppendBounds,
  type Appended,
  type Block,
  type Bounds,
  bytesOf,
  type Conversation,
  type ConversationBackend,
  type KeptItem,
  withNewIds,
} from './record.ts';

interface Row {
  readonly id: string;
  readonly metadata: string;
  readonly items: string;
  readonly bytes: string;
  readonly last: string;
  readonly created: string;
  readonly expires: string;
}

const columns = sql.raw(`id, metadata, item_count::text as items, bytes::text as bytes, last_position::text as last,
  (extract(epoch from created_at) * 1000)::bigint::text as created,
  (extract(epoch from expires_at) * 1000)::bigint::text as expires`);
/** A statement has at most 65,535 parameters. */
const insertedAtOnce = 1_000;

export class ConversationRows implements ConversationBackend {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** The count and the insertion are one statement: concurrent ones may pass the share by their number. */
  async create(made: Conversation, { accountBytes, accountConversations }: Bounds): Promise<boolean> {
    const rows = await this.#rows(
      this.#database.orm,
      sql`insert into ${this.#conversations} (account_id, id, metadata, created_at, expires_at)
        select ${made.accountId}, ${made.id}, ${made.metadata}, ${instant(made.createdAt)}, ${instant(made.expiresAt)}
        from (select count(*) as conversations, coalesce(sum(bytes), 0) as bytes from ${this.#conversations}
          where account_id = ${made.accountId} and expires_at > ${instant(made.createdAt)}) as used
        where used.conversations < ${accountConversations}::int and used.bytes <= ${accountBytes}::bigint
        returning id`,
    );
    return rows.length > 0;
  }

  async find(accountId: string, id: string, now: number): Promise<Conversation | undefined> {
    const [row] = await this.#select(this.#database.orm, accountId, id, now);
    return row && conversationOf(row, accountId);
  }

  usedBytes(accountId: string, now: number): Promise<number> {
    return this.#used(this.#database.orm, accountId, now);
  }

  async #used(orm: Orm, accountId: string, now: number): Promise<number> {
    const [row] = await this.#rows<{ bytes: string }>(
      orm,
      sql`select coalesce(sum(bytes), 0)::text as bytes from ${this.#conversations}
        where account_id = ${accountId} and expires_at > ${instant(now)}`,
    );
    return Number(row!.bytes);
  }

  async items(accountId: string, id: string): Promise<string[]> {
    const rows = await this.#rows<{ item: string }>(
      this.#database.orm,
      sql`select item from ${this.#items} where account_id = ${accountId} and conversation_id = ${id} order by position`,
    );
    return rows.map(({ item }) => item);
  }

  async setMetadata(accountId: string, id: string, metadata: string, expiresAt: number): Promise<void> {
    await this.#database.orm.execute(sql`
      update ${this.#conversations} set metadata = ${metadata}, expires_at = ${instant(expiresAt)}
      where account_id = ${accountId} and id = ${id}`);
  }

  async delete(accountId: string, id: string): Promise<void> {
    await this.#database.orm.execute(
      sql`delete from ${this.#conversations} where account_id = ${accountId} and id = ${id}`,
    );
  }

  append(block: Block, now: number, most: AppendBounds): Promise<Appended> {
    const { accountId, conversationId, name } = block;
    return this.#database.orm.transaction(async (orm) => {
      const [row] = await this.#select(orm, accountId, conversationId, now, sql`for update`);
      if (row === undefined) return 'gone';
      const there = await this.#rows<{ id: string; block: string }>(
        orm,
        sql`select id, block from ${this.#items} where account_id = ${accountId} and conversation_id = ${conversationId}`,
      );
      // An earlier try was committed, although its answer was lost.
      if (there.some((item) => item.block === name)) return 'appended';
      const items = withNewIds(block, new Set(there.map(({ id }) => id)));
      const bytes = bytesOf(items);
      if (Number(row.bytes) + bytes > most.conversationBytes || there.length + items.length > most.conversationItems)
        return 'full';
      if ((await this.#used(orm, accountId, now)) + bytes > most.accountBytes) return 'share';
      await this.#insert(orm, block, items, Number(row.last));
      await orm.execute(sql`
        update ${this.#conversations} set item_count = item_count + ${items.length}::int, bytes = bytes + ${bytes}::bigint,
          last_position = last_position + ${items.length}::bigint, expires_at = ${instant(block.expiresAt)}
        where account_id = ${accountId} and id = ${conversationId}`);
      return 'appended';
    });
  }

  deleteItem(accountId: string, id: string, itemId: string): Promise<boolean> {
    return this.#database.orm.transaction(async (orm) => {
      await orm.execute(
        sql`select id from ${this.#conversations} where account_id = ${accountId} and id = ${id} for update`,
      );
      const [row] = await this.#rows<{ bytes: string }>(
        orm,
        sql`delete from ${this.#items} where account_id = ${accountId} and conversation_id = ${id} and id = ${itemId}
          returning bytes::text as bytes`,
      );
      if (row === undefined) return false;
      await orm.execute(sql`
        update ${this.#conversations} set item_count = item_count - 1, bytes = bytes - ${row.bytes}::bigint
        where account_id = ${accountId} and id = ${id}`);
      return true;
    });
  }

  async deleteExpired(now: number): Promise<void> {
    await this.#database.orm.execute(sql`delete from ${this.#conversations} where expires_at <= ${instant(now)}`);
  }

  async #insert(orm: Orm, block: Block, items: readonly KeptItem[], last: number): Promise<void> {
    for (let start = 0; start < items.length; start += insertedAtOnce) {
      const rows = items.slice(start, start + insertedAtOnce).map(
        ({ id, text, bytes }, index) =>
          sql`(${block.accountId}, ${block.conversationId}, ${id}, ${last + 1 + start + index}::bigint, ${block.name},
            ${bytes}::int, ${text})`,
      );
      await orm.execute(sql`
        insert into ${this.#items} (account_id, conversation_id, id, position, block, bytes, item)
        values ${sql.join(rows, sql`, `)}`);
    }
  }

  #select(orm: Orm, accountId: string, id: string, now: number, lock = sql``): Promise<Row[]> {
    return this.#rows<Row>(
      orm,
      sql`select ${columns} from ${this.#conversations}
        where account_id = ${accountId} and id = ${id} and expires_at > ${instant(now)} ${lock}`,
    );
  }

  #rows<T>(orm: Orm, statement: SQL): Promise<T[]> {
    return rowsOf(orm, statement);
  }

  get #conversations(): SQL {
    return tableOf(this.#database, 'kept_conversations');
  }

  get #items(): SQL {
    return tableOf(this.#database, 'kept_conversation_items');
  }
}

function conversationOf(row: Row, accountId: string): Conversation {
  return {
    id: row.id,
    accountId,
    metadata: row.metadata,
    itemCount: Number(row.items),
    bytes: Number(row.bytes),
    createdAt: Number(row.created),
    expiresAt: Number(row.expires),
  };
}
