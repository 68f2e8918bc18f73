/**
 * Applies the ends of calls in one batch of journal text in one transaction, idempotently: each makes a row of `calls`, with the
 * facts of its request if they are there; a charge has its number and the balance after it there too. Only new rows change a balance.
 */
import { type SQL, sql } from 'drizzle-orm';
import { type Database, MadeParameters } from '../../common/domain/database.ts';
import { type Money, money } from '../../common/domain/money.ts';
import {
  filled,
  filledBeside,
  named,
  rowsOfColumns,
  type Wording,
  wordingOf,
} from '../../common/rollups/named-parameters.ts';
import { keptOfColumns, type SumTable } from '../../common/rollups/table.ts';
import { allocateCharges, type ChargeRow } from '../grants/allocations.ts';
import { type EndRecord, encodeRecords } from '../model/records.ts';
import { jsonOf, millisecondsOf, type Runner, rowsOf, tablesOf } from '../model/sql.ts';
import { type BatchInput, lockedColumns, parametersOf } from './batch-columns.ts';
import { callRows, completedRows, lateFacts, requestsCompleted, sharedTimelines, timelineNumber } from './call-rows.ts';
import { callSums } from './call-sums.ts';
import { callRecordsIn } from './call-texts.ts';
import { addTags, tagsMember } from './tag-rows.ts';

/** The text's journal, its writer, and the sequence number up to which it is applied. */
export interface Cursor {
  readonly journal: string;
  readonly owner: string;
  readonly applied: number;
  /** The sequence number that the database last acknowledged. A database with less has lost acknowledged rows. */
  readonly known?: number | undefined;
  /** How long the lease of an account with applied rows lasts from now; undefined: balances are not shared. */
  readonly leaseMs?: number | undefined;
  /** This statement's number among those of the run that move its leases: earlier lease requests are ignored. */
  readonly number?: number | undefined;
  /** Where requests are summed up; undefined: the request log is not in the list of plugins. */
  readonly requestSums?: SumTable | undefined;
}

/**
 * Another process has claimed this journal, or the database has lost acknowledged rows (a follower was promoted
 * without the last commits): this run must not apply anything more.
 */
export class FencedError extends Error {
  override readonly name = 'ShutOutError';
}

/** The database of batches. `makesParameters`: their columns are made where the driver runs. */
export type BatchPlace = Pick<Database, 'orm' | 'schema' | 'makesParameters'>;

/**
 * Applies the records of some journal lines and moves the cursor. `accounts` are all accounts of which calls end in them, with
 * what their running calls hold. Resolves with the balance of each afterwards.
 */
export async function applyBatch(
  place: BatchPlace,
  text: string,
  accounts: ReadonlyMap<string, Money>,
  cursor: Cursor,
): Promise<Map<string, Money>> {
  const apply = (isRepeated: boolean) =>
    place.orm.transaction((transaction) => postText(transaction, place, { text, accounts, cursor, isRepeated }));
  try {
    return await apply(false);
  } catch (error) {
    if (!mayBeTwice(error)) throw error;
    return await apply(true);
  }
}

/**
 * Nothing of the batch was done, because some call may have a row already: a charge of it is a second one or, where its account is
 * not among the locked ones, one without a balance.
 */
const mayBeTwice = (error: unknown): boolean =>
  error instanceof Error && (violations.has((error as { code?: unknown }).code) || mayBeTwice(error.cause));

/** PostgreSQL codes: a second value of a unique key, and a row that a check refuses. */
const violations = new Set<unknown>(['23505', '23514']);

/** Posts the ends of one account's calls that are in no journal, inside a larger transaction. */
export async function postRecords(
  transaction: Runner,
  schema: string,
  accountId: string,
  records: readonly EndRecord[],
): Promise<void> {
  const accounts = new Map([[accountId, money(0n)]]);
  const text = encodeRecords(records);
  await postText(transaction, { schema }, { text, accounts, cursor: undefined, isRepeated: true });
}

interface BatchText {
  readonly text: string;
  readonly accounts: ReadonlyMap<string, Money>;
  readonly cursor: Cursor | undefined;
  /** Some of its calls may have rows: these count nowhere. */
  readonly isRepeated: boolean;
}

async function postText(
  transaction: Runner,
  place: Pick<BatchPlace, 'schema' | 'makesParameters'>,
  batch: BatchText,
): Promise<Map<string, Money>> {
  const { text, accounts, cursor } = batch;
  const { schema } = place;
  if (cursor !== undefined && accounts.size === 0 && text === '') {
    await moveCursor(transaction, schema, cursor);
    return new Map();
  }
  const locked =
    accounts.size === 0 ? new Map<string, Locked>() : await lockBalances(transaction, schema, [...accounts.keys()]);
  const present = batch.isRepeated ? await callsPresent(transaction, schema, text) : [];
  const [result] = await rowsOf<BatchResult>(transaction, batchStatement(place, batch, locked, present));
  if (result!.imbalance !== '0') throw new Error(`the ledger's sides are off by ${result!.imbalance} nano-USD`);
  if (result!.owned !== 1) throw new FencedError(fencedErrorOf(cursor?.journal));
  if (text.includes(tagsMember)) await addTags(transaction, schema, text, present);
  if (result!.charged !== null) await allocateCharges(transaction, schema, result!.charged, totalsIn(locked));
  const balances = new Map(Array.from(locked, ([accountId, { balance }]) => [accountId, balance]));
  for (const [accountId, balance] of Object.entries(result!.moved ?? {})) {
    balances.set(accountId, money(BigInt(balance)));
  }
  return balances;
}

/** Behind the accounts' locks: no other transaction adds rows of their calls until this one ends. */
async function callsPresent(transaction: Runner, schema: string, text: string): Promise<string[]> {
  const { ends } = callRecordsIn(text);
  const ids = ends.map(({ id }) => id);
  const accountIds = new Set(ends.map(({ account }) => account));
  const rows = await rowsOf<{ id: string }>(
    transaction,
    sql`select id::text as id from ${tablesOf(schema)('calls')}
        where account_id in (select value from json_array_elements_text(${jsonOf([...accountIds])}))
          and id in (select value::uuid from json_array_elements_text(${jsonOf(ids)}))`,
  );
  return rows.map(({ id }) => id);
}

/** Moves the cursor past text in which no call ends: the whole statement would cost as much as some calls. */
async function moveCursor(transaction: Runner, schema: string, cursor: Cursor): Promise<void> {
  const wording = wordingOf(movedCursor(tablesOf(schema)));
  const given = givenBy(cursor);
  const moved = await rowsOf(
    transaction,
    filled(
      wording,
      wording.names.map((name) => given[name]),
    ),
  );
  if (moved.length !== 1) throw new FencedError(fencedErrorOf(cursor.journal));
}

/** Why a journal was not applied, and the remedy. */
export function fencedErrorOf(journal: string | undefined): string {
  return `journal ${journal} now belongs to another process, or the database has gone back to an earlier time: restart, so that the journal is read again`;
}

/** An account's locked row: its spendable and its authorized money. */
export interface Locked {
  readonly balance: Money;
  readonly held: Money;
}

/** All money of each account, with authorizations. */
function totalsIn(locked: ReadonlyMap<string, Locked>): Map<string, Money> {
  return new Map(Array.from(locked, ([accountId, { balance, held }]) => [accountId, money(balance + held)]));
}

interface BatchResult {
  readonly imbalance: string;
  readonly owned: number;
  readonly moved: Record<string, string> | null;
  /** The new charges of accounts with expiring grants. */
  readonly charged: ChargeRow[] | null;
}

/** Locks the accounts' rows, always in the same order, and reads them; adds missing ones. */
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

function batchStatement(
  { schema, makesParameters }: Pick<BatchPlace, 'schema' | 'makesParameters'>,
  { text, accounts, cursor }: BatchText,
  locked: ReadonlyMap<string, Locked>,
  present: readonly string[],
): SQL {
  const wording = wordingFor(schema, cursor);
  const input: BatchInput = {
    names: wording.names,
    text,
    accounts: Array.from(locked, ([id, { balance, held }]) => [id, String(balance + held), String(accounts.get(id)!)]),
    present,
    keepsFacts: cursor?.requestSums !== undefined,
    given: givenBy(cursor),
  };
  if (makesParameters !== true) return filled(wording, parametersOf(input));
  return filledBeside(wording, new MadeParameters(columnsModule, input));
}

const columnsModule = new URL('./batch-columns.ts', import.meta.url).href;

/** The parameters of the cursor's parts of the statement. */
function givenBy(cursor: Cursor | undefined): BatchInput['given'] {
  if (cursor === undefined) return {};
  const { journal, owner, applied, known = 0, number = 0, leaseMs = 0 } = cursor;
  const numbers = { applied: String(applied), known: String(known), number: String(number), leaseMs: String(leaseMs) };
  return { journal, owner, ...numbers };
}

const wordings = new Map<string, Wording>();
/** A process has few. */
const mostWordings = 16;

/** Put together once: from hundreds of parts it takes longer than all else of a batch. */
function wordingFor(schema: string, cursor: Cursor | undefined): Wording {
  const shape = [schema, cursor !== undefined, cursor?.requestSums !== undefined, cursor?.leaseMs !== undefined].join(
    ' ',
  );
  let wording = wordings.get(shape);
  if (wording === undefined) {
    if (wordings.size >= mostWordings) wordings.clear();
    wording = wordingOf(statementFor(schema, cursor));
    wordings.set(shape, wording);
  }
  return wording;
}

/**
 * The changes in one statement: calls, balances, rollups, leases, cursor. A call that has a row fails it, as the charge of an account that
 * is not locked, because its row would have no balance. What several batches change beside their locked accounts are rollups of all of
 * them: all statements lock these in one order.
 */
function statementFor(schema: string, cursor: Cursor | undefined): SQL {
  const table = tablesOf(schema);
  const requestSums = cursor?.requestSums;
  return sql`
    with facts as materialized (${lateFacts}),
    timeline_number as (${timelineNumber(schema)}),
    shared_timelines as (${sharedTimelines(table)}),
    locked as materialized (select * from ${rowsOfLists('locked', lockedColumns)}),
    called as (
      insert into ${table('calls')} as calls ${callRows(schema)} returning calls.account_id, calls.seq, calls.cost, calls.held_at
    ),
    completed as (${completedRows(table)}),
    moved as (
      update ${table('balances')} as balances set balance = balances.balance - locked.cost, revenue = balances.revenue + locked.cost
      from locked where balances.account_id = locked.id and locked.cost <> 0
      returning balances.account_id, balances.balance, balances.balance + balances.held + balances.revenue + balances.funding as sides
    ),
    ${keptOfColumns(schema, callSums, undefined)},
    ${requestSums === undefined ? sql`` : sql`${requestsCompleted}, ${keptOfColumns(schema, requestSums, 'requested')},`}
    ${cursor?.leaseMs === undefined ? sql`` : leaseRows(table)}
    marked as (${cursor === undefined ? sql`select 1` : movedCursor(table)})
    select (select coalesce(sum(abs(sides)), 0)::text from moved) as imbalance,
      (select count(*)::int from marked) as owned,
      (select json_object_agg(account_id, balance::text) from moved) as moved,
      ${chargedRows(table)} as charged`;
}

/** The rows of columns `NAME.…`, under that name. */
function rowsOfLists(name: string, columns: Parameters<typeof rowsOfColumns>[0]): SQL {
  const short = columns.map((column) => column.name.slice(name.length + 1));
  return sql`${rowsOfColumns(columns, short)} as ${sql.raw(name)}`;
}

/**
 * Charges change the node's lease by the same amount as the balance, and the ends of calls the part of it that calls hold. A
 * missing lease was returned: it begins at 0.
 */
function leaseRows(table: (name: string) => SQL): SQL {
  return sql`
    leased as (
      insert into ${table('leases')} as leases (account_id, node, epoch, amount, open, expires_at)
      select locked.id, ${named('journal')}, ${named('owner')}, -locked.cost, locked.open,
        clock_timestamp() + ${named('leaseMs', 'bigint')} * interval '1 millisecond'
      from locked where locked.cost <> 0
        or exists (select from ${table('leases')} as known where known.account_id = locked.id and known.node = ${named('journal')})
      on conflict (account_id, node) do update set amount = leases.amount + excluded.amount, open = excluded.open,
        expires_at = greatest(leases.expires_at, excluded.expires_at)
    ),`;
}

function movedCursor(table: (name: string) => SQL): SQL {
  return sql`
    update ${table('journal_cursor')} set applied = greatest(applied, ${named('applied', 'bigint')}),
      asked = greatest(asked, ${named('number', 'bigint')}), updated_at = now()
    where journal = ${named('journal')} and owner = ${named('owner')} and applied >= ${named('known', 'bigint')} returning 1 as moved`;
}

/** The new charges that expiring grants may have to pay. */
function chargedRows(table: (name: string) => SQL): SQL {
  return sql`(select json_agg(json_build_object('seq', seq::text, 'accountId', account_id, 'cost', cost::text,
      'heldAt', ${millisecondsOf(sql`held_at`)}) order by seq) from called
    where seq is not null and account_id = any (array(select id from locked where exists (
      select from ${table('grant_balances')} as known where known.account_id = locked.id and remaining > 0 offset 0))))`;
}
