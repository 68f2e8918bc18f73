/** SQL statements on refunds and disputes of orders, and on the amounts taken from credits for them. */
import { type SQL, sql } from 'drizzle-orm';
import type { Database } from '../common/domain/database.ts';
import { type Money, money } from '../common/domain/money.ts';
import { rowsOf, tableOf } from '../common/kit/sql.ts';

export interface StoredWithdrawal {
  readonly amount: Money;
  readonly state: 'taking' | 'taken' | 'back';
}
/** The amount of a withdrawal that is taken from one credit. */
export interface Taking {
  readonly amount: Money;
  readonly done: boolean;
}

export class WithdrawalRows {
  readonly #orm: Database['orm'];
  readonly #withdrawals: SQL;
  readonly #takings: SQL;

  constructor(database: Database) {
    this.#orm = database.orm;
    this.#withdrawals = tableOf(database, 'payment_withdrawals');
    this.#takings = tableOf(database, 'payment_takings');
  }

  async insert(orderId: string, id: string, amount: Money): Promise<void> {
    await this.#orm.execute(
      sql`insert into ${this.#withdrawals} (id, order_id, amount)
          values (${id}, ${orderId}::uuid, ${amount.toString()}::bigint) on conflict do nothing`,
    );
  }

  async find(id: string): Promise<StoredWithdrawal | undefined> {
    const [row] = await this.#rows<{ amount: string; state: StoredWithdrawal['state'] }>(
      sql`select amount::text as amount, state from ${this.#withdrawals} where id = ${id}`,
    );
    return row && { ...row, amount: money(BigInt(row.amount)) };
  }

  /** Withdrawals of an order that came to nothing. */
  async returned(orderId: string): Promise<string[]> {
    const rows = await this.#rows<{ id: string }>(
      sql`select id from ${this.#withdrawals} where order_id = ${orderId}::uuid and state = 'back' order by id`,
    );
    return rows.map(({ id }) => id);
  }

  async move(id: string, from: 'taking' | 'taken', to: 'taken' | 'back'): Promise<void> {
    await this.#orm.execute(sql`update ${this.#withdrawals} set state = ${to} where id = ${id} and state = ${from}`);
  }

  /** Plans to take so much from a credit, unless a plan is there. Resolves with the plan. */
  async plan(id: string, credit: string, amount: Money): Promise<Taking> {
    await this.#orm.execute(
      sql`insert into ${this.#takings} (withdrawal, credit, amount)
          values (${id}, ${credit}, ${amount.toString()}::bigint) on conflict do nothing`,
    );
    const [row] = await this.#rows<{ amount: string; done: boolean }>(
      sql`select amount::text as amount, done from ${this.#takings} where withdrawal = ${id} and credit = ${credit}`,
    );
    return { amount: money(BigInt(row!.amount)), done: row!.done };
  }

  /** Plans a smaller amount, unless the plan has changed or was carried out. */
  async planLess(id: string, credit: string, planned: Money, amount: Money): Promise<void> {
    await this.#orm.execute(
      sql`update ${this.#takings} set amount = ${amount.toString()}::bigint
          where withdrawal = ${id} and credit = ${credit} and not done and amount = ${planned.toString()}::bigint`,
    );
  }

  /** Records the taken amount, whatever another process has planned meanwhile. */
  async take(id: string, credit: string, amount: Money): Promise<void> {
    await this.#orm.execute(
      sql`update ${this.#takings} set done = true, amount = ${amount.toString()}::bigint
          where withdrawal = ${id} and credit = ${credit} and not done`,
    );
  }

  /** The sum of the taken amounts. */
  async taken(id: string): Promise<Money> {
    const [row] = await this.#rows<{ amount: string }>(
      sql`select coalesce(sum(amount), 0)::text as amount from ${this.#takings} where withdrawal = ${id} and done`,
    );
    return money(BigInt(row!.amount));
  }

  #rows<Row>(statement: SQL): Promise<Row[]> {
    return rowsOf(this.#orm, statement);
  }
}
