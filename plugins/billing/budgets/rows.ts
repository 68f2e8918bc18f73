/** SQL of what single accounts have of their own: budgets, and what was added to any for one period. */
import { createHash } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import type { Database, Orm } from '../../common/domain/database.ts';
import { money } from '../../common/domain/money.ts';
import type {
  BudgetAddition,
  BudgetAuthority,
  BudgetCounted,
  BudgetRule,
  BudgetTerms,
} from '../../common/domain/organizations/budgets.ts';
import { millisecondsOf } from '../../common/kit/sql.ts';
import { lockBalances } from '../ledger/batch.ts';
import { jsonOf, type Runner, rowsOf, tablesOf, time } from '../model/sql.ts';
import type { OwnRules } from './book.ts';
import type { Addition } from './scope.ts';
import { writeZone, zoneOfAccount } from './zones.ts';

/** Budgets of an account that one authority may set. */
export const mostBudgets = 100;
/** Additions of an account in periods that have not ended. */
const mostAdditions = 1_000;

export interface StoredBudget extends BudgetRule {
  readonly id: string;
  readonly authority: BudgetAuthority;
  readonly changedAt: number;
}

export interface BudgetRows {
  /** Those that have not ended. */
  list(accountId: string): Promise<StoredBudget[]>;
  read(accountId: string): Promise<OwnRules>;
  /** Whether any account has anything of its own. */
  some(): Promise<boolean>;
  /** Accounts that have changed something within this time. */
  changedWithin(ms: number): Promise<string[]>;
  /** Those of these accounts with budgets at which notices are sent. */
  warned(accountIds: readonly string[]): Promise<string[]>;
  /** undefined: there are too many. */
  set(accountId: string, authority: BudgetAuthority, terms: BudgetTerms): Promise<StoredBudget | undefined>;
  end(accountId: string, authority: BudgetAuthority, id: string): Promise<StoredBudget | undefined>;
  setZone(accountId: string, zone: string | undefined): Promise<void>;
  /** false: there are too many. */
  add(accountId: string, addition: AddedRow): Promise<boolean>;
}

interface Row {
  readonly id: string;
  readonly authority: BudgetAuthority;
  readonly counts: BudgetCounted;
  readonly amount: string;
  readonly terms: Pick<BudgetTerms, 'hard' | 'warn' | 'instead'>;
  readonly changed: number;
}

/** An addition to the period from one instant to another; without an end: it has none. */
interface AddedRow extends BudgetAddition {
  readonly from: number;
  readonly until: number | undefined;
}

export const budgetsTopic = 'budgets';

export function openBudgetRows(database: Database): BudgetRows {
  const { orm, schema } = database;
  const [budgets, additions] = [tablesOf(schema)('budgets'), tablesOf(schema)('budget_additions')];
  const zones = tablesOf(schema)('account_zones');
  const columns = sql`id, authority, counts, amount::text as amount, terms, ${millisecondsOf(sql`changed_at`)} as changed`;
  const find = async (runner: Runner, condition: SQL) =>
    (await rowsOf<Row>(runner, sql`select ${columns} from ${budgets} where ${condition} order by created_at, id`)).map(
      storedOf,
    );
  const list = (accountId: string) => find(orm, sql`account_id = ${accountId} and ended_at is null`);
  const change = <T>(accountId: string, work: (orm: Orm) => Promise<T>) =>
    database.change(budgetsTopic, accountId, async (transaction) => {
      // In order with the shares that are cut, and with other changes.
      await lockBalances(transaction, schema, [accountId]);
      return work(transaction);
    });
  return {
    list,
    read: async (accountId) => {
      const reading = [list(accountId), readAdditions(orm, additions, accountId)] as const;
      const [rules, added, zone] = await Promise.all([...reading, zoneOfAccount(orm, schema, accountId)]);
      return { rules, additions: Map.groupBy(added, ({ scope }) => scope), zone };
    },
    setZone: (accountId, zone) => change(accountId, (transaction) => writeZone(transaction, schema, accountId, zone)),
    some: async () => {
      const [found] = await rowsOf<{ some: boolean }>(
        orm,
        sql`select exists (select from ${budgets}) or exists (select from ${additions}) or exists (select from ${zones}) as some`,
      );
      return found!.some;
    },
    changedWithin: async (ms) => {
      const since = sql`clock_timestamp() - ${ms}::bigint * interval '1 millisecond'`;
      const found = await rowsOf<{ account_id: string }>(
        orm,
        sql`select account_id from ${budgets} where changed_at > ${since}
            union select account_id from ${additions} where created_at > ${since}
            union select account_id from ${zones} where changed_at > ${since}`,
      );
      return found.map(({ account_id }) => account_id);
    },
    warned: (accountIds) => warnedOf(orm, budgets, accountIds),
    set: (accountId, authority, terms) =>
      change(accountId, async (transaction) => {
        const digest = await write(transaction, { budgets, accountId, authority }, terms);
        const isIt = sql`account_id = ${accountId} and authority = ${authority} and digest = ${digest}`;
        return (await find(transaction, sql`${isIt} and ended_at is null`))[0];
      }),
    add: (accountId, addition) =>
      change(accountId, (transaction) => insertAddition(transaction, additions, accountId, addition)),
    end: (accountId, authority, id) =>
      change(accountId, async (transaction) => {
        const one = sql`account_id = ${accountId} and authority = ${authority} and id = ${id}::uuid and ended_at is null`;
        const [stored] = await find(transaction, one);
        const now = sql`clock_timestamp()`;
        await transaction.execute(sql`update ${budgets} set ended_at = ${now}, changed_at = ${now} where ${one}`);
        return stored;
      }),
  };
}

async function warnedOf(orm: Orm, budgets: SQL, accountIds: readonly string[]): Promise<string[]> {
  const found = await rowsOf<{ account_id: string }>(
    orm,
    sql`select distinct account_id from ${budgets} where ended_at is null
        and account_id in (select value from json_array_elements_text(${jsonOf(accountIds)}))
        and (terms->'warn' is not null or terms->>'hard' = 'false')`,
  );
  return found.map(({ account_id }) => account_id);
}

/** Returns what names it among those of the authority, whether there was room for it or not. */
async function write(
  transaction: Orm,
  { budgets, accountId, authority }: { readonly budgets: SQL; readonly accountId: string; readonly authority: string },
  terms: BudgetTerms,
): Promise<string> {
  const own = sql`account_id = ${accountId} and authority = ${authority}`;
  const counts = countedOf(terms);
  const digest = createHash('sha256').update(JSON.stringify(counts)).digest('hex');
  await transaction.execute(
    sql`delete from ${budgets} where ${own} and digest <> ${digest} and ended_at < clock_timestamp() - interval '1 day'`,
  );
  await transaction.execute(
    sql`insert into ${budgets} as budgets (account_id, id, authority, counts, digest, amount, terms)
        select ${accountId}, gen_random_uuid(), ${authority}, ${jsonOf(counts)}, ${digest}, ${terms.amount.toString()}::bigint,
          ${jsonOf({ hard: terms.hard, warn: terms.warn, instead: terms.instead })}
        where exists (select from ${budgets} where ${own} and digest = ${digest} and ended_at is null)
          or (select count(*) from ${budgets} where ${own} and ended_at is null) < ${mostBudgets}
        on conflict (account_id, authority, digest) do update
        set amount = excluded.amount, terms = excluded.terms, changed_at = clock_timestamp(), ended_at = null`,
  );
  return digest;
}

async function insertAddition(
  transaction: Orm,
  additions: SQL,
  accountId: string,
  { scope, amount, reason, from, until }: AddedRow,
): Promise<boolean> {
  const own = sql`account_id = ${accountId}`;
  await transaction.execute(sql`delete from ${additions} where ${own} and until_at < now() - interval '2 days'`);
  const end = until === undefined ? sql`null::timestamptz` : sql`${time(until)}::timestamptz`;
  const made = await rowsOf(
    transaction,
    sql`insert into ${additions} (account_id, id, scope, from_at, until_at, amount, reason)
        select ${accountId}, gen_random_uuid(), ${scope}, ${time(from)}::timestamptz, ${end}, ${amount.toString()}::bigint, ${reason}
        where (select count(*) from ${additions} where ${own}) < ${mostAdditions} returning id`,
  );
  return made.length > 0;
}

/** In one order of names, without what says nothing. */
function countedOf({ of, subject, models, tag, by, every, zone, first }: BudgetCounted): BudgetCounted {
  const isByPerson = of === 'models' && by === 'person';
  return {
    of,
    ...(subject === undefined ? {} : { subject }),
    ...(models === undefined ? {} : { models: models.toSorted() }),
    ...(tag === undefined ? {} : { tag }),
    ...(isByPerson ? { by } : {}),
    every,
    ...(zone === undefined ? {} : { zone }),
    ...(first === undefined ? {} : { first }),
  };
}

function storedOf({ id, authority, counts, amount, terms, changed }: Row): StoredBudget {
  return { ...counts, ...terms, id, authority, amount: money(BigInt(amount)), changedAt: changed };
}

/** Each has a time within its period, whatever the clocks of database and processes say. */
async function readAdditions(orm: Orm, additions: SQL, accountId: string) {
  const at = sql`greatest(least(created_at, until_at - interval '1 millisecond'), from_at)`;
  const found = await rowsOf<{ readonly scope: string; readonly at: number; readonly amount: string }>(
    orm,
    sql`select scope, ${millisecondsOf(at)}::float8 as at, sum(amount)::text as amount from ${additions}
        where account_id = ${accountId} and (until_at is null or until_at > now() - interval '1 day') group by 1, 2`,
  );
  return found.map((row) => {
    const addition: Addition = { at: row.at, amount: money(BigInt(row.amount)) };
    return { scope: row.scope, ...addition };
  });
}
