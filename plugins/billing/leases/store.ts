/** SQL statements on leases: take shares, return all of them, heartbeat, list and release. */
import { sql } from 'drizzle-orm';
import type { Orm } from '../../common/domain/database.ts';
import { type Money, money } from '../../common/domain/money.ts';
import { lockedAt, lockedThrough } from '../grants/balances.ts';
import { creditTermOf, type PoolState, readPools } from '../grants/funds.ts';
import { FencedError, lockBalances } from '../ledger/batch.ts';
import { type LeasedMoney, leasedOf } from '../ledger/entry-rows.ts';
import { jsonOf, type Runner, rowsOf, tablesOf } from '../model/sql.ts';

/** The requesting journal, and its run. */
export interface Node {
  readonly journal: string;
  readonly owner: string;
}

/** One node's request in an exchange with the database. */
export interface LeaseRequest {
  readonly accountId: string;
  /** What running calls hold, and what ended ones cost that the database lacks: that much stays leased. */
  readonly pending: Money;
  readonly keep: Money;
  readonly need: Money;
  readonly smallest: Money;
  readonly target: Money;
  /**
   * The part of the need that a running answer requested, and whether the remainder is returned. Not sent to the
   * database.
   */
  readonly ahead: Money;
  readonly leaving: boolean;
  /** More is kept than calls need, until the ledger has the journal's rows. */
  readonly owing: boolean;
}

/** The database's answer; see `migrations/001-baseline.sql`. */
export interface Answer {
  readonly amount: Money;
  readonly allowed: Money;
  readonly rest: Money;
  readonly elsewhere: Money;
  readonly held: Money;
  readonly nodes: number;
}

/** The requests of one statement. */
export interface Round {
  /**
   * Counts a run's rounds and batches. A round that executes after a later one, or after a later run, changes
   * nothing.
   */
  readonly number: number;
  readonly requests: readonly LeaseRequest[];
  readonly lastsMs: number;
  /** Wall-clock time, which selects the windows of accounts with expiring grants. */
  readonly at: number;
}

/** An answer with the account's funds beside its lease. */
export interface Leased extends Answer {
  readonly pool: PoolState | undefined;
  readonly term: string | undefined;
  /** The lease's duration from the time of the request. */
  readonly lastsMs: number;
}

/** Operations of nodes on shared leases. Each call is one transaction, or one per account. */
export interface Leases {
  /** Takes, renews or returns shares. */
  take(node: Node, round: Round): Promise<Map<string, Leased>>;
  /** Returns everything the node has. Only when all of its journal is applied. */
  returnAll(node: Node): Promise<void>;
  /** The accounts of which the node has a lease, according to the database. */
  accountsOf(node: Node): Promise<string[]>;
  /**
   * Records that the node lives (or, with `false`, that it has left), so that shares are cut for the right number
   * of nodes.
   */
  heartbeat(node: Node, lives: boolean): Promise<void>;
  /** The number of other live processes. */
  countOthers(journal: string): Promise<number>;
  leasedOf(accountId: string): Promise<LeasedMoney>;
}

/** Leases in SQL. */
export function sqlLeases(orm: Orm, schema: string): Leases {
  const [leases, cursors] = [tablesOf(schema)('leases'), tablesOf(schema)('journal_cursor')];
  return {
    take: (node, round) => takeShares(orm, schema, node, round),
    returnAll: async ({ journal, owner }) => {
      await orm.execute(
        sql`delete from ${leases} where node = ${journal}
              and exists (select from ${cursors} where journal = ${journal} and owner = ${owner})`,
      );
    },
    accountsOf: async ({ journal }) => {
      const found = sql`select account_id from ${leases} where node = ${journal}`;
      return (await rowsOf<{ account_id: string }>(orm, found)).map((row) => row.account_id);
    },
    heartbeat: async ({ journal, owner }, lives) => {
      const at = lives ? sql`clock_timestamp()` : sql`'-infinity'::timestamptz`;
      await orm.execute(sql`update ${cursors} set updated_at = ${at} where journal = ${journal} and owner = ${owner}`);
    },
    countOthers: async (journal) => {
      const [row] = await rowsOf<{ count: number }>(
        orm,
        sql`select count(*)::int as count from ${cursors}
            where journal <> ${journal} and updated_at > clock_timestamp() - interval '15 seconds'`,
      );
      return row!.count;
    },
    leasedOf: (accountId) => leasedOf(orm, schema, accountId),
  };
}

interface LeaseShareRow {
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

/** One statement for all accounts without expiring grants. */
async function takeShares(orm: Orm, schema: string, node: Node, round: Round): Promise<Map<string, Leased>> {
  const { requests, lastsMs } = round;
  const answers = new Map<string, Leased>();
  for (const row of await requestAll(orm, schema, node, round, undefined)) {
    const answer = row.amount === null ? undefined : answerOf(row);
    const term = row.term ?? undefined;
    if (answer !== undefined) answers.set(row.account_id, { ...answer, term, pool: undefined, lastsMs });
  }
  for (const request of requests) {
    if (!answers.has(request.accountId))
      answers.set(request.accountId, await takePooled(orm, schema, node, request, round));
  }
  return answers;
}

/** The same for an account with expiring grants. */
function takePooled(orm: Orm, schema: string, node: Node, request: LeaseRequest, round: Round): Promise<Leased> {
  return orm.transaction(async (transaction) => {
    await lockBalances(transaction, schema, [request.accountId]);
    const pool = (await readPools(transaction, schema, [request.accountId], [round.at])).get(request.accountId);
    return takeWithin(pool, request.need, round, async (locked, lastsMs) => {
      const [row] = await requestAll(transaction, schema, node, { ...round, requests: [request], lastsMs }, locked);
      return { ...answerOf(row!), term: row!.term ?? undefined, pool, lastsMs };
    });
  });
}

/**
 * A lease must stay valid for its duration, so it is cut from the least that is free until then; only where that is
 * too little for a call does it end with the next window or grant. `take` takes it with this much of the balance
 * locked, for this long.
 */
export async function takeWithin(
  pool: PoolState | undefined,
  need: Money,
  { lastsMs, at }: Round,
  take: (locked: Money, lastsMs: number) => Promise<Leased>,
): Promise<Leased> {
  const { grants: grantBalances, spent } = pool ?? { grants: [], spent: new Map() };
  const whole = await take(lockedThrough(grantBalances, spent, at, at + lastsMs), lastsMs);
  const { locked, end } = lockedAt(grantBalances, spent, at);
  if (end >= at + lastsMs || whole.allowed >= need) return whole;
  return take(locked, end - at);
}

async function requestAll(
  runner: Runner,
  schema: string,
  { journal, owner }: Node,
  { number, requests, lastsMs }: Round,
  locked: Money | undefined,
): Promise<LeaseShareRow[]> {
  const given = requests.map(({ accountId, pending, keep, need, smallest, target }) => {
    const digits = { pending, keep, need, smallest, wish: target, locked: locked ?? null };
    const texts = Object.entries(digits).map(([name, amount]) => [name, amount === null ? null : amount.toString()]);
    return { account: accountId, ...Object.fromEntries(texts) };
  });
  const rows = await rowsOf<LeaseShareRow>(
    runner,
    // In account order, the order in which batches lock them.
    sql`select account_id, owned, amount::text as amount, allowed::text as allowed, rest::text as rest,
          elsewhere::text as elsewhere, held::text as held, nodes::text as nodes,
          nullif(concat(term, ${creditTermOf(tablesOf(schema), sql`asks.account_id`)}), '') as term
        from (select * from json_to_recordset(${jsonOf(given)}) as given
            (account text, pending bigint, keep bigint, need bigint, smallest bigint, wish bigint, locked bigint)
            order by account) as asks (account_id, pending, keep, need, smallest, wish, locked),
          lateral ${tablesOf(schema)('take_slice')}(${journal}::text, ${owner}::text, ${number}::bigint, account_id, asks.pending, asks.keep,
            asks.need, asks.smallest, asks.wish, asks.locked, ${Math.floor(lastsMs)}::bigint)`,
  );
  if (rows.some(({ owned }) => !owned)) throw new FencedError(`journal ${journal} now belongs to another process`);
  return rows;
}

function answerOf({ amount, allowed, rest, elsewhere, held, nodes }: LeaseShareRow): Answer {
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

export interface NodeView {
  readonly node: string;
  readonly accounts: number;
  readonly amount: Money;
  /** The latest expiry of its leases, ISO; and whether that is past. */
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

/** Returns the leases of a node that will not return, unless one of them is unexpired. Resolves with their count. */
export async function releaseNode(orm: Orm, schema: string, node: string): Promise<number> {
  const [leases, shares] = [tablesOf(schema)('leases'), tablesOf(schema)('scope_leases')];
  const isRunning = sql`exists (select from ${leases} as running where running.node = ${node} and running.expires_at > clock_timestamp()
    union all select from ${shares} as running where running.node = ${node} and running.expires_at > clock_timestamp())`;
  await orm.execute(sql`delete from ${shares} where node = ${node} and not ${isRunning}`);
  const rows = await rowsOf(
    orm,
    sql`delete from ${leases} where node = ${node}
          and not ${isRunning}
        returning account_id`,
  );
  return rows.length;
}
