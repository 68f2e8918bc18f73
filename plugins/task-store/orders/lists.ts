/** SQL for lists of an account's tasks: filters, pages by cursor or offset, and the total count. */
import { type SQL, sql } from 'drizzle-orm';
import type { Database } from '../../common/domain/database.ts';
import { jsonOf, rowsOf } from '../../common/kit/sql.ts';
import type { MediaKind } from '../../common/media/adapters.ts';
import type { StoredState, StoredTask } from '../engine/rows.ts';
import { viewColumns } from '../engine/sql-rows.ts';

/** Absent members do not filter. */
export interface Filter {
  readonly kind?: MediaKind | undefined;
  readonly states?: readonly StoredState[] | undefined;
  /** The error code of failed tasks. */
  readonly errorCode?: string | undefined;
  readonly model?: string | undefined;
  readonly ids?: readonly string[] | undefined;
  /** `default` for orders that name none. */
  readonly serviceTier?: string | undefined;
}

/** Newest first by default. */
export interface Page {
  readonly limit: number;
  readonly oldestFirst?: boolean;
  /** The id of the task behind which the page begins, or the number of tasks to skip. */
  readonly from?: { readonly after: string } | { readonly offset: number };
}

export class TaskLists {
  readonly #store: Database;
  readonly #table: SQL;

  constructor(store: Database) {
    this.#store = store;
    this.#table = sql`${sql.identifier(store.schema)}.${sql.identifier('tasks')}`;
  }

  async page(accountId: string, filter: Filter, { limit, oldestFirst, from }: Page): Promise<StoredTask[]> {
    const conditions = conditionsOf(accountId, filter);
    const [behind, direction] = oldestFirst === true ? [sql`>`, sql`asc`] : [sql`<`, sql`desc`];
    if (from !== undefined && 'after' in from)
      conditions.push(sql`(created_at, id) ${behind} (select created_at, id from ${this.#table} as last
        where last.id = ${from.after} and last.account_id = ${accountId})`);
    const offset = from !== undefined && 'offset' in from ? from.offset : 0;
    const found = await rowsOf<never>(
      this.#store.orm,
      sql`select ${viewColumns.select} from ${this.#table} as taken where ${sql.join(conditions, sql` and `)}
          order by created_at ${direction}, id ${direction} limit ${limit}::int offset ${offset}::int`,
    );
    return found.map(viewColumns.read);
  }

  async count(accountId: string, filter: Filter): Promise<number> {
    const [row] = await rowsOf<{ total: number }>(
      this.#store.orm,
      sql`select count(*)::int as total from ${this.#table}
          where ${sql.join(conditionsOf(accountId, filter), sql` and `)}`,
    );
    return row!.total;
  }
}

function conditionsOf(accountId: string, filter: Filter): SQL[] {
  const { kind, states, errorCode, model, ids, serviceTier } = filter;
  const conditions = [sql`account_id = ${accountId}`];
  if (kind !== undefined) conditions.push(sql`kind = ${kind}`);
  if (states !== undefined) conditions.push(sql`state in ${elementsOf(states)}`);
  if (errorCode !== undefined) conditions.push(sql`error->>'code' = ${errorCode}`);
  if (model !== undefined) conditions.push(sql`model = ${model}`);
  if (ids !== undefined) conditions.push(sql`id in ${elementsOf(ids)}`);
  if (serviceTier !== undefined)
    conditions.push(sql`coalesce(order_head->'extra'->>'service_tier', 'default') = ${serviceTier}`);
  return conditions;
}

function elementsOf(words: readonly string[]): SQL {
  return sql`(select value from json_array_elements_text(${jsonOf(words)}))`;
}
