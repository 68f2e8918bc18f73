/** What calls with a tag have cost, for tags that have a budget: each of them, however many tags an account has in an hour. */
import { sql } from 'drizzle-orm';
import { money } from '../../common/domain/money.ts';
import { quarterMs } from '../../common/rollups/table.ts';
import type { EndRecord } from '../model/records.ts';
import { jsonOf, type Runner, rowsOf, tablesOf, time } from '../model/sql.ts';

export interface TaggedCall {
  readonly end: EndRecord;
  readonly tags: readonly string[];
}

interface Tag {
  readonly accountId: string;
  readonly tag: string;
}

/** Within the locks of the accounts, in the transaction of the calls. */
export async function addTagSpending(
  transaction: Runner,
  schema: string,
  tagged: readonly TaggedCall[],
): Promise<void> {
  const table = tablesOf(schema);
  const paid = tagged.flatMap(({ end, tags }) =>
    end.kind === 'SETTLE' && end.cost !== '0'
      ? tags.map((tag) => ({ account_id: end.account, tag, at: end.at, cost: BigInt(end.cost) }))
      : [],
  );
  if (paid.length === 0) return;
  const pairs = [...new Map(paid.map((one) => [`${one.account_id} ${one.tag}`, one])).values()];
  const wanted = jsonOf(pairs.map(({ account_id, tag }) => ({ account_id, tag })));
  const found = await rowsOf<{ account_id: string; tag: string }>(
    transaction,
    sql`select known.account_id, known.tag from json_to_recordset(${wanted}) as given (account_id text, tag text)
        join ${table('budget_tags')} as known on known.account_id = given.account_id and known.tag = given.tag`,
  );
  if (found.length === 0) return;
  const known = new Set(found.map(({ account_id, tag }) => `${account_id} ${tag}`));
  const sums = new Map<string, { account_id: string; tag: string; at: string; cost: bigint }>();
  for (const { account_id, tag, at, cost } of paid) {
    if (!known.has(`${account_id} ${tag}`)) continue;
    const quarter = time(Math.floor(at / quarterMs) * quarterMs);
    const sum = sums.get(`${account_id} ${tag} ${quarter}`) ?? { account_id, tag, at: quarter, cost: 0n };
    sum.cost += cost;
    sums.set(`${account_id} ${tag} ${quarter}`, sum);
  }
  const rows = jsonOf([...sums.values()].map((row) => ({ ...row, cost: row.cost.toString() })));
  await transaction.execute(
    sql`insert into ${table('tag_spending')} as kept (account_id, tag, at, cost)
        select account_id, tag, at, cost from json_to_recordset(${rows}) as given (account_id text, tag text, at timestamptz, cost bigint)
        order by account_id, tag, at
        on conflict (account_id, tag, at) do update set cost = kept.cost + excluded.cost`,
  );
}

/**
 * From here on all calls with the tag count, and earlier ones by their sums by tag. Within the account's lock: no calls of it are written
 * meanwhile.
 */
export async function trackTag(transaction: Runner, schema: string, { accountId, tag }: Tag): Promise<void> {
  const table = tablesOf(schema);
  const made = await rowsOf(
    transaction,
    sql`insert into ${table('budget_tags')} (account_id, tag) values (${accountId}, ${tag}) on conflict do nothing returning tag`,
  );
  if (made.length === 0) return;
  await transaction.execute(
    sql`insert into ${table('tag_spending')} (account_id, tag, at, cost)
        select account_id, tag, at, sum(cost) from ${table('tag_sums')}
        where account_id = ${accountId} and tag = ${tag} and cost > 0 group by account_id, tag, at`,
  );
}

export async function isTracked(runner: Runner, schema: string, { accountId, tag }: Tag): Promise<boolean> {
  const found = await rowsOf(
    runner,
    sql`select tag from ${tablesOf(schema)('budget_tags')} where account_id = ${accountId} and tag = ${tag}`,
  );
  return found.length > 0;
}

/** What calls with the tag have cost from then on; `from` begins a quarter of an hour. */
export async function spentByTag(runner: Runner, schema: string, { accountId, tag }: Tag, from: number) {
  const source = (await isTracked(runner, schema, { accountId, tag })) ? 'tag_spending' : 'tag_sums';
  const [row] = await rowsOf<{ cost: string }>(
    runner,
    sql`select coalesce(sum(cost), 0)::text as cost from ${tablesOf(schema)(source)}
        where account_id = ${accountId} and tag = ${tag} and at >= ${time(from)}::timestamptz`,
  );
  return money(BigInt(row!.cost));
}
