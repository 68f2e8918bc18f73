/** SQL of the archive: how far it has come, the calls that come next, and the transaction in which a file takes their place. */
import { sql } from 'drizzle-orm';
import type { Database } from '../../common/domain/database.ts';
import { firstIdAt } from '../../common/kit/arrival.ts';
import { millisecondsOf, type Runner, rowsOf, tablesOf, time } from '../model/sql.ts';
import { type CallLine, endOf, type Link, lineOfCall, type SealedCalls, startOf } from './format.ts';

/** Where the work goes on: an account of a month, behind this call of it. */
export interface Place {
  /** Undefined: nothing has been archived. */
  readonly month: string | undefined;
  readonly accountId: string;
  readonly afterId: string;
}

export const noId = '00000000-0000-0000-0000-000000000000';

export interface ArchiveRows {
  /** Takes the work for so long; undefined: another process has it. */
  claim(owner: string, forMs: number): Promise<Place | undefined>;
  /** Goes on from here the next time. False: another process has the work by now. */
  move(owner: string, from: Place, to: Place): Promise<boolean>;
  /** The month of the first call that arrived at `from` (wall-clock milliseconds) or later. */
  monthFrom(from: number): Promise<string | undefined>;
  /** Before this (wall-clock milliseconds), calls have lost what the request log knows of them. */
  factsFreeUntil(): Promise<number>;
  /** The accounts behind this one, as far as they were looked through; `last`: undefined behind the last. */
  accountsAfter(
    accountId: string,
    month: string,
  ): Promise<{ readonly last: string | undefined; readonly withCalls: readonly string[] }>;
  /** Calls of the place that can be archived, in the order of their ids. */
  read(place: Place & { readonly month: string }, most: number): Promise<CallLine[]>;
  lastOf(accountId: string): Promise<Link | undefined>;
  /** In one transaction: the file's row is there, its calls are not, and the work goes on from `to`. False as for `move`. */
  seal(owner: string, sealed: SealedCalls, bytes: number, from: Place, to: Place): Promise<boolean>;
}

/** No gateway has calls from before; an id of another kind looks as if it came from there. */
const firstYear = Date.UTC(2020, 0, 1);
const accountsAtOnce = 50;

const mayGo = sql`settled and cost > 0 and status is null and timelines is null`;
const within = (month: string) =>
  sql`id >= ${firstIdAt(startOf(month))}::uuid and id < ${firstIdAt(endOf(month))}::uuid`;
const instantOf = (month: string | undefined) => (month === undefined ? '-infinity' : time(startOf(month)));

type Store = Pick<Database, 'orm' | 'schema'>;

export function sqlArchiveRows(store: Store): ArchiveRows {
  const { orm, schema } = store;
  const table = tablesOf(schema);
  return {
    claim: async (owner, forMs) => {
      const [row] = await rowsOf<{ month: string | null; account_id: string; after_id: string }>(
        orm,
        sql`update ${table('archive_state')} set owner = ${owner},
              owned_until = clock_timestamp() + ${forMs}::bigint * interval '1 millisecond'
            where owner = ${owner} or owner is null or owned_until < clock_timestamp()
            returning case when isfinite(month) then to_char(month at time zone 'UTC', 'YYYY-MM') end as month, account_id,
              after_id::text as after_id`,
      );
      return row && { month: row.month ?? undefined, accountId: row.account_id, afterId: row.after_id };
    },
    move: (owner, from, to) => move(orm, schema, owner, from, to),
    monthFrom: async (from) => {
      const [row] = await rowsOf<{ month: string }>(
        orm,
        sql`select to_char(${table('arrival_of')}(id) at time zone 'UTC', 'YYYY-MM') as month from ${table('calls')}
            where id >= ${firstIdAt(Math.max(from, firstYear))}::uuid order by id limit 1`,
      );
      return row?.month;
    },
    factsFreeUntil: async () => {
      const [row] = await rowsOf<{ until: string }>(
        orm,
        sql`select ${millisecondsOf(sql`before`)} as until from ${table('facts_forgotten')}`,
      );
      return row === undefined ? 0 : Number.parseInt(row.until, 10);
    },
    accountsAfter: (accountId, month) => accountsAfter(store, accountId, month),
    read: ({ month, accountId, afterId }, most) =>
      rowsOf<CallLine>(
        orm,
        sql`select id::text as id, cost::text as cost, to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at,
              ${lineOfCall} as line
            from ${table('calls')} as calls where account_id = ${accountId} and ${within(month)} and id > ${afterId}::uuid and ${mayGo}
            order by calls.id limit ${most}::int`,
      ),
    lastOf: async (accountId) => {
      const [row] = await rowsOf<Link>(
        orm,
        sql`select number, digest from ${table('archives')} where account_id = ${accountId} order by number desc limit 1`,
      );
      return row;
    },
    seal: (owner, sealed, bytes, from, to) =>
      orm.transaction(async (transaction) => {
        if (!(await move(transaction, schema, owner, from, to))) return false;
        await replaceCalls(transaction, schema, sealed, bytes);
        return true;
      }),
  };
}

async function move(runner: Runner, schema: string, owner: string, from: Place, to: Place): Promise<boolean> {
  const moved = await rowsOf(
    runner,
    sql`update ${tablesOf(schema)('archive_state')} set month = ${instantOf(to.month)}::timestamptz, account_id = ${to.accountId},
          after_id = ${to.afterId}::uuid
        where owner = ${owner} and month = ${instantOf(from.month)}::timestamptz and account_id = ${from.accountId}
          and after_id = ${from.afterId}::uuid returning 1 as moved`,
  );
  return moved.length === 1;
}

async function accountsAfter({ orm, schema }: Store, accountId: string, month: string) {
  const calls = tablesOf(schema)('calls');
  // From one account to the next within the index.
  const found = await rowsOf<{ account_id: string; has: boolean }>(
    orm,
    sql`with recursive walked as (
        (select account_id from ${calls} where account_id > ${accountId} order by account_id limit 1)
        union all
        select (select account_id from ${calls} as calls where calls.account_id > walked.account_id order by account_id limit 1)
        from walked where walked.account_id is not null
      ), looked as (select account_id from walked where account_id is not null limit ${accountsAtOnce}::int)
      select account_id, exists (select from ${calls} as calls where calls.account_id = looked.account_id and ${within(month)}
        and ${mayGo}) as has from looked order by account_id`,
  );
  return {
    last: found.length < accountsAtOnce ? undefined : found.at(-1)!.account_id,
    withCalls: found.filter(({ has }) => has).map((row) => row.account_id),
  };
}

async function replaceCalls(runner: Runner, schema: string, sealed: SealedCalls, bytes: number): Promise<void> {
  const table = tablesOf(schema);
  await runner.execute(
    sql`insert into ${table('archives')} (account_id, number, month, calls, cost, first_id, last_id, first_at, last_at, header,
          digest, previous, object, bytes)
        values (${sealed.accountId}, ${sealed.number}::int, ${sealed.month}, ${sealed.calls}::int, ${sealed.cost}::bigint,
          ${sealed.firstId}::uuid, ${sealed.lastId}::uuid, ${sealed.firstAt}::timestamptz, ${sealed.lastAt}::timestamptz,
          ${sealed.header}, ${sealed.digest}, ${sealed.previous ?? null}, ${sealed.object}, ${bytes}::int)`,
  );
  // The trigger refuses any other rows than those of the file.
  await runner.execute(
    sql`with gone as (
          delete from ${table('calls')} where account_id = ${sealed.accountId} and id >= ${sealed.firstId}::uuid
            and id <= ${sealed.lastId}::uuid and ${mayGo}
          returning account_id, seq, id, cost, balance_after, created_at, is_late
        )
        insert into ${table('archived_charges')} (account_id, seq, id, cost, balance_after, created_at, is_late) select * from gone`,
  );
}
