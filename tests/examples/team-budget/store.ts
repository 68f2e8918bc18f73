/** What teams have spent and hold, in the gateway's database: right for any number of processes. */
import type { Database } from 'model-gateway/domain';
import { rowsOf, sql, tableOf } from 'model-gateway/kit';

export interface Team {
  readonly accountId: string;
  readonly team: string;
  /** `2027-01` */
  readonly month: string;
}

/** Amounts in nano-USD. */
export interface Spending extends Team {
  readonly spent: bigint;
  readonly held: bigint;
}

interface Row {
  readonly account_id: string;
  readonly team: string;
  readonly spent: string;
  readonly held: string;
}

export class Spendings {
  readonly #database: Database;
  readonly #months;
  readonly #holds;

  constructor(database: Database) {
    this.#database = database;
    this.#months = tableOf(database, 'team_months');
    this.#holds = tableOf(database, 'team_holds');
  }

  /** false: it does not fit into what the team may spend in the month. */
  hold(requestId: string, { accountId, team, month }: Team, amount: bigint, limit: bigint): Promise<boolean> {
    const mine = sql`account_id = ${accountId} and team = ${team} and month = ${month}`;
    return this.#database.orm.transaction(async (orm) => {
      // The row of the team is locked: one call after the other.
      await orm.execute(sql`
        insert into ${this.#months} (account_id, team, month) values (${accountId}, ${team}, ${month})
        on conflict (account_id, team, month) do update set spent = ${this.#months}.spent`);
      const held = await rowsOf(
        orm,
        sql`insert into ${this.#holds} (request_id, account_id, team, month, amount, ends_at)
            select ${requestId}, account_id, team, month, ${amount.toString()}::bigint, now() + interval '1 day'
            from ${this.#months} where ${mine} and spent + ${amount.toString()}::bigint + (
              select coalesce(sum(amount), 0) from ${this.#holds} where ${mine} and ends_at > now()
            ) <= ${limit.toString()}::bigint returning true as held`,
      );
      return held.length > 0;
    });
  }

  /** What the call has cost takes the place of what was held for it. A second time changes nothing. */
  async settle(requestId: string, cost: bigint): Promise<void> {
    await this.#database.orm.execute(sql`
      with ended as (delete from ${this.#holds} where request_id = ${requestId} returning account_id, team, month)
      update ${this.#months} as months set spent = spent + ${cost.toString()}::bigint from ended
      where months.account_id = ended.account_id and months.team = ended.team and months.month = ended.month`);
  }

  /** `accountId`: absent: of all accounts. */
  async list(month: string, accountId?: string): Promise<Spending[]> {
    const rows = await rowsOf<Row>(
      this.#database.orm,
      sql`select account_id, team, spent::text as spent, coalesce((
            select sum(amount) from ${this.#holds} as holds where holds.account_id = months.account_id
            and holds.team = months.team and holds.month = months.month and ends_at > now()
          ), 0)::text as held from ${this.#months} as months
          where month = ${month} ${accountId === undefined ? sql`` : sql`and account_id = ${accountId}`}
          order by account_id, team`,
    );
    return rows.map(({ account_id: id, team, spent, held }) => {
      return { accountId: id, team, month, spent: BigInt(spent), held: BigInt(held) };
    });
  }
}
