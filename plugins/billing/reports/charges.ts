/** Charged requests: what each has cost, by which sum, what of it was given back, and which attempts it took. */
import { type SQL, sql } from 'drizzle-orm';
import type { AttemptView, ChargeFilter, ChargeView, Page, PageAsk } from '../../../core/desk.ts';
import { formulaOf } from '../../../core/formula.ts';
import { formatUsd, type Money, money } from '../../../core/money.ts';
import { cursorIn, instantText, pageOf, rowsFor, uuidForm } from '../../../core/paging.ts';
import type { Usage } from '../../../core/usage.ts';
import type { Attempt } from '../../../core/vocabulary.ts';
import { millisecondsOf } from '../funds.ts';
import { decodePrice, type PriceTexts } from '../records.ts';
import { type Runner, rowsOf, tablesOf } from '../sql.ts';

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
  /** What its ledger row says of the sum. */
  readonly detail: { readonly price?: PriceTexts; readonly reason?: string } | null;
}

/** Newest first. */
export async function chargePage(
  runner: Runner,
  schema: string,
  filter: ChargeFilter,
  page: PageAsk,
): Promise<Page<ChargeView>> {
  const limit = rowsFor(page);
  const after = cursorIn(page, uuidForm);
  const usage = tablesOf(schema)('usage');
  const behind =
    after === undefined
      ? sql``
      : sql`and (created_at, request_id) < (select created_at, request_id from ${usage} where request_id = ${after}::uuid)`;
  const chosen = sql`
    select * from ${usage} as usage where ${conditionOf(filter)} ${behind}
    order by created_at desc, request_id desc limit ${limit}::int`;
  const rows = await readCharges(runner, schema, chosen);
  return pageOf(rows, page, (row) => row.request_id, viewOf);
}

/** undefined: no request of this id was charged, or not to this account. */
export async function findCharge(
  runner: Runner,
  schema: string,
  requestId: string,
  accountId: string | undefined,
): Promise<(ChargeView & { readonly attempts: readonly AttemptView[] }) | undefined> {
  if (!uuidForm.test(requestId)) return undefined;
  const owned = accountId === undefined ? sql`` : sql`and account_id = ${accountId}`;
  const usage = tablesOf(schema)('usage');
  const chosen = sql`select * from ${usage} as usage where request_id = ${requestId}::uuid ${owned}`;
  const [row] = await readCharges(runner, schema, chosen);
  return row && { ...viewOf(row), attempts: await readAttempts(runner, schema, requestId) };
}

/** What a filter says of a row of `usage`. */
export function conditionOf({ from, until, accountId, keyId, model }: ChargeFilter): SQL {
  const conditions = [
    sql`created_at >= ${instantText(from)}::timestamptz and created_at < ${instantText(until)}::timestamptz`,
  ];
  if (accountId !== undefined) conditions.push(sql`account_id = ${accountId}`);
  if (keyId !== undefined) conditions.push(sql`key_id = ${keyId}`);
  if (model !== undefined) conditions.push(sql`model = ${model}`);
  return sql.join(conditions, sql` and `);
}

function readCharges(runner: Runner, schema: string, chosen: SQL): Promise<ChargeRow[]> {
  const table = tablesOf(schema);
  return rowsOf<ChargeRow>(
    runner,
    sql`select request_id::text as request_id, account_id, key_id, model, provider,
          ${millisecondsOf(sql`usage.created_at`)} as at, cost::text as cost, own_cost::text as own_cost,
          (select coalesce(sum(amount), 0)::text from ${table('refunds')} as refunds
            where refunds.request_id = usage.request_id) as refunded,
          classes, estimated, ratio, price_version, tier, held::text as held,
          (select detail from ${table('ledger')} as ledger
            where ledger.request_id = usage.request_id and kind = 'SETTLE' and part = 0) as detail
        from (${chosen}) as usage order by usage.created_at desc, usage.request_id desc`,
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

/** A charge that would have been absurd is what was held: no sum comes to that. */
function sumOf({ classes, ratio, detail, held }: ChargeRow): string {
  if (detail?.reason === 'absurd') return `what was set aside: ${formatUsd(amountOf(held))}`;
  return detail?.price === undefined ? '' : formulaOf(classes, decodePrice(detail.price), ratio);
}

interface AttemptRow {
  readonly number: number;
  readonly provider: string;
  readonly model: string;
  readonly credential: string;
  readonly protocol: string;
  readonly result: Attempt['result'];
  readonly status: number | null;
  readonly duration_ms: string | null;
  readonly error: string | null;
  readonly started_at: string;
  readonly borne_by: 'client' | 'operator' | null;
  readonly absorbed: string;
}

async function readAttempts(runner: Runner, schema: string, requestId: string): Promise<AttemptView[]> {
  const rows = await rowsOf<AttemptRow>(
    runner,
    sql`select number::int as number, provider, model, credential, protocol, result, status::int as status,
          duration_ms::text as duration_ms, error, ${millisecondsOf(sql`started_at`)} as started_at, borne_by,
          absorbed::text as absorbed
        from ${tablesOf(schema)('attempts')} as attempts where request_id = ${requestId}::uuid order by attempts.number`,
  );
  return rows.map(({ started_at: startedAt, duration_ms: durationMs, borne_by: borneBy, ...row }) => ({
    ...row,
    startedAt: Number.parseInt(startedAt, 10),
    status: row.status ?? undefined,
    durationMs: durationMs === null ? undefined : Number.parseInt(durationMs, 10),
    error: row.error ?? undefined,
    borneBy: borneBy ?? undefined,
    absorbed: amountOf(row.absorbed),
  }));
}

function amountOf(digits: string): Money {
  return money(BigInt(digits));
}
