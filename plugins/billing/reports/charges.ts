/** Charged requests: cost, formula, refunds and attempts of each. */
import { type SQL, sql } from 'drizzle-orm';
import type { AttemptView, ChargeView } from '../../common/domain/admin/ledger.ts';
import { formulaOf } from '../../common/domain/formula.ts';
import { formatUsd, type Money, money } from '../../common/domain/money.ts';
import type { Usage } from '../../common/domain/usage.ts';
import { uuidForm } from '../../common/kit/paging.ts';
import { callsIn, mayBeArchived } from '../archive/format.ts';
import type { ChargeStore } from '../archive/reader.ts';
import { type AttemptNote, decodePrice, type PriceTexts } from '../model/records.ts';
import { jsonOf, millisecondsOf, rowsOf, tablesOf } from '../model/sql.ts';
import { servedPrefix } from '../reservations/outcome.ts';

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
  readonly tags: string | null;
  readonly person: string | null;
  readonly project: string | null;
}

const noAttempts = sql`'[]'::json`;

/** Newest first; one look-up of the primary key for each request. */
export async function chargesOf(
  store: ChargeStore,
  requestIds: readonly string[],
  accountId: string | undefined,
): Promise<ChargeView[]> {
  if (requestIds.length === 0) return [];
  const wanted = sql`array(select value::uuid from json_array_elements_text(${jsonOf(requestIds)}))`;
  const rows = await readCharges(
    store,
    (calls) => sql`select * from ${calls} as calls where id = any (${wanted}) and settled ${ownedBy(accountId)}`,
    noAttempts,
  );
  const found = new Set(rows.map((row) => row.request_id));
  const missing = requestIds.filter((id) => !found.has(id) && mayBeArchived(id, store.now()));
  if (missing.length > 0) {
    rows.push(...(await archivedCharges(store, missing, accountId, noAttempts)));
    rows.sort((one, other) => (one.request_id < other.request_id ? 1 : -1));
  }
  return rows.map(viewOf);
}

async function archivedCharges(
  store: ChargeStore,
  requestIds: readonly string[],
  accountId: string | undefined,
  attempts: SQL,
): Promise<ChargeRow[]> {
  const { orm, schema, archive } = store;
  const lines = await archive.linesOf(orm, schema, requestIds);
  if (lines.length === 0) return [];
  const archived = callsIn(tablesOf(schema), lines);
  return readCharges(store, () => sql`select * from ${archived} as calls where true ${ownedBy(accountId)}`, attempts);
}

const ownedBy = (accountId: string | undefined): SQL =>
  accountId === undefined ? sql`` : sql`and account_id = ${accountId}`;

/** Undefined: no request with this id was charged, or not to this account. */
export async function findCharge(
  store: ChargeStore,
  requestId: string,
  accountId: string | undefined,
): Promise<(ChargeView & { readonly attempts: readonly AttemptView[] }) | undefined> {
  if (!uuidForm.test(requestId)) return undefined;
  const attempts = sql`${tablesOf(store.schema)('attempts_of')}(attempts, provider, target_model)`;
  const [stored] = await readCharges(
    store,
    (calls) => sql`select * from ${calls} as calls where id = ${requestId}::uuid and settled ${ownedBy(accountId)}`,
    attempts,
  );
  const isOld = stored === undefined && mayBeArchived(requestId, store.now());
  const [row] = isOld ? await archivedCharges(store, [requestId.toLowerCase()], accountId, attempts) : [stored];
  return row && { ...viewOf(row), attempts: row.attempts.map(attemptOf) };
}

function readCharges(
  { orm, schema }: Pick<ChargeStore, 'orm' | 'schema'>,
  chosen: (calls: SQL) => SQL,
  attempts: SQL,
): Promise<ChargeRow[]> {
  const table = tablesOf(schema);
  return rowsOf<ChargeRow>(
    orm,
    sql`select id::text as request_id, account_id, key_id, model, provider, person, project,
          ${millisecondsOf(sql`calls.created_at`)} as at, cost::text as cost, own_cost::text as own_cost,
          (select coalesce(sum(amount), 0)::text from ${table('refunds')} as refunds
            where refunds.account_id = calls.account_id and refunds.request_id = calls.id) as refunded,
          classes, estimated, ratio, price, price_version, tier, held::text as held, reason, ${attempts} as attempts,
          (select string_agg(tag, ',' order by tag) from ${table('call_tags')} as tags where tags.id = calls.id and tags.account_id = calls.account_id) as tags
        from (${chosen(table('calls'))}) as calls order by calls.id desc`,
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
    servedBy: row.reason?.startsWith(servedPrefix) ? row.reason.slice(servedPrefix.length) : undefined,
    formula: sumOf(row),
    held: amountOf(row.held),
    tags: row.tags ?? undefined,
    person: row.person ?? undefined,
    project: row.project ?? undefined,
  };
}

/** A charge that would have been absurd is limited to the hold: it has no formula. */
function sumOf({ classes, ratio, price, reason, held }: ChargeRow): string {
  if (reason === 'absurd') return `the hold: ${formatUsd(amountOf(held))}`;
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
