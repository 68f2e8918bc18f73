/** One batch of entries into the database, in one transaction and any number of times: only rows that are new move a balance. */
import { type SQL, sql } from 'drizzle-orm';
import { type Money, money } from '../../core/money.ts';
import type { Orm } from '../../core/vocabulary.ts';
import type { Entry } from './hold.ts';
import { rowsOfEntries } from './rows.ts';
import { jsonOf, type Runner, rowsOf, tablesOf } from './sql.ts';

/** Which journal the entries come from, who writes it, and how far it is applied with them. */
export interface Cursor {
  readonly journal: string;
  readonly owner: string;
  readonly applied: number;
}

/** Another process has taken this journal over: nothing that this one still applies would be true. */
export class ShutOutError extends Error {
  override readonly name = 'ShutOutError';
}

/** Where a journal was left, for `owner` who goes on with it; whoever had it before can no longer apply anything. */
export async function claimCursor(orm: Orm, schema: string, journal: string, owner: string): Promise<number> {
  const table = tablesOf(schema);
  const [row] = await rowsOf<{ applied: string }>(
    orm,
    sql`insert into ${table('journal_cursor')} (journal, owner, updated_at) values (${journal}, ${owner}, now())
        on conflict (journal) do update set owner = excluded.owner, updated_at = now() returning applied::text`,
  );
  return Number.parseInt(row!.applied, 10);
}

/** Applies the entries and moves the cursor. Resolves with the balance afterwards of every account they touch. */
export function applyBatch(
  orm: Orm,
  schema: string,
  entries: readonly Entry[],
  cursor: Cursor,
): Promise<Map<string, Money>> {
  const accountIds = [...new Set(entries.map((entry) => entry.hold.terms.accountId))];
  return orm.transaction(async (transaction) => {
    const balances = await lockBalances(transaction, schema, accountIds);
    const [result] = await rowsOf<BatchResult>(transaction, batchStatement(schema, entries, cursor));
    if (result!.imbalance !== '0') throw new Error(`the ledger's sides are off by ${result!.imbalance} nano-USD`);
    if (result!.owned !== 1) throw new ShutOutError(`journal ${cursor.journal} now belongs to another process`);
    for (const [accountId, balance] of Object.entries(result!.moved ?? {})) {
      balances.set(accountId, money(BigInt(balance)));
    }
    return balances;
  });
}

interface BatchResult {
  readonly imbalance: string;
  readonly owned: number;
  readonly moved: Record<string, string> | null;
}

/** Locks the accounts' rows, always in the same order, and reads them; adds those that are missing. */
export async function lockBalances(
  transaction: Runner,
  schema: string,
  accountIds: readonly string[],
): Promise<Map<string, Money>> {
  const balances = tablesOf(schema)('balances');
  const wanted = sql`(select value from json_array_elements_text(${jsonOf(accountIds)}))`;
  const read = () =>
    rowsOf<{ account_id: string; balance: string }>(
      transaction,
      sql`select account_id, balance::text as balance from ${balances}
          where account_id in ${wanted} order by account_id for update`,
    );
  let rows = await read();
  if (rows.length < accountIds.length) {
    await transaction.execute(sql`insert into ${balances} (account_id) ${wanted} order by 1 on conflict do nothing`);
    rows = await read();
  }
  return new Map(rows.map((row) => [row.account_id, money(BigInt(row.balance))]));
}

/** The ledger's side effects in one statement: rows, balances, totals, usage, attempts, cursor. */
function batchStatement(schema: string, entries: readonly Entry[], cursor: Cursor): SQL {
  const table = tablesOf(schema);
  const rows = rowsOfEntries(entries);
  return sql`
    with fresh as (${freshRows(table, rows.ledger)}),
    inserted as (
      insert into ${table('ledger')} (account_id, kind, request_id, part, amount, held, revenue, detail, created_at, balance_after)
      select fresh.account_id, kind, request_id, part, amount, held, revenue, detail, created_at,
        balances.balance + sum(amount) over (partition by fresh.account_id order by position)
      from fresh join ${table('balances')} as balances on balances.account_id = fresh.account_id
      order by position
      on conflict do nothing
      returning account_id, amount, held, revenue
    ),
    moved as (
      update ${table('balances')} as balances set balance = balances.balance + change.amount
      from (select account_id, sum(amount)::bigint as amount from inserted group by account_id) as change
      where balances.account_id = change.account_id
      returning balances.account_id, balances.balance
    ),
    summed as (
      update ${table('totals')} as totals set available = totals.available + change.amount,
        held = totals.held + change.held, revenue = totals.revenue + change.revenue
      from (
        select coalesce(sum(amount), 0)::bigint as amount, coalesce(sum(held), 0)::bigint as held,
          coalesce(sum(revenue), 0)::bigint as revenue from inserted
      ) as change
      returning totals.available + totals.held + totals.revenue + totals.funding + totals.absorbed as imbalance
    ),
    used as (insert into ${table('usage')} ${usageRows(rows.usage)} on conflict do nothing),
    tried as (insert into ${table('attempts')} ${attemptRows(rows.attempts)} on conflict do nothing),
    marked as (
      update ${table('journal_cursor')} set applied = greatest(applied, ${cursor.applied}::bigint), updated_at = now()
      where journal = ${cursor.journal} and owner = ${cursor.owner} returning 1
    )
    select (select imbalance::text from summed) as imbalance,
      (select count(*)::int from marked) as owned,
      (select json_object_agg(account_id, balance::text) from moved) as moved`;
}

/**
 * The given rows without those that the ledger has, and without second ends. `offset 0` keeps the planner from making an
 * anti join of it, for which it would read the whole ledger: an embedded database has no statistics to know better.
 */
function freshRows(table: (name: string) => SQL, rows: object[]): SQL {
  return sql`
    select * from json_to_recordset(${jsonOf(rows)}) as given (
      position int, account_id text, kind text, request_id uuid, part smallint,
      amount bigint, held bigint, revenue bigint, detail jsonb, created_at timestamptz)
    where not exists (
      select from ${table('ledger')} as ledger where ledger.request_id = given.request_id and (
        (ledger.kind = given.kind and ledger.part = given.part)
        or (ledger.kind in ('SETTLE', 'VOID', 'EXPIRE') and given.kind in ('SETTLE', 'VOID', 'EXPIRE')))
      offset 0)`;
}

function usageRows(rows: object[]): SQL {
  return sql`
    (request_id, account_id, key_id, model, provider, target_model, classes, estimated_input, held, cost, estimated,
      terminal, finish, upstream_id, price_version, ratio, created_at)
    select * from json_to_recordset(${jsonOf(rows)}) as given (
      request_id uuid, account_id text, key_id text, model text, provider text, target_model text, classes jsonb,
      estimated_input bigint, held bigint, cost bigint, estimated boolean, terminal boolean, finish text,
      upstream_id text, price_version text, ratio text, created_at timestamptz)`;
}

function attemptRows(rows: object[]): SQL {
  return sql`
    (request_id, number, account_id, provider, model, credential, protocol, result, status, duration_ms, error, started_at)
    select * from json_to_recordset(${jsonOf(rows)}) as given (
      request_id uuid, number smallint, account_id text, provider text, model text, credential text, protocol text,
      result text, status integer, duration_ms bigint, error text, started_at timestamptz)`;
}
