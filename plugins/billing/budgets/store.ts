/** Shares of scopes in SQL: what is charged is read and divided in one transaction under the account's lock. */
import { type SQL, sql } from 'drizzle-orm';
import type { Orm } from '../../common/domain/database.ts';
import { money } from '../../common/domain/money.ts';
import { type Condition, readSums } from '../../common/rollups/read.ts';
import type { Node } from '../leases/store.ts';
import { FencedError, lockBalances } from '../ledger/batch.ts';
import { callSums } from '../ledger/call-sums.ts';
import { isTracked, spentByTag, trackTag } from '../ledger/tag-spending.ts';
import { jsonOf, type Runner, rowsOf, tablesOf } from '../model/sql.ts';
import { countsModel, keyOf, type Spending } from './scope.ts';
import {
  type BudgetShares,
  cutShare,
  type ScopeState,
  type ShareAnswer,
  type ShareRequest,
  type ShareRound,
} from './shares.ts';

const endOfTime = Date.UTC(9999, 0, 1);
const nothing = { own: 0n, others: 0n, elsewhere: 0n };

export function sqlShares(orm: Orm, schema: string): BudgetShares {
  const [shares, cursors] = [tablesOf(schema)('scope_leases'), tablesOf(schema)('journal_cursor')];
  const owned = ({ journal, owner }: Node) =>
    sql`exists (select from ${cursors} where journal = ${journal} and owner = ${owner})`;
  return {
    take: async (node, round) => {
      const answers = new Map<string, ShareAnswer>();
      const accounts = Map.groupBy(round.requests, ({ accountId }) => accountId);
      for (const [accountId, requests] of accounts)
        for (const [key, answer] of await takeOf(orm, schema, node, accountId, { ...round, requests }))
          answers.set(key, answer);
      return answers;
    },
    read: async (requests) => {
      const answers = await Promise.all(
        requests.map(async (request) => {
          await trackFirst(orm, schema, request);
          const { spent, ordered } = await chargedIn(orm, schema, request);
          const left = money((request.counted?.amount ?? 0n) - spent - ordered);
          return [
            keyOf(request.accountId, request.scope),
            { amount: left, rest: left, elsewhere: money(0n), ordered: money(ordered) },
          ] as const;
        }),
      );
      return new Map(answers);
    },
    returnAll: async (node) => {
      await orm.execute(sql`delete from ${shares} where node = ${node.journal} and ${owned(node)}`);
    },
    reclaim: async (node) => {
      await orm.execute(
        sql`delete from ${shares} where node = ${node.journal} and epoch <> ${node.owner} and ${owned(node)}`,
      );
    },
  };
}

/** The scopes of one account. */
function takeOf(
  orm: Orm,
  schema: string,
  node: Node,
  accountId: string,
  round: ShareRound,
): Promise<Map<string, ShareAnswer>> {
  return orm.transaction(async (transaction) => {
    await lockBalances(transaction, schema, [accountId]);
    // Each statement from here on sees what was committed before the lock was had.
    const states = await statesOf(transaction, schema, node, accountId, round);
    const answers = new Map<string, ShareAnswer>();
    const rows: object[] = [];
    for (const request of round.requests) {
      const tag = tagOf(request);
      if (tag !== undefined) await trackTag(transaction, schema, tag);
      const charged = await chargedIn(transaction, schema, request);
      const state = { ...nothing, ...states.byScope.get(request.scope), ...charged, nodes: states.nodes };
      const answer = cutShare(state, request);
      answers.set(keyOf(accountId, request.scope), answer);
      rows.push({
        scope: request.scope,
        amount: answer.amount.toString(),
        open: request.open.toString(),
        used: request.counted !== undefined,
      });
    }
    await write(transaction, schema, node, accountId, { ...round, rows });
    return answers;
  });
}

interface StateRow {
  readonly scope: string;
  readonly own: string;
  readonly others: string;
  readonly elsewhere: string;
  readonly asked: string;
}

interface States {
  readonly nodes: number;
  readonly byScope: ReadonlyMap<string, Pick<ScopeState, 'own' | 'others' | 'elsewhere'>>;
}

async function statesOf(
  transaction: Runner,
  schema: string,
  { journal, owner }: Node,
  accountId: string,
  { number, requests }: ShareRound,
): Promise<States> {
  const [shares, cursors] = [tablesOf(schema)('scope_leases'), tablesOf(schema)('journal_cursor')];
  const lives = sql`cursors.updated_at > clock_timestamp() - interval '15 seconds'`;
  const [fleet] = await rowsOf<{ owned: boolean; nodes: number }>(
    transaction,
    sql`select exists (select from ${cursors} where journal = ${journal} and owner = ${owner}) as owned,
          greatest(count(*) filter (where cursors.journal = ${journal} or ${lives}), 1)::int as nodes from ${cursors} as cursors`,
  );
  if (!fleet!.owned) throw new FencedError(`journal ${journal} now belongs to another process`);
  const asks = requests.map(({ scope, waitedMs }) => ({ scope, waited: Math.ceil(waitedMs) }));
  const isOthers = sql`shares.node <> ${journal} and shares.amount > 0`;
  // What another process said before the calls here began to wait may not be so any more: it is asked first.
  const mayReturn = sql`case when shares.updated_at < clock_timestamp() - asks.waited * interval '1 millisecond'
      then shares.amount else greatest(shares.amount - shares.open, 0) end`;
  const found = await rowsOf<StateRow>(
    transaction,
    sql`select asks.scope, coalesce(sum(shares.amount) filter (where shares.node = ${journal}), 0)::text as own,
          coalesce(sum(shares.amount) filter (where ${isOthers}), 0)::text as others,
          coalesce(sum(${mayReturn}) filter (where ${isOthers} and ${lives}), 0)::text as elsewhere,
          coalesce(max(shares.asked) filter (where shares.node = ${journal} and shares.epoch = ${owner}), 0)::text as asked
        from json_to_recordset(${jsonOf(asks)}) as asks (scope text, waited bigint)
        join ${shares} as shares on shares.account_id = ${accountId} and shares.scope = asks.scope
        left join ${cursors} as cursors on cursors.journal = shares.node group by asks.scope`,
  );
  if (found.some(({ asked }) => BigInt(asked) >= BigInt(number)))
    throw new Error('a later request for shares was seen');
  const read = ({ scope, own, others, elsewhere }: StateRow) =>
    [scope, { own: BigInt(own), others: BigInt(others), elsewhere: BigInt(elsewhere) }] as const;
  return { nodes: fleet!.nodes, byScope: new Map(found.map(read)) };
}

/** A process that needs a scope no longer leaves no row. */
async function write(
  transaction: Runner,
  schema: string,
  { journal, owner }: Node,
  accountId: string,
  { number, lastsMs, rows }: Omit<ShareRound, 'requests'> & { readonly rows: readonly object[] },
): Promise<void> {
  const shares = tablesOf(schema)('scope_leases');
  const given = sql`json_to_recordset(${jsonOf(rows)}) as given (scope text, amount bigint, open bigint, used boolean)`;
  await transaction.execute(
    sql`delete from ${shares} as shares using ${given}
        where shares.account_id = ${accountId} and shares.node = ${journal} and shares.scope = given.scope and not given.used`,
  );
  await transaction.execute(
    sql`insert into ${shares} as shares (account_id, scope, node, epoch, amount, open, asked, updated_at, expires_at)
        select ${accountId}, scope, ${journal}, ${owner}, amount, open, ${number}::bigint, clock_timestamp(),
          clock_timestamp() + ${Math.floor(lastsMs)}::bigint * interval '1 millisecond' from ${given} where given.used
        on conflict (account_id, scope, node) do update set epoch = excluded.epoch, amount = excluded.amount, open = excluded.open,
          asked = excluded.asked, updated_at = excluded.updated_at, expires_at = excluded.expires_at`,
  );
}

function tagOf({ accountId, counted }: ShareRequest) {
  const tag = counted?.spending.tag;
  return tag === undefined ? undefined : { accountId, tag };
}

/** Where no share is taken under the account's lock. */
async function trackFirst(orm: Orm, schema: string, request: ShareRequest): Promise<void> {
  const tag = tagOf(request);
  if (tag === undefined || (await isTracked(orm, schema, tag))) return;
  await orm.transaction(async (transaction) => {
    await lockBalances(transaction, schema, [tag.accountId]);
    await trackTag(transaction, schema, tag);
  });
}

async function chargedIn(
  runner: Runner,
  schema: string,
  { counted }: ShareRequest,
): Promise<Pick<ScopeState, 'spent' | 'ordered'>> {
  return counted === undefined ? { spent: 0n, ordered: 0n } : spentOf(runner, schema, counted.spending, counted.from);
}

export async function spentOf(
  runner: Runner,
  schema: string,
  spending: Spending,
  from: number,
): Promise<Pick<ScopeState, 'spent' | 'ordered'>> {
  const { accountId, tag } = spending;
  const spent =
    tag === undefined
      ? await spentBySums(runner, schema, spending, from)
      : await spentByTag(runner, schema, { accountId, tag }, from);
  const orders = await rowsOf<{ model: string; held: string }>(
    runner,
    sql`select terms->>'model' as model, sum(held)::text as held from ${tablesOf(schema)('deposits')}
        where ${ordersOf(spending)} group by 1`,
  );
  const ordered = orders.filter(({ model }) => countsModel(spending, model));
  return {
    spent,
    ordered: ordered.reduce((sum, { held }) => sum + BigInt(held), 0n),
  };
}

async function spentBySums(runner: Runner, schema: string, spending: Spending, from: number): Promise<bigint> {
  const models = await modelsOf(runner, schema, spending);
  if (models?.length === 0) return 0n;
  const [charged] = await readSums(runner, schema, callSums, {
    bounds: [from, endOfTime],
    conditions: conditionsOf(spending, models),
    measures: [{ name: 'cost', of: 'cost', ofKept: sql`sum(cost)`, ofRows: sql`sum(cost)` }],
  });
  return BigInt(charged?.['cost'] ?? '0');
}

/** A key counts wherever it is. */
function conditionsOf(
  { accountId, key, person, project }: Spending,
  models: readonly string[] | undefined,
): Condition[] {
  const all = { account_id: key === undefined ? accountId : undefined, key_id: key, person, project, model: models };
  return Object.entries(all).flatMap(([name, value]): Condition[] => (value === undefined ? [] : [[name, value]]));
}

function ordersOf({ accountId, key, person, project, tag }: Spending): SQL {
  const all = [
    key === undefined ? sql`account_id = ${accountId}` : sql`terms->>'key' = ${key}`,
    person === undefined ? sql`true` : sql`terms->'attribution'->>'person' = ${person}`,
    project === undefined ? sql`true` : sql`terms->'attribution'->>'project' = ${project}`,
    tag === undefined ? sql`true` : sql`${tag} = any(string_to_array(terms->>'tags', ','))`,
  ];
  return sql.join(all, sql` and `);
}

/** Models of the account's calls that count; undefined: all do. */
async function modelsOf(runner: Runner, schema: string, spending: Spending): Promise<string[] | undefined> {
  if (spending.models === undefined) return undefined;
  const called = await rowsOf<{ model: string }>(
    runner,
    sql`select distinct model from ${tablesOf(schema)('call_sums_groups')} where account_id = ${spending.accountId} and model <> ''`,
  );
  return called.map(({ model }) => model).filter((model) => countsModel(spending, model));
}

/** Those of an account that were charged most for calls from `from` on, by person or project, the first ones first. */
export async function mostSpent(
  runner: Runner,
  schema: string,
  { spending, from, by }: { readonly spending: Spending; readonly from: number; readonly by: 'person' | 'project' },
  limit: number,
): Promise<readonly (readonly [subject: string, spent: bigint])[]> {
  const models = await modelsOf(runner, schema, spending);
  if (models?.length === 0) return [];
  const rows = await readSums(runner, schema, callSums, {
    bounds: [from, endOfTime],
    conditions: [...conditionsOf(spending, models), [by, null]],
    by,
    measures: [{ name: 'cost', of: 'cost', ofKept: sql`sum(cost)`, ofRows: sql`sum(cost)` }],
    ending: sql`having sum(cost) > 0 order by sum(cost) desc, "group" limit ${limit}::int`,
  });
  return rows.map(({ group, cost }) => [group, BigInt(cost ?? '0')] as const);
}
