/** Statements: movements of money, newest first, each with its change and the balance after it. */
import { type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { LedgerQueries, LedgerRow } from '../../common/domain/admin/ledger.ts';
import type { Page, PageRequest } from '../../common/domain/admin/pages.ts';
import { money } from '../../common/domain/money.ts';
import { cursorIn, instantText, pageOf, rowsFor } from '../../common/kit/paging.ts';
import { callsIn } from '../archive/format.ts';
import type { ChargeStore } from '../archive/reader.ts';
import { jsonOf, millisecondsOf, rowsOf, tablesOf } from '../model/sql.ts';
import { chargeBounds, chargeSpans } from './charge-bounds.ts';

/** Movements outside of calls: few, in a table of their own. */
const entryKinds = ['CREDIT', 'DEBIT', 'PURCHASE', 'REFUND', 'PAYOUT', 'EXPIRE'];
const knownKinds: ReadonlySet<string> = new Set([...entryKinds, 'CHARGE']);

const mostPageRows = 500;

/** The row that the page before ended with. */
const cursorForm = /^[1-9]\d{0,17}$/;

/** A row of the statement with the stored values that its formula is made of. */
export interface StatementRow extends LedgerRow {
  readonly detail: Readonly<Record<string, unknown>>;
}

interface Row {
  readonly seq: string;
  readonly account_id: string;
  readonly kind: string;
  readonly request_id: string | null;
  readonly reference: string | null;
  readonly detail: Record<string, unknown>;
  readonly change: string;
  readonly balance_after: string;
  readonly at: string;
}

type StoredRow = Omit<Row, 'detail'> & { readonly detail: Row['detail'] | null };

type Filter = Parameters<LedgerQueries['ledger']>[1];

/** Where the details of charges are: in the database, and in archived files. */
export type LedgerStore = Pick<ChargeStore, 'orm' | 'schema' | 'archive'>;

export async function ledgerPage(
  store: LedgerStore,
  accountId: string | undefined,
  filter: Filter,
  page: PageRequest,
): Promise<Page<StatementRow>> {
  const limit = rowsFor(page);
  if (filter.kinds !== undefined) checkKinds(filter.kinds);
  const conditions = conditionsOf(accountId, filter, cursorIn(page, cursorForm));
  const { orm, schema } = store;
  const table = tablesOf(schema);
  const rows = await rowsOf<StoredRow>(
    orm,
    sql`${chargeBounds(table, accountId, filter)}
        select shown.seq::text as seq, shown.account_id, kind, request_id::text as request_id,
          coalesce(reference, detail->>'reference') as reference,
          case when request_id is null then detail when calls.id is not null then ${detailOfCall} end as detail,
          amount::text as change, shown.balance_after::text as balance_after, ${millisecondsOf(sql`shown.created_at`)} as at
        from (${newestOf(sourcesOf(table, filter), conditions, limit)}) as shown
        left join ${table('calls')} as calls on calls.account_id = shown.account_id and calls.id = shown.request_id
        order by shown.seq desc`,
  );
  return pageOf(await withArchived(store, rows), page, (row) => row.seq, viewOf);
}

/**
 * The newest of several sources that each have an index in the order of the numbers: each gives a page, or the database would sort all
 * rows of the view `movements`.
 */
function newestOf(sources: readonly Source[], conditions: readonly SQL[], limit: number): SQL {
  const newest = sql`order by seq desc limit ${limit}::int`;
  const pages = sources.map(
    ({ rows, among }) => sql`(${rows} where ${sql.join([among, ...conditions], sql` and `)} ${newest})`,
  );
  return sql`select * from (${sql.join(pages, sql` union all `)}) as moved ${newest}`;
}

interface Source {
  readonly rows: SQL;
  readonly among: SQL;
}

/** Where movements of the filter's kinds are. */
function sourcesOf(table: ReturnType<typeof tablesOf>, { kinds, ...span }: Filter): readonly Source[] {
  const charges = sql`select account_id, seq, 'CHARGE' as kind, id as request_id, null as reference, -cost as amount, balance_after,
    null::jsonb as detail, created_at`;
  const entries = sql`select account_id, seq, kind, null::uuid as request_id, reference, amount, balance_after, detail, created_at`;
  const [isOfCalls, isOfEntries] = [kinds?.includes('CHARGE'), kinds?.some((kind) => entryKinds.includes(kind))];
  return [
    ...(isOfCalls === false
      ? []
      : [
          ...chargeSpans(span).flatMap((among) => [
            { rows: sql`${charges} from ${table('calls')}`, among: sql`seq is not null and ${among}` },
            { rows: sql`${charges} from ${table('archived_charges')}`, among },
          ]),
        ]),
    ...(isOfEntries === false ? [] : [{ rows: sql`${entries} from ${table('ledger')}`, among: amongKinds(kinds) }]),
  ];
}

const detailOfCall = sql`jsonb_strip_nulls(jsonb_build_object('model', model, 'usage', classes, 'estimated', estimated, 'reason', reason,
  'price', price, 'ratio', ratio, 'price_version', price_version, 'tier', tier, 'plan', plan))`;

/** Charges of archived calls have their details in files. */
async function withArchived({ orm, schema, archive }: LedgerStore, rows: readonly StoredRow[]): Promise<Row[]> {
  const missing = rows.flatMap(({ detail, request_id: id }) => (detail === null && id !== null ? [id] : []));
  const lines = missing.length === 0 ? [] : await archive.linesOf(orm, schema, missing);
  const found =
    lines.length === 0
      ? []
      : await rowsOf<{ id: string; detail: Row['detail'] }>(
          orm,
          sql`select id::text as id, ${detailOfCall} as detail from ${callsIn(tablesOf(schema), lines)} as calls`,
        );
  const details = new Map(found.map(({ id, detail }) => [id, detail]));
  return rows.map((row) => ({ ...row, detail: row.detail ?? details.get(row.request_id!) ?? {} }));
}

/** The account's last movements, newest first. */
export async function statementOf(store: LedgerStore, accountId: string, most: number): Promise<StatementRow[]> {
  const found: StatementRow[] = [];
  for (let after: string | undefined; ; ) {
    const limit = Math.min(most - found.length, mostPageRows);
    const { rows, next } = await ledgerPage(store, accountId, {}, { limit, after });
    found.push(...rows);
    if (next === undefined || found.length >= most) return found;
    after = next;
  }
}

function conditionsOf(accountId: string | undefined, { from, until }: Filter, after: string | undefined): SQL[] {
  const conditions: SQL[] = [];
  if (accountId !== undefined) conditions.push(sql`account_id = ${accountId}`);
  if (from !== undefined) conditions.push(sql`created_at >= ${instantText(from)}::timestamptz`);
  if (until !== undefined) conditions.push(sql`created_at < ${instantText(until)}::timestamptz`);
  if (after !== undefined) conditions.push(sql`seq < ${after}::bigint`);
  return conditions;
}

/** The entries that a page may show. */
function amongKinds(kinds: readonly string[] | undefined): SQL {
  if (kinds === undefined) return sql`amount <> 0`;
  return sql`amount <> 0 and kind in (select value from json_array_elements_text(${jsonOf(kinds)}))`;
}

function checkKinds(kinds: readonly string[]): void {
  if (kinds.length === 0 || kinds.some((kind) => !knownKinds.has(kind))) {
    throw new GatewayError('invalid_request', `"kinds" are among ${[...knownKinds].join(', ')}.`, { field: 'kinds' });
  }
}

function viewOf(row: Row): StatementRow {
  const reason = row.detail['reason'];
  return {
    seq: row.seq,
    accountId: row.account_id,
    kind: row.kind,
    requestId: row.request_id ?? undefined,
    reference: row.reference ?? undefined,
    reason: typeof reason === 'string' ? reason : undefined,
    change: money(BigInt(row.change)),
    balanceAfter: money(BigInt(row.balance_after)),
    at: Number.parseInt(row.at, 10),
    detail: row.detail,
  };
}
