/** One account's authorizations, and the rows that their ends make, inside one transaction. */
import { sql } from 'drizzle-orm';
import { type Money, money } from '../../common/domain/money.ts';
import type { EndRecord } from '../model/records.ts';
import { type Runner, rowsOf, tablesOf, time } from '../model/sql.ts';
import { postRecords } from './batch.ts';

export interface StoredAuthorization {
  readonly held: Money;
  /** The encoded terms of the charge. */
  readonly terms: string;
}

export interface AuthorizationRows {
  /** Posts the rows of an end that is in no journal, and updates the balance. */
  post(record: EndRecord): Promise<void>;
  /** Sets the money aside. `at`: wall-clock milliseconds. */
  add(requestId: string, authorization: StoredAuthorization, at: number): Promise<void>;
  find(requestId: string): Promise<StoredAuthorization | undefined>;
  /** Gives back the money that was set aside. */
  remove(requestId: string, held: Money): Promise<void>;
}

/** Authorization rows in SQL. */
export function sqlAuthorizationRows(runner: Runner, schema: string, accountId: string): AuthorizationRows {
  const authorizations = tablesOf(schema)('deposits');
  const setAside = (amount: bigint) =>
    runner.execute(sql`
      update ${tablesOf(schema)('balances')} set balance = balance - ${amount.toString()}::bigint, held = held + ${amount.toString()}::bigint
      where account_id = ${accountId}`);
  return {
    post: (record) => postRecords(runner, schema, accountId, [record]),
    async add(requestId, { held, terms }, at) {
      await runner.execute(sql`
        insert into ${authorizations} (request_id, account_id, held, terms, created_at)
        values (${requestId}::uuid, ${accountId}, ${held.toString()}::bigint, ${terms}::text::json, ${time(at)})`);
      await setAside(held);
    },
    async find(requestId) {
      const [kept] = await rowsOf<{ held: string; terms: string }>(
        runner,
        sql`select held::text as held, terms::text as terms from ${authorizations}
            where request_id = ${requestId}::uuid and account_id = ${accountId}`,
      );
      return kept && { held: money(BigInt(kept.held)), terms: kept.terms };
    },
    async remove(requestId, held) {
      await runner.execute(
        sql`delete from ${authorizations} where account_id = ${accountId} and request_id = ${requestId}::uuid`,
      );
      await setAside(-held);
    },
  };
}
