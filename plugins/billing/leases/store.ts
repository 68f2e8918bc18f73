/** The statements on leases: take a slice, give all of them back, tell that this node lives, list and release. */
import { type SQL, sql } from 'drizzle-orm';
import { type Money, money } from '../../../core/money.ts';
import type { Orm } from '../../../core/vocabulary.ts';
import { lockBalances, ShutOutError } from '../batch.ts';
import { type PoolState, readPools } from '../funds.ts';
import { lockedAt, lockedThrough } from '../pots.ts';
import { jsonOf, type Runner, rowsOf, tablesOf } from '../sql.ts';
import type { Answer, Ask } from './slice.ts';

/** Who asks: a journal, and the run of it. */
export interface Node {
  readonly journal: string;
  readonly owner: string;
}

/** What one statement asks for. */
export interface Round {
  /** Counts a run's rounds and batches. A round that comes to run behind a later one, or behind a later run, changes nothing. */
  readonly number: number;
  readonly asks: readonly Ask[];
  readonly lastsMs: number;
  /** The wall clock's time, which chooses the windows of accounts with grants that expire. */
  readonly at: number;
}

/** An answer with what a purse must know beside its lease. */
export interface Leased extends Answer {
  readonly pool: PoolState | undefined;
  readonly term: string | undefined;
  /** How long the lease lasts from the moment at which it was asked for. */
  readonly lastsMs: number;
}

/** What nodes ask of the leases that they share. Each call is one transaction, or one for each account. */
export interface Leases {
  /** Takes, renews or gives back slices. */
  take(node: Node, round: Round): Promise<Map<string, Leased>>;
  /** Gives back all that the node has. Only when its journal is in the ledger to the last row. */
  giveAllBack(node: Node): Promise<void>;
  /** The accounts of which the node has a lease, as the database knows. */
  accountsOf(node: Node): Promise<string[]>;
  /** Tells that the node lives (or, with `false`, that it has left), so that slices are cut for as many as there are. */
  tellAlive(node: Node, lives: boolean): Promise<void>;
  /** Other processes that live. */
  countOthers(journal: string): Promise<number>;
  /** What nodes may spend of the account without asking, and as much of that as those have that live. */
  leasedOf(accountId: string): Promise<{ readonly leased: Money; readonly byLiving: Money }>;
}

/** The leases in a database that speaks SQL. */
export function sqlLeases(orm: Orm, schema: string): Leases {
  return {
    take: (node, round) => takeSlices(orm, schema, node, round),
    giveAllBack: (node) => giveAllBack(orm, schema, node),
    accountsOf: (node) => accountsOf(orm, schema, node),
    tellAlive: (node, lives) => tellAlive(orm, schema, node, lives),
    countOthers: (journal) => countOthers(orm, schema, journal),
    leasedOf: (accountId) => leasedOf(orm, schema, accountId),
  };
}

interface SliceRow {
  readonly account_id: string;
  readonly owned: boolean;
  readonly amount: string | null;
  readonly allowed: string | null;
  readonly rest: string | null;
  readonly elsewhere: string | null;
  readonly held: string | null;
  readonly nodes: string;
  readonly term: string | null;
}

/** One statement for all accounts that have no grants which expire. */
async function takeSlices(orm: Orm, schema: string, node: Node, round: Round): Promise<Map<string, Leased>> {
  const { asks, lastsMs } = round;
  const answers = new Map<string, Leased>();
  for (const row of await askAll(orm, schema, node, round, undefined)) {
    const answer = row.amount === null ? undefined : answerOf(row);
    const term = row.term ?? undefined;
    if (answer !== undefined) answers.set(row.account_id, { ...answer, term, pool: undefined, lastsMs });
  }
  for (const ask of asks) {
    if (!answers.has(ask.accountId)) answers.set(ask.accountId, await takePooled(orm, schema, node, ask, round));
  }
  return answers;
}

/** The same for an account with grants that expire. */
function takePooled(orm: Orm, schema: string, node: Node, ask: Ask, round: Round): Promise<Leased> {
  return orm.transaction(async (transaction) => {
    await lockBalances(transaction, schema, [ask.accountId]);
    const pool = (await readPools(transaction, schema, [ask.accountId], [round.at])).get(ask.accountId);
    return takeWithin(pool, ask.need, round, async (locked, lastsMs) => {
      const [row] = await askAll(transaction, schema, node, { ...round, asks: [ask], lastsMs }, locked);
      return { ...answerOf(row!), term: row!.term ?? undefined, pool, lastsMs };
    });
  });
}

/**
 * A lease must hold as long as it lasts, so it is cut from the least that is free until then; only where that is too little
 * for a call it ends with the next window or grant. `take` takes it with so much of the balance locked, for so long.
 */
export async function takeWithin(
  pool: PoolState | undefined,
  need: Money,
  { lastsMs, at }: Round,
  take: (locked: Money, lastsMs: number) => Promise<Leased>,
): Promise<Leased> {
  const { pots, spent } = pool ?? { pots: [], spent: new Map() };
  const whole = await take(lockedThrough(pots, spent, at, at + lastsMs), lastsMs);
  const { locked, end } = lockedAt(pots, spent, at);
  if (end >= at + lastsMs || whole.allowed >= need) return whole;
  return take(locked, end - at);
}

async function askAll(
  runner: Runner,
  schema: string,
  { journal, owner }: Node,
  { number, asks, lastsMs }: Round,
  locked: Money | undefined,
): Promise<SliceRow[]> {
  const given = asks.map(({ accountId, pending, keep, need, smallest, wish }) => {
    const digits = { pending, keep, need, smallest, wish, locked: locked ?? null };
    const texts = Object.entries(digits).map(([name, amount]) => [name, amount === null ? null : amount.toString()]);
    return { account: accountId, ...Object.fromEntries(texts) };
  });
  const rows = await rowsOf<SliceRow>(
    runner,
    // In the accounts' order, as batches lock them.
    sql`select account_id, owned, amount::text as amount, allowed::text as allowed, rest::text as rest,
          elsewhere::text as elsewhere, held::text as held, nodes::text as nodes, term
        from (select * from json_to_recordset(${jsonOf(given)}) as given
            (account text, pending bigint, keep bigint, need bigint, smallest bigint, wish bigint, locked bigint)
            order by account) as asks (account_id, pending, keep, need, smallest, wish, locked),
          lateral ${tablesOf(schema)('take_slice')}(${journal}::text, ${owner}::text, ${number}::bigint, account_id, asks.pending, asks.keep,
            asks.need, asks.smallest, asks.wish, asks.locked, ${Math.floor(lastsMs)}::bigint)`,
  );
  if (rows.some(({ owned }) => !owned)) throw new ShutOutError(`journal ${journal} now belongs to another process`);
  return rows;
}

function answerOf({ amount, allowed, rest, elsewhere, held, nodes }: SliceRow): Answer {
  const read = (digits: string | null) => money(BigInt(digits ?? '0'));
  return {
    amount: read(amount),
    allowed: read(allowed),
    rest: read(rest),
    elsewhere: read(elsewhere),
    held: read(held),
    nodes: Number.parseInt(nodes, 10),
  };
}

async function giveAllBack(orm: Orm, schema: string, { journal, owner }: Node): Promise<void> {
  const table = tablesOf(schema);
  await orm.execute(
    sql`delete from ${table('leases')} where node = ${journal}
          and exists (select from ${table('journal_cursor')} where journal = ${journal} and owner = ${owner})`,
  );
}

async function accountsOf(orm: Orm, schema: string, { journal }: Node): Promise<string[]> {
  const rows = await rowsOf<{ account_id: string }>(
    orm,
    sql`select account_id from ${tablesOf(schema)('leases')} where node = ${journal}`,
  );
  return rows.map(({ account_id: accountId }) => accountId);
}

async function tellAlive(orm: Orm, schema: string, { journal, owner }: Node, lives: boolean): Promise<void> {
  const at = lives ? sql`clock_timestamp()` : sql`'-infinity'::timestamptz`;
  await orm.execute(
    sql`update ${tablesOf(schema)('journal_cursor')} set updated_at = ${at} where journal = ${journal} and owner = ${owner}`,
  );
}

async function countOthers(orm: Orm, schema: string, journal: string): Promise<number> {
  const [row] = await rowsOf<{ count: number }>(
    orm,
    sql`select count(*)::int as count from ${tablesOf(schema)('journal_cursor')}
        where journal <> ${journal} and updated_at > clock_timestamp() - interval '15 seconds'`,
  );
  return row!.count;
}

/** What nodes hold of an account, in whose lock the transaction is or whose answer may be old in a moment. */
export async function leasedOf(
  runner: Runner,
  schema: string,
  accountId: string,
): Promise<{ leased: Money; byLiving: Money }> {
  const [row] = await rowsOf<{ leased: string; living: string }>(
    runner,
    sql`select ${leased(sql`true`)} as leased, ${leased(sql`expires_at > clock_timestamp()`)} as living
        from ${tablesOf(schema)('leases')} where account_id = ${accountId}`,
  );
  return { leased: money(BigInt(row!.leased)), byLiving: money(BigInt(row!.living)) };
}

function leased(which: SQL): SQL {
  return sql`coalesce(sum(greatest(amount, 0)) filter (where ${which}), 0)::text`;
}

export interface NodeView {
  readonly node: string;
  readonly accounts: number;
  readonly amount: Money;
  /** Its lease of all that ends last, ISO; and whether that is past. */
  readonly expiresAt: string;
  readonly expired: boolean;
  readonly seenAt: string;
}

/** Every node that holds leases. */
export async function listNodes(orm: Orm, schema: string): Promise<NodeView[]> {
  const table = tablesOf(schema);
  const format = sql`'YYYY-MM-DD"T"HH24:MI:SS"Z"'`;
  const rows = await rowsOf<Omit<NodeView, 'amount'> & { amount: string }>(
    orm,
    sql`select node, count(*)::int as accounts, sum(greatest(amount, 0))::text as amount,
          to_char(max(expires_at) at time zone 'UTC', ${format}) as "expiresAt",
          max(expires_at) < clock_timestamp() as expired,
          coalesce(to_char(max(updated_at) at time zone 'UTC', ${format}), '') as "seenAt"
        from ${table('leases')} as leases left join ${table('journal_cursor')} as cursors on cursors.journal = leases.node
        group by node order by node`,
  );
  return rows.map((row) => ({ ...row, amount: money(BigInt(row.amount)) }));
}

/** Gives back the leases of a node that will not return, unless one of them still runs. Resolves with how many there were. */
export async function releaseNode(orm: Orm, schema: string, node: string): Promise<number> {
  const leases = tablesOf(schema)('leases');
  const rows = await rowsOf(
    orm,
    sql`delete from ${leases} where node = ${node}
          and not exists (select from ${leases} as running where running.node = ${node} and running.expires_at > clock_timestamp())
        returning account_id`,
  );
  return rows.length;
}
