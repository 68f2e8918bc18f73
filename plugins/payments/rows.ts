/** SQL statements on orders. */
import { type SQL, sql } from 'drizzle-orm';
import type { Database } from '../common/domain/database.ts';
import type { Money } from '../common/domain/money.ts';
import { column, columnsOf, optional, rowsOf, tableOf, timeColumn, usdColumn } from '../common/kit/sql.ts';

export interface Order {
  readonly id: string;
  readonly accountId: string;
  readonly amount: Money;
  readonly state: 'creating' | 'open' | 'paid' | 'expired' | 'mismatch';
  readonly session: string | undefined;
  readonly payment: string | undefined;
  readonly url: string | undefined;
  readonly createdAt: number;
  readonly paidAt: number | undefined;
  /** The amount paid back, whether or not it could be taken from the balance. */
  readonly refunded: Money;
}
export interface NewOrder {
  readonly id: string;
  readonly accountId: string;
  readonly reference: string;
  readonly amount: Money;
  readonly at: number;
}
/** The keys of an order. */
export type Named = { readonly [Name in 'id' | 'session' | 'payment' | 'reference']?: string };

/** The table's alias is `orders`. */
const orderColumns = (withdrawals: SQL) =>
  columnsOf({
    id: column<string>(sql`orders.id::text`),
    accountId: column<string>('account_id'),
    amount: usdColumn('orders.amount'),
    state: column<Order['state']>('orders.state'),
    session: optional(column<string>('session')),
    payment: optional(column<string>('payment')),
    url: optional(column<string>('url')),
    createdAt: timeColumn('orders.created_at'),
    paidAt: optional(timeColumn('orders.paid_at')),
    refunded: usdColumn(sql`(select coalesce(sum(amount), 0) from ${withdrawals} as withdrawals
      where withdrawals.order_id = orders.id and withdrawals.state <> 'back')`),
  });

export class OrderRows {
  readonly #orm: Database['orm'];
  readonly #orders: SQL;
  readonly #columns: ReturnType<typeof orderColumns>;

  constructor(database: Database) {
    this.#orm = database.orm;
    this.#orders = tableOf(database, 'payment_orders');
    this.#columns = orderColumns(tableOf(database, 'payment_withdrawals'));
  }

  /** false: the reference is known. */
  async insert({ id, accountId, reference, amount, at }: NewOrder): Promise<boolean> {
    const rows = await this.#rows(
      sql`insert into ${this.#orders} (id, account_id, reference, amount, state, created_at, looked_at)
          values (${id}::uuid, ${accountId}, ${reference}, ${digits(amount)}::bigint, 'creating', ${time(at)}, ${time(at)})
          on conflict (reference) do nothing returning 1`,
    );
    return rows.length === 1;
  }

  async find(named: Named): Promise<Order | undefined> {
    const [[name, value]] = Object.entries(named) as [[string, string]];
    const wanted = name === 'id' ? sql`orders.id = ${value}::uuid` : sql`${sql.identifier(name)} = ${value}`;
    return (await this.#orderRows(sql`from ${this.#orders} as orders where ${wanted}`))[0];
  }

  /** Newest first. */
  page(accountId: string | undefined, limit: number, after: string | undefined): Promise<Order[]> {
    const owned = accountId === undefined ? sql`true` : sql`account_id = ${accountId}`;
    const behind =
      after === undefined
        ? sql`true`
        : sql`(created_at, id) < (select created_at, id from ${this.#orders} as last where last.id = ${after}::uuid and ${owned})`;
    return this.#orderRows(sql`from (
      select * from ${this.#orders} as each where ${owned} and ${behind}
      order by each.created_at desc, each.id desc limit ${limit}::int
    ) as orders order by orders.created_at desc, orders.id desc`);
  }

  /** Unpaid orders of the account since then. */
  async countOpen(accountId: string, since: number): Promise<number> {
    const [row] = await this.#rows<{ count: number }>(
      sql`select count(*)::int as count from ${this.#orders}
          where account_id = ${accountId} and created_at > ${time(since)}::timestamptz and state in ('creating', 'open')`,
    );
    return row!.count;
  }

  /** The payment service has a session for the order. */
  async open(id: string, session: string, url: string | undefined): Promise<void> {
    await this.#orm.execute(
      sql`update ${this.#orders} set session = ${session}, url = ${url ?? null}::text,
            state = case when state in ('creating', 'expired') then 'open' else state end
          where id = ${id}::uuid and (session is null or session = ${session})`,
    );
  }

  async pay(id: string, payment: string | undefined, at: number): Promise<void> {
    await this.#orm.execute(
      sql`update ${this.#orders} set state = 'paid', payment = ${payment ?? null}::text, paid_at = ${time(at)}::timestamptz, url = null
          where id = ${id}::uuid and state <> 'paid'`,
    );
  }

  async end(id: string, state: 'expired' | 'mismatch'): Promise<void> {
    await this.#orm.execute(
      sql`update ${this.#orders} set state = ${state}, url = null where id = ${id}::uuid and state in ('creating', 'open')`,
    );
  }

  /** Claims orders to poll, least recently polled first; each is claimed by one process. */
  claim(kind: 'open' | 'paid', lookedBefore: number, begunAfter: number, limit: number, at: number): Promise<Order[]> {
    const states = kind === 'open' ? sql`state in ('creating', 'open')` : sql`state = 'paid'`;
    const due = sql`
      with due as (update ${this.#orders} as due set looked_at = ${time(at)}::timestamptz where due.id in (
        select id from ${this.#orders} where ${states} and looked_at < ${time(lookedBefore)}::timestamptz
          and created_at > ${time(begunAfter)}::timestamptz
        order by looked_at limit ${limit}::int for update skip locked) returning due.*)`;
    return this.#orderRows(sql`from due as orders`, due);
  }

  /** Expires orders that are unpaid by then, and those without a payment page. */
  async endOld(begunBefore: number, pagelessBefore: number): Promise<void> {
    await this.#orm.execute(
      sql`update ${this.#orders} set state = 'expired', url = null
          where (state in ('creating', 'open') and created_at < ${time(begunBefore)}::timestamptz)
            or (state = 'creating' and created_at < ${time(pagelessBefore)}::timestamptz)`,
    );
  }

  async #orderRows(from: SQL, before: SQL = sql``): Promise<Order[]> {
    const rows = await this.#rows<never>(sql`${before} select ${this.#columns.select} ${from}`);
    return rows.map(this.#columns.read);
  }

  #rows<Row>(statement: SQL): Promise<Row[]> {
    return rowsOf(this.#orm, statement);
  }
}

function time(at: number): string {
  return new Date(at).toISOString();
}

function digits(amount: bigint): string {
  return amount.toString();
}
