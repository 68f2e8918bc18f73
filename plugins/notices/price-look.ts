/** What has changed since the last look in prices of models, and in the ratios of plans and accounts. */
import { sql } from 'drizzle-orm';
import type { Host } from '../../core/contract/contract.ts';
import { accountEnds } from '../common/domain/admin/notices.ts';
import { priceQueries } from '../common/domain/admin/prices.ts';
import type { Orm } from '../common/domain/database.ts';
import { formatRatio, one, parseRatio } from '../common/domain/money.ts';
import { plans } from '../common/domain/plans.ts';
import { multipliers, planRatio } from '../common/domain/price-ratio.ts';
import { jsonOf, type Runner } from '../common/kit/sql.ts';
import { type Announced, type Announcements, priceObservation } from './announcements.ts';
import { changeOf, type SeenPrice, seenPrice } from './prices.ts';
import type { NoticeRows } from './rows.ts';
import type { Sender } from './sender.ts';

const accountsAtOnce = 500;

export interface PriceParts {
  readonly host: Host;
  readonly orm: Pick<Orm, 'transaction'>;
  readonly rows: NoticeRows;
  readonly sender: Sender;
  readonly announcements: Announcements;
}

export async function lookAtPrices(parts: PriceParts): Promise<void> {
  await parts.orm.transaction(async (tx) => {
    const changes = [...(await changedModels(parts, tx)), ...(await changedPlans(parts, tx))];
    await parts.announcements.add(changes, parts.host.clock.now(), tx);
  });
  await lookAtAccountRatios(parts);
  await parts.rows.query(sql`update ${parts.rows.table('look')} set has_ratios = true where not has_ratios`);
}

async function changedModels({ host, rows }: PriceParts, tx: Runner): Promise<Announced[]> {
  const [prices, now] = [host.find(priceQueries), host.clock.now()];
  if (prices === undefined) return [];
  const table = rows.table('prices');
  const stored = await rows.query<{ model: string; price: string }>(
    sql`select model, price::text as price from ${table}`,
    tx,
  );
  const before = new Map(stored.map(({ model, price }) => [model, JSON.parse(price) as SeenPrice]));
  const changes: Announced[] = [];
  for (const model of prices.list()) {
    const [known, price] = [before.get(model.id), seenPrice(model, now)];
    if (price === undefined || JSON.stringify(known) === JSON.stringify(price)) continue;
    await rows.query(
      sql`insert into ${table} (model, price) values (${model.id}, ${jsonOf(price)})
        on conflict (model) do update set price = excluded.price`,
      tx,
    );
    const change = known && changeOf(model.id, known, price);
    if (change === undefined) continue;
    const { digest: period, from, ...fields } = change;
    changes.push({ model: model.id, period, fields: { ...fields, ...(from === undefined ? {} : { from }) } });
  }
  return changes;
}

async function changedPlans({ host, rows }: PriceParts, tx: Runner): Promise<Announced[]> {
  const offers = host.find(plans);
  const stored = await ratiosOf(rows, sql`account_id = ''`, 'plan', tx);
  const sources = { multipliers: host.find(multipliers), plans: offers };
  const changes: Announced[] = [];
  for (const { name } of offers?.list() ?? []) {
    const [before, after] = [stored.get(name), formatRatio(planRatio(sources, name) ?? one)];
    if (before === after) continue;
    await store(rows, { accountId: '', plan: name, ratio: after }, tx);
    if (before !== undefined)
      changes.push({ plan: name, period: periodOf(before, after), fields: { plan: name, before, after } });
  }
  return changes;
}

/** Accounts that have one of their own now, or had one at the last look: in the order of their ids, page by page. */
async function lookAtAccountRatios(parts: PriceParts): Promise<void> {
  const { host, rows } = parts;
  const ends = host.find(accountEnds);
  const [state] = await rows.query<{ known: boolean }>(sql`select has_ratios as known from ${rows.table('look')}`);
  for (let after = ''; ends !== undefined; ) {
    const page = await ends.standing(after, accountsAtOnce, 'own ratio');
    const last = page.length < accountsAtOnce ? undefined : page.at(-1)!.accountId;
    const within = last === undefined ? sql`` : sql`and account_id <= ${last}`;
    const stored = await ratiosOf(rows, sql`account_id > ${after} ${within}`, 'account_id');
    const now = new Map(page.map(({ accountId, multiplier }) => [accountId, formatRatio(parseRatio(multiplier!))]));
    for (const accountId of new Set([...now.keys(), ...stored.keys()])) {
      const [before, ratio] = [stored.get(accountId) ?? '1', now.get(accountId) ?? '1'];
      if (before !== ratio)
        await changeRatio(parts, accountId, { before, after: ratio, isKnown: state?.known ?? false });
    }
    if (last === undefined) return;
    after = last;
  }
}

async function changeRatio(
  { rows, sender }: PriceParts,
  accountId: string,
  { before, after, isKnown }: { readonly before: string; readonly after: string; readonly isKnown: boolean },
): Promise<void> {
  const seen = priceObservation('', { period: periodOf(before, after), fields: { before, after } });
  if (isKnown) await sender.observe(accountId, [seen]);
  await store(rows, { accountId, plan: '', ratio: after });
  await rows.query(sql`delete from ${rows.table('ratios')} where account_id = ${accountId} and ratio = '1'`);
}

/** The next change is another one, whichever it is. */
const periodOf = (before: string, after: string) => `${before} ${after}`;

async function ratiosOf(rows: NoticeRows, where: ReturnType<typeof sql>, key: 'plan' | 'account_id', runner?: Runner) {
  const found = await rows.query<{ key: string; ratio: string }>(
    sql`select ${sql.identifier(key)} as key, ratio from ${rows.table('ratios')} where ${where}`,
    runner,
  );
  return new Map(found.map((row) => [row.key, row.ratio] as const));
}

async function store(
  rows: NoticeRows,
  { accountId, plan, ratio }: { readonly accountId: string; readonly plan: string; readonly ratio: string },
  runner?: Runner,
): Promise<void> {
  await rows.query(
    sql`insert into ${rows.table('ratios')} (account_id, plan, ratio) values (${accountId}, ${plan}, ${ratio})
      on conflict (account_id, plan) do update set ratio = excluded.ratio`,
    runner,
  );
}
