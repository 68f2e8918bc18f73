/** Charged requests: cost, formula, refunds and attempts of each. */
import { type SQL, sql } from 'drizzle-orm';
import type { AttemptView, ChargeFilter, ChargeView } from '../../common/domain/admin/ledger.ts';
import type { Page, PageRequest, Span } from '../../common/domain/admin/pages.ts';
import { formulaOf } from '../../common/domain/formula.ts';
import { formatUsd, type Money, money } from '../../common/domain/money.ts';
import type { Usage } from '../../common/domain/usage.ts';
import { firstIdAt } from '../../common/kit/arrival.ts';
import { cursorIn, instantText, pageOf, rowsFor, uuidForm } from '../../common/kit/paging.ts';
import { millisecondsOf } from '../grants/funds.ts';
import { type AttemptNote, decodePrice, type PriceTexts } from '../journal/records.ts';
import { type Runner, rowsOf, tablesOf } from '../ledger/sql.ts';

interface ChargeRow {
  readonly request_id: string;
  readonly account_id: string;
  readonly key_id: string;
  readonly model: string;
  readonly provider: string | null;
  readonly at: string;
  readonly cost: string;
  readonly own_cost: string | null;
  readonly refunded: string;
  readonly classes: Usage;
  readonly estimated: boolean;
  readonly ratio: string;
  readonly price_version: string;
  readonly tier: string | null;
  readonly held: string;
  readonly price: PriceTexts | null;
  readonly reason: string | null;
  readonly attempts: readonly AttemptNote[];
}

/** Newest first. */
export async function chargePage(
  runner: Runner,
  schema: string,
  filter: ChargeFilter,
  page: PageRequest,
): Promise<Page<ChargeView>> {
  const limit = rowsFor(page);
  const after = cursorIn(page, uuidForm);
  const calls = tablesOf(schema)('calls');
  const behind = after === undefined ? sql`` : sql`and id < ${after}::uuid`;
  const chosen = sql`
    select * from ${calls} as calls where ${conditionOf(filter)} ${behind} order by id desc limit ${limit}::int`;
  const rows = await readCharges(runner, schema, chosen);
  return pageOf(rows, page, (row) => row.request_id, viewOf);
}

/** Undefined: no request with this id was charged, or not to this account. */
export async function findCharge(
  runner: Runner,
  schema: string,
  requestId: string,
  accountId: string | undefined,
): Promise<(ChargeView & { readonly attempts: readonly AttemptView[] }) | undefined> {
  if (!uuidForm.test(requestId)) return undefined;
  const owned = accountId === undefined ? sql`` : sql`and account_id = ${accountId}`;
  const calls = tablesOf(schema)('calls');
  const chosen = sql`select * from ${calls} as calls where id = ${requestId}::uuid and settled ${owned}`;
  const [row] = await readCharges(runner, schema, chosen);
  return row && { ...viewOf(row), attempts: row.attempts.map(attemptOf) };
}

/** The filter as a condition on rows of `calls`: those that were charged. */
function conditionOf({ from, until, accountId, keyId, model, provider }: ChargeFilter): SQL {
  const conditions = [sql`settled and ${endedWithin({ from, until })}`];
  if (accountId !== undefined) conditions.push(sql`account_id = ${accountId}`);
  if (keyId !== undefined) conditions.push(sql`key_id = ${keyId}`);
  if (model !== undefined) conditions.push(sql`model = ${model}`);
  if (provider !== undefined) conditions.push(sql`provider = ${provider}`);
  return sql.join(conditions, sql` and `);
}

/** Longer than any call: tasks may take a week. */
const longestCallMs = 8 * 86_400_000;
/** By which the clocks of two processes may differ, and one may be set back. */
const clockSlackMs = 60_000;

/** Calls that ended within the span: the key is in the order of arrival, which bounds the range that is read. */
function endedWithin({ from, until }: Span): SQL {
  const [first, behind] = [firstIdAt(from - longestCallMs), firstIdAt(until + clockSlackMs)];
  return sql`id >= ${first}::uuid and id < ${behind}::uuid
    and created_at >= ${instantText(from)}::timestamptz and created_at < ${instantText(until)}::timestamptz`;
}

function readCharges(runner: Runner, schema: string, chosen: SQL): Promise<ChargeRow[]> {
  const table = tablesOf(schema);
  return rowsOf<ChargeRow>(
    runner,
    sql`select id::text as request_id, account_id, key_id, model, provider,
          ${millisecondsOf(sql`calls.created_at`)} as at, cost::text as cost, own_cost::text as own_cost,
          (select coalesce(sum(amount), 0)::text from ${table('refunds')} as refunds where refunds.request_id = calls.id) as refunded,
          classes, estimated, ratio, price, price_version, tier, held::text as held, reason, attempts
        from (${chosen}) as calls order by calls.id desc`,
  );
}

function viewOf(row: ChargeRow): ChargeView {
  return {
    requestId: row.request_id,
    accountId: row.account_id,
    keyId: row.key_id,
    model: row.model,
    provider: row.provider ?? undefined,
    at: Number.parseInt(row.at, 10),
    cost: amountOf(row.cost),
    ownCost: row.own_cost === null ? undefined : amountOf(row.own_cost),
    refunded: amountOf(row.refunded),
    usage: row.classes,
    estimated: row.estimated,
    ratio: row.ratio,
    priceVersion: row.price_version,
    tier: row.tier ?? undefined,
    formula: sumOf(row),
    held: amountOf(row.held),
  };
}

/** A charge that would have been absurd is limited to the hold: it has no formula. */
function sumOf({ classes, ratio, price, reason, held }: ChargeRow): string {
  if (reason === 'absurd') return `what was set aside: ${formatUsd(amountOf(held))}`;
  return price === null ? '' : formulaOf(classes, decodePrice(price), ratio);
}

function attemptOf({ number, provider, model, credential, protocol, ...rest }: AttemptNote): AttemptView {
  const { result, status, durationMs, error, startedAt, bearer: borneBy, absorbed = '0' } = rest;
  const sentTo = { number, provider, model, credential, protocol };
  return { ...sentTo, result, status, durationMs, error, startedAt, borneBy, absorbed: amountOf(absorbed) };
}

function amountOf(digits: string): Money {
  return money(BigInt(digits));
}
