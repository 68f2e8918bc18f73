/** One batch of journal text into the database, in one transaction and any number of times: only rows that are new move a balance. */
import { type SQL, sql } from 'drizzle-orm';
import { type Money, money } from '../../core/money.ts';
import type { Orm } from '../../core/vocabulary.ts';
import { drawCharges } from './draws.ts';
import { encodeRecords, type JournalRecord } from './records.ts';
import { jsonOf, type Runner, rowsOf, tablesOf } from './sql.ts';

/** Which journal the text comes from, who writes it, and how far it is applied with them. */
export interface Cursor {
  readonly journal: string;
  readonly owner: string;
  readonly applied: number;
  /** How far the database has said that it had applied it. One that has less has lost what it had acknowledged. */
  readonly known?: number | undefined;
  /** How long a lease lasts from here on of which rows are applied; undefined: balances are not shared out. */
  readonly leaseMs?: number | undefined;
  /** Number of this statement among those of the run that move its leases: earlier asks for slices no longer count. */
  readonly number?: number | undefined;
}

/**
 * Another process has taken this journal over, or the database has gone back behind what it had acknowledged (a follower
 * that took over without the last commits): nothing that this run still applies would be true.
 */
export class ShutOutError extends Error {
  override readonly name = 'ShutOutError';
}

/**
 * Applies the records of some journal lines and moves the cursor. `accountIds` are all that they name. Resolves with the
 * balance afterwards of each.
 */
export function applyBatch(
  orm: Orm,
  schema: string,
  text: string,
  accountIds: readonly string[],
  cursor: Cursor,
): Promise<Map<string, Money>> {
  return orm.transaction((transaction) => postText(transaction, schema, text, accountIds, cursor));
}

/** The records of one account that no journal has, inside a transaction that is made of more than them. */
export async function postRecords(
  transaction: Runner,
  schema: string,
  accountId: string,
  records: readonly JournalRecord[],
): Promise<void> {
  await postText(transaction, schema, encodeRecords(records), [accountId], undefined);
}

async function postText(
  transaction: Runner,
  schema: string,
  text: string,
  accountIds: readonly string[],
  cursor: Cursor | undefined,
): Promise<Map<string, Money>> {
  const locked =
    accountIds.length === 0 ? new Map<string, Locked>() : await lockBalances(transaction, schema, accountIds);
  const [result] = await rowsOf<BatchResult>(transaction, batchStatement(schema, text, locked, cursor));
  if (result!.imbalance !== '0') throw new Error(`the ledger's sides are off by ${result!.imbalance} nano-USD`);
  if (result!.owned !== 1) throw new ShutOutError(shutOutOf(cursor?.journal));
  if (result!.charged !== null) await drawCharges(transaction, schema, result!.charged, unchargedIn(locked));
  const balances = new Map(Array.from(locked, ([accountId, { balance }]) => [accountId, balance]));
  for (const [accountId, balance] of Object.entries(result!.moved ?? {})) {
    balances.set(accountId, money(BigInt(balance)));
  }
  return balances;
}

/** Why nothing of a journal was applied, and what ends that. */
export function shutOutOf(journal: string | undefined): string {
  return `journal ${journal} now belongs to another process, or the database has gone back to an earlier time: restart, so that the journal is read again`;
}

/** An account's row, which nobody else can change while this transaction runs. */
export interface Locked {
  readonly balance: Money;
  readonly held: Money;
}

function unchargedIn(locked: ReadonlyMap<string, Locked>): Map<string, Money> {
  return new Map(Array.from(locked, ([accountId, { balance, held }]) => [accountId, money(balance + held)]));
}

interface BatchResult {
  readonly imbalance: string;
  readonly owned: number;
  readonly moved: Record<string, string> | null;
  /** Numbers of the new charges of accounts that have grants which expire. */
  readonly charged: string[] | null;
}

/** Locks the accounts' rows, always in the same order, and reads them; adds those that are missing. */
export async function lockBalances(
  transaction: Runner,
  schema: string,
  accountIds: readonly string[],
): Promise<Map<string, Locked>> {
  const balances = tablesOf(schema)('balances');
  const wanted = sql`(select value from json_array_elements_text(${jsonOf(accountIds)}))`;
  const read = () =>
    rowsOf<{ account_id: string; balance: string; held: string }>(
      transaction,
      sql`select account_id, balance::text as balance, held::text as held from ${balances}
          where account_id in ${wanted} order by account_id for update`,
    );
  let rows = await read();
  if (rows.length < accountIds.length) {
    await transaction.execute(sql`insert into ${balances} (account_id) ${wanted} order by 1 on conflict do nothing`);
    rows = await read();
  }
  return new Map(
    rows.map((row) => [row.account_id, { balance: money(BigInt(row.balance)), held: money(BigInt(row.held)) }]),
  );
}

/**
 * The ledger's side effects in one statement: rows, balances, totals, usage, attempts, cursor. `accounts` are the
 * locked rows: given, because the planner would read the whole table for a join with it. An account that is not among them
 * fails the statement, for there is no balance after its row.
 */
function batchStatement(
  schema: string,
  text: string,
  accounts: ReadonlyMap<string, Locked>,
  cursor: Cursor | undefined,
): SQL {
  const table = tablesOf(schema);
  const locked = Array.from(accounts, ([account_id, { balance }]) => ({ account_id, balance: balance.toString() }));
  return sql`
    with given as materialized (${givenRecords(text)}),
    posting as (${postings}),
    fresh as (${freshPostings(table)}),
    inserted as (
      insert into ${table('ledger')} (account_id, kind, request_id, part, amount, held, revenue, funding, absorbed, detail, created_at, balance_after)
      select fresh.account_id, kind, request_id, part, amount, held, revenue, -absorbed, absorbed, detail, created_at,
        locked.balance + sum(amount) over (partition by fresh.account_id order by position)
      from fresh left join json_to_recordset(${jsonOf(locked)}) as locked (account_id text, balance bigint)
        on locked.account_id = fresh.account_id
      order by position
      on conflict do nothing
      returning seq, account_id, amount, held, revenue, absorbed
    ),
    moved as (
      update ${table('balances')} as balances set balance = balances.balance + change.amount, held = balances.held + change.held
      from (select account_id, sum(amount)::bigint as amount, sum(held)::bigint as held from inserted group by account_id) as change
      where balances.account_id = change.account_id
      returning balances.account_id, balances.balance
    ),
    summed as (
      update ${table('totals')} as totals set available = totals.available + change.amount,
        held = totals.held + change.held, revenue = totals.revenue + change.revenue,
        funding = totals.funding - change.absorbed, absorbed = totals.absorbed + change.absorbed
      from (
        select coalesce(sum(amount), 0)::bigint as amount, coalesce(sum(held), 0)::bigint as held,
          coalesce(sum(revenue), 0)::bigint as revenue, coalesce(sum(absorbed), 0)::bigint as absorbed from inserted
      ) as change
      returning totals.available + totals.held + totals.revenue + totals.funding + totals.absorbed as imbalance
    ),
    ${cursor?.leaseMs === undefined ? sql`` : leaseRows(table, cursor, cursor.leaseMs)}
    used as (insert into ${table('usage')} ${usageRows} on conflict do nothing),
    tried as (insert into ${table('attempts')} ${attemptRows} on conflict do nothing),
    marked as (${cursor === undefined ? sql`select 1` : movedCursor(table, cursor)})
    select (select imbalance::text from summed) as imbalance,
      (select count(*)::int from marked) as owned,
      (select json_object_agg(account_id, balance::text) from moved) as moved,
      ${chargedRows(table, jsonOf(locked))} as charged`;
}

/** What a journal's rows take from a balance they take from its node's lease too. A missing one was given back: it begins at 0. */
function leaseRows(table: (name: string) => SQL, { journal, owner }: Cursor, leaseMs: number): SQL {
  return sql`
    leased as (
      insert into ${table('leases')} as leases (account_id, node, epoch, amount, expires_at)
      select account_id, ${journal}, ${owner}, sum(amount)::bigint,
        clock_timestamp() + ${leaseMs}::bigint * interval '1 millisecond' from inserted group by account_id
      on conflict (account_id, node) do update set amount = leases.amount + excluded.amount,
        expires_at = greatest(leases.expires_at, excluded.expires_at)
    ),`;
}

function movedCursor(table: (name: string) => SQL, cursor: Cursor): SQL {
  const { journal, owner, applied, known = 0, number = 0 } = cursor;
  return sql`
    update ${table('journal_cursor')} set applied = greatest(applied, ${applied}::bigint),
      asked = greatest(asked, ${number}::bigint), updated_at = now()
    where journal = ${journal} and owner = ${owner} and applied >= ${known}::bigint returning 1`;
}

/** The new charges that grants which expire may have to pay. */
function chargedRows(table: (name: string) => SQL, locked: SQL): SQL {
  return sql`(select json_agg(seq::text order by seq) from inserted where revenue > 0 and account_id = any (array(
    select account_id from json_to_recordset(${locked}) as locked (account_id text)
    where exists (select from ${table('pots')} as pots where pots.account_id = locked.account_id and remaining > 0
      offset 0))))`;
}

/** The records of the lines `CRC FIRST [RECORD, …]`, in order; those that make no row are left out. */
function givenRecords(text: string): SQL {
  return sql`
    select row_number() over (order by place, record.ordinality) as position, record.*
    from string_to_table(${text}::text, E'\n') with ordinality as lines (line, place),
      rows from (json_to_recordset(substr(line, strpos(line, '['))::json) as (
        kind text, id uuid, at bigint, account text, key text, model text, plan text, part smallint, input bigint, output bigint,
        amount bigint, held bigint, cost bigint, usage jsonb, estimated boolean, terminal boolean, reason text,
        finish text, "upstreamId" text, price jsonb, ratio text, version text, tier text, own bigint,
        absorbed bigint, attempts json
      )) with ordinality as record
    where line <> '' and kind in ('HOLD', 'EXTEND', 'SETTLE', 'VOID')`;
}

/** The ledger row that each record makes; `detail` is what a reader needs to do the sum again. */
const postings = sql`
  select position, account as account_id, kind, id as request_id, coalesce(part, 0)::smallint as part,
    case when kind in ('HOLD', 'EXTEND') then -amount else held - coalesce(cost, 0) end as amount,
    case when kind in ('HOLD', 'EXTEND') then amount else -held end as held,
    coalesce(cost, 0) as revenue,
    -- What the operator bears comes from outside, as credits do.
    coalesce(absorbed, 0) as absorbed,
    case kind
      when 'HOLD' then jsonb_build_object('model', model, 'input_tokens', input, 'output_tokens', output)
      when 'EXTEND' then jsonb_build_object('output_tokens', output)
      when 'VOID' then jsonb_build_object('model', model, 'reason', reason)
      else jsonb_build_object('model', model, 'usage', usage, 'estimated', estimated, 'reason', reason,
        'price', price, 'ratio', ratio, 'price_version', version)
        || jsonb_strip_nulls(jsonb_build_object('tier', tier, 'plan', plan))
    end as detail,
    to_timestamp(at / 1000.0) as created_at
  from given`;

/**
 * The postings without those that the ledger has, and without second ends. `offset 0` keeps the planner from making an
 * anti join of it, for which it would read the whole ledger: an embedded database has no statistics to know better.
 */
function freshPostings(table: (name: string) => SQL): SQL {
  return sql`
    select * from posting
    where not exists (
      select from ${table('ledger')} as ledger where ledger.request_id = posting.request_id and (
        (ledger.kind = posting.kind and ledger.part = posting.part)
        or (ledger.kind in ('SETTLE', 'VOID', 'EXPIRE') and posting.kind in ('SETTLE', 'VOID', 'EXPIRE')))
      offset 0)`;
}

const usageRows = sql`
  (request_id, account_id, key_id, model, plan, provider, target_model, classes, estimated_input, held, cost, estimated,
    terminal, finish, upstream_id, price_version, tier, ratio, own_cost, created_at)
  select id, account, key, model, plan, attempts->-1->>'provider', attempts->-1->>'model', usage, input, held, cost, estimated,
    terminal, finish, "upstreamId", version, tier, ratio, own, to_timestamp(at / 1000.0)
  from given where kind = 'SETTLE'`;

const attemptRows = sql`
  (request_id, number, account_id, provider, model, credential, protocol, result, status, duration_ms, error, started_at,
    borne_by, absorbed, consumed, estimated)
  select id, number, account, attempt.provider, attempt.model, credential, protocol, result, status, "durationMs", error,
    to_timestamp("startedAt" / 1000.0), attempt.bearer, coalesce(attempt.absorbed, 0), attempt.usage,
    coalesce(attempt.estimated, false)
  from given, json_to_recordset(attempts) as attempt (
    number smallint, provider text, model text, credential text, protocol text, result text, status integer,
    "durationMs" bigint, error text, "startedAt" bigint, bearer text, absorbed bigint, usage jsonb, estimated boolean)
  where kind in ('SETTLE', 'VOID')`;
