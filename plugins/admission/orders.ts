/** The table of reservations that outlive their exchange, or its process, and their settlement by one process. */
import { type SQL, sql } from 'drizzle-orm';
import type { Database, Orm } from '../common/domain/database.ts';
import { money } from '../common/domain/money.ts';
import { inMs, rowsOf, tableOf } from '../common/kit/sql.ts';
import type { AdmittedCall, OrderEnd } from '../common/wire/admission-rules.ts';

/** Name of the rule, and what it has reserved. */
export type Reservation = readonly [rule: string, reservation: string];

export interface EndedOrder {
  readonly call: AdmittedCall;
  readonly reservations: readonly Reservation[];
  readonly end: OrderEnd;
}

/** A process that dies while it settles leaves the rest to another one after this long. */
const leaseMs = 60_000;
const mostAtOnce = 100;

export class OrderRows {
  readonly #database: Database;
  readonly #table: SQL;

  constructor(database: Database) {
    this.#database = database;
    this.#table = tableOf(database, 'admitted_orders');
  }

  /** `owner`: of the exchange; absent: they are an order's from now on. `orm`: of a transaction; absent: of none. */
  async add(
    orm: Pick<Orm, 'execute'> | undefined,
    call: AdmittedCall,
    reservations: readonly Reservation[],
    owner?: string,
  ): Promise<void> {
    await (orm ?? this.#database.orm).execute(sql`
      insert into ${this.#table} (request_id, account_id, call, reservations, owner)
      values (${call.id}::uuid, ${call.caller.accountId}, ${encode(call)}, ${encode(reservations)}, ${owner ?? null})
      on conflict (request_id, account_id) do update set reservations = excluded.reservations, owner = excluded.owner`);
  }

  /** Calls that this owner's process makes, or made when it was killed. */
  async running(owner: string): Promise<AdmittedCall[]> {
    const rows = await rowsOf<{ call: string }>(
      this.#database.orm,
      sql`select call from ${this.#table} where owner = ${owner} and ending is null order by request_id`,
    );
    return rows.map(({ call }) => decode(call));
  }

  async end(orm: Pick<Orm, 'execute'> | undefined, requestId: string, end: OrderEnd): Promise<void> {
    await (orm ?? this.#database.orm).execute(sql`
      update ${this.#table} set ending = ${encode(end)} where request_id = ${requestId}::uuid and ending is null`);
  }

  /** Leases the ended order to this process; undefined: it has not ended, or another process settles it. */
  async take(requestId: string): Promise<EndedOrder | undefined> {
    const [row] = await rowsOf<{ call: string; reservations: string; ending: string }>(
      this.#database.orm,
      sql`update ${this.#table} set leased_until = ${inMs(leaseMs)}
          where request_id = ${requestId}::uuid and ${due} returning call, reservations, ending`,
    );
    return row && { call: decode(row.call), reservations: decode(row.reservations), end: decode(row.ending) };
  }

  async delete(requestId: string): Promise<void> {
    await this.#database.orm.execute(sql`delete from ${this.#table} where request_id = ${requestId}::uuid`);
  }

  /** Ended orders that no process settles. */
  async due(): Promise<string[]> {
    const rows = await rowsOf<{ id: string }>(
      this.#database.orm,
      sql`select request_id::text as id from ${this.#table} where ${due} limit ${mostAtOnce}`,
    );
    return rows.map(({ id }) => id);
  }

  /**
   * Whether an order stands of which the commit was not answered. An insert of the same key, or the lock of a row that was there
   * before, waits for that transaction, and so finds an order, or none for good.
   */
  stands(call: AdmittedCall): Promise<boolean> {
    return this.#database.orm.transaction(async (orm) => {
      await orm.execute(sql`
        insert into ${this.#table} (request_id, account_id, call, reservations, owner)
        values (${call.id}::uuid, ${call.caller.accountId}, '', '', '') on conflict (request_id, account_id) do nothing`);
      const [row] = await rowsOf<{ stands: boolean }>(
        orm,
        sql`select owner is null as stands from ${this.#table} where request_id = ${call.id}::uuid for update`,
      );
      await orm.execute(sql`delete from ${this.#table} where request_id = ${call.id}::uuid and call = ''`);
      return row?.stands === true;
    });
  }
}

const due = sql`ending is not null and (leased_until is null or leased_until < now())`;

const encode = (value: unknown): string =>
  JSON.stringify(value, (_name, member) => (typeof member === 'bigint' ? { money: member.toString() } : member));

function decode<T>(text: string): T {
  return JSON.parse(text, (_name, member) =>
    typeof member?.money === 'string' ? money(BigInt(member.money)) : member,
  ) as T;
}
