/** The tables of statements, and the movements that each statement is made of. */
import { type SQL, sql } from 'drizzle-orm';
import type { Orm } from '../../common/domain/database.ts';
import { inMs, instant } from '../../common/kit/sql.ts';
import { callsIn } from '../archive/format.ts';
import type { ArchiveReader } from '../archive/reader.ts';
import { monthAt } from '../grants/months.ts';
import { rowsOf, tablesOf } from '../model/sql.ts';
import type { Head, Row, Summary } from './format.ts';

const pageRows = 1_000;

export interface Place {
  readonly orm: Orm;
  readonly schema: string;
  readonly archive: ArchiveReader;
}

/** A statement as it is kept. Instants in wall-clock milliseconds. */
export interface Sealed {
  readonly accountId: string;
  readonly number: number;
  readonly month: string;
  readonly zone: string;
  readonly from: number;
  readonly until: number;
  readonly seenSeq: string;
  readonly openSeq: string;
  readonly opening: string;
  readonly closing: string;
  readonly digest: string;
  readonly previous: string | null;
}

/** One as it is read again. */
export interface Kept extends Sealed {
  readonly sealedAt: number;
}

/** Which movements: before `until`, up to this number, without those that an earlier statement has. */
export interface Bounds extends Pick<Sealed, 'accountId' | 'month' | 'zone' | 'from' | 'until' | 'seenSeq'> {
  /** Undefined: it is the first one, which has what lies before it in its opening balance. */
  readonly before: Sealed | undefined;
}

export function headOf(bounds: Bounds, opening: string): Head {
  const { accountId, month, zone, from, until, before } = bounds;
  return {
    format: 'model-gateway statement 1',
    account: accountId,
    number: (before?.number ?? 0) + 1,
    month,
    zone,
    from: new Date(from).toISOString(),
    until: new Date(until).toISOString(),
    previous: before?.digest ?? null,
    opening,
  };
}

const columns = sql`account_id as "accountId", number, month, zone, (extract(epoch from from_at) * 1000)::float8 as "from",
  (extract(epoch from until_at) * 1000)::float8 as until, seen_seq::text as "seenSeq", open_seq::text as "openSeq", opening::text as opening,
  closing::text as closing, digest, previous, (extract(epoch from sealed_at) * 1000)::float8 as "sealedAt"`;

/** `number`: that one; else the last one. */
export async function sealedOf({ orm, schema }: Place, accountId: string, number?: number): Promise<Kept | undefined> {
  const one = number === undefined ? sql`` : sql`and number = ${number}::int`;
  const [row] = await rowsOf<Kept>(
    orm,
    sql`select ${columns} from ${tablesOf(schema)('statements')} where account_id = ${accountId} ${one} order by number desc limit 1`,
  );
  return row;
}

/** Its last line. */
export async function summaryOf({ orm, schema }: Place, accountId: string, number: number): Promise<Summary> {
  const [row] = await rowsOf<{ summary: Summary }>(
    orm,
    sql`select summary from ${tablesOf(schema)('statements')} where account_id = ${accountId} and number = ${number}::int`,
  );
  return row!.summary;
}

/** Newest first; of one account those before this number. */
export function listOf(
  { orm, schema }: Place,
  accountId: string | undefined,
  most: number,
  before: string | undefined,
): Promise<Kept[]> {
  const own =
    accountId === undefined
      ? sql``
      : sql`where account_id = ${accountId} ${before === undefined ? sql`` : sql`and number < ${before}::int`}`;
  return rowsOf<Kept>(
    orm,
    sql`select ${columns} from ${tablesOf(schema)('statements')} ${own} order by until_at desc, account_id, number desc limit ${most}::int`,
  );
}

/** The account's last movement; undefined: there is none. Movements come under the account's lock, so none of a lower number comes later. */
export async function lastSeqOf({ orm, schema }: Place, accountId: string): Promise<string | undefined> {
  const last = (name: string, has = sql`true`) =>
    sql`(select max(seq) from ${tablesOf(schema)(name)} where account_id = ${accountId} and ${has})`;
  const [row] = await rowsOf<{ seq: string | null }>(
    orm,
    sql`select greatest(${last('calls', sql`seq is not null`)}, ${last('archived_charges')}, ${last('ledger')})::text as seq`,
  );
  return row?.seq ?? undefined;
}

/** What had moved before a first statement. */
export async function movedBefore({ orm, schema }: Place, bounds: Bounds): Promise<string> {
  const [row] = await rowsOf<{ amount: string }>(
    orm,
    sql`select coalesce(sum(amount), 0)::text as amount from ${tablesOf(schema)('movements')}
        where account_id = ${bounds.accountId} and seq <= ${bounds.seenSeq}::bigint and created_at < ${instant(bounds.from)}`,
  );
  return row!.amount;
}

/** The first movement of a later month, else the next one to come. */
export async function openSeqOf(
  { orm, schema }: Place,
  { accountId, until, seenSeq, before }: Bounds,
): Promise<string> {
  const [row] = await rowsOf<{ seq: string }>(
    orm,
    sql`select coalesce(min(seq), ${seenSeq}::bigint + 1)::text as seq from ${tablesOf(schema)('movements')}
        where account_id = ${accountId} and seq >= ${before?.openSeq ?? '0'}::bigint and seq <= ${seenSeq}::bigint and created_at >= ${instant(until)}`,
  );
  return row!.seq;
}

type Found = Omit<Row, 'usage' | 'price'> & { readonly usage?: string | null; readonly price?: string | null };

/** In the order of their numbers. */
export async function* movementsOf(place: Place, bounds: Bounds): AsyncGenerator<Row> {
  let after = String(BigInt(bounds.before?.openSeq ?? '1') - 1n);
  for (;;) {
    const page = await pageAfter(place, bounds, after);
    const details = await archivedDetails(place, page);
    for (const found of page) yield rowOf({ ...found, ...details.get(found.request ?? '') }, bounds);
    if (page.length < pageRows) return;
    after = page.at(-1)!.seq;
  }
}

/** Each table gives a page by its own index: over all of them the database would sort every row of the account. */
function pageAfter({ orm, schema }: Place, bounds: Bounds, after: string): Promise<Found[]> {
  const table = tablesOf(schema);
  const { accountId, seenSeq, from, until, before } = bounds;
  const isNew =
    before === undefined
      ? sql`created_at >= ${instant(from)}`
      : sql`(seq > ${before.seenSeq}::bigint or created_at >= ${instant(before.until)})`;
  const part = (rows: SQL) =>
    sql`(${rows} and account_id = ${accountId} and seq > ${after}::bigint and seq <= ${seenSeq}::bigint
      and created_at < ${instant(until)} and ${isNew} order by seq limit ${pageRows}::int)`;
  const charge = sql`select account_id, seq, 'CHARGE' as kind, id as request_id, null::uuid as grant_id, null::text as reference,
    -cost as amount, created_at`;
  return rowsOf<Found>(
    orm,
    sql`select moved.seq::text as seq, to_char(moved.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at, moved.kind,
          moved.amount::text as amount, case when moved.kind in ('CREDIT', 'EXPIRE', 'PAYOUT') then grants.kind end as of,
          coalesce(moved.reference, grants.reference) as reference, coalesce(moved.request_id, refunds.request_id)::text as request, ${detail}
        from (select * from (${part(sql`${charge} from ${table('calls')} where seq is not null`)}
            union all ${part(sql`${charge} from ${table('archived_charges')} where true`)}
            union all ${part(sql`select account_id, seq, kind, null::uuid, grant_id, reference, amount, created_at from ${table('ledger')} where amount <> 0`)}
          ) as pages order by seq limit ${pageRows}::int) as moved
        left join ${table('calls')} as calls on calls.account_id = moved.account_id and calls.id = moved.request_id
        left join ${table('grants')} as grants on grants.account_id = moved.account_id and grants.id = moved.grant_id
        left join ${table('refunds')} as refunds on refunds.account_id = moved.account_id and refunds.grant_id = moved.grant_id
        order by moved.seq`,
  );
}

const detail = sql`calls.project, calls.person, calls.model, calls.classes::text as usage, calls.price::text as price,
  calls.price_version, calls.tier, calls.ratio, calls.reason`;

/** By request. */
async function archivedDetails({ orm, schema, archive }: Place, page: readonly Found[]) {
  const missing = page.flatMap(({ kind, model, request }) => (kind === 'CHARGE' && model === null ? [request!] : []));
  const lines = missing.length === 0 ? [] : await archive.linesOf(orm, schema, missing);
  if (lines.length === 0) return new Map<string, Partial<Found>>();
  const found = await rowsOf<{ request: string } & Partial<Found>>(
    orm,
    sql`select calls.id::text as request, ${detail} from ${callsIn(tablesOf(schema), lines)} as calls`,
  );
  return new Map(found.map((row) => [row.request, row]));
}

function rowOf({ usage, price, seq, at, kind, amount, ...rest }: Found, { month, zone }: Bounds): Row {
  const own = monthAt(Date.parse(at), zone);
  const { of, reference, request, project, person, model, price_version, tier, ratio, reason } = rest;
  const members = {
    ...{ seq, at, kind, amount, corrects: own === month ? null : own, of, reference, request, project, person, model },
    ...{ usage: usage && JSON.parse(usage), price: price && JSON.parse(price), price_version, tier, ratio, reason },
  };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => (value ?? null) !== null)) as unknown as Row;
}

/** How far the accounts of a month have been gone through: the last one that was. */
export interface Turn {
  readonly month: string;
  readonly accountId: string;
}

/** Undefined: another process goes on with it. `first`: the month that sealing begins with. */
export async function claim({ orm, schema }: Place, owner: string, forMs: number, first: string) {
  const state = tablesOf(schema)('statement_state');
  await orm.execute(sql`insert into ${state} (month) values (${first}) on conflict do nothing`);
  const [turn] = await rowsOf<Turn>(
    orm,
    sql`update ${state} set owner = ${owner}, owned_until = ${inMs(forMs)} where owner = ${owner} or owned_until < now()
        returning month, account_id as "accountId"`,
  );
  return turn;
}

export async function accountAfter({ orm, schema }: Place, accountId: string): Promise<string | undefined> {
  const [row] = await rowsOf<{ id: string }>(
    orm,
    sql`select account_id as id from ${tablesOf(schema)('balances')} where account_id > ${accountId} order by account_id limit 1`,
  );
  return row?.id;
}

/** In one transaction with the statement, if there is one. false: another process has gone on, and nothing was written. */
export function moveOn(
  { orm, schema }: Place,
  owner: string,
  [from, to]: readonly [Turn, Turn],
  sealed?: Sealed & { readonly summary: Summary },
): Promise<boolean> {
  const table = tablesOf(schema);
  return orm.transaction(async (transaction) => {
    const moved = await rowsOf(
      transaction,
      sql`update ${table('statement_state')} set month = ${to.month}, account_id = ${to.accountId}
          where owner = ${owner} and month = ${from.month} and account_id = ${from.accountId} returning 1`,
    );
    if (moved.length === 0) return false;
    if (sealed === undefined) return true;
    const { accountId, number, month, zone, seenSeq, openSeq, opening, closing, digest, previous } = sealed;
    await transaction.execute(
      sql`insert into ${table('statements')} (account_id, number, month, zone, from_at, until_at, seen_seq, open_seq, opening, closing, summary, digest, previous)
          values (${accountId}, ${number}::int, ${month}, ${zone}, ${instant(sealed.from)}, ${instant(sealed.until)}, ${seenSeq}::bigint, ${openSeq}::bigint,
            ${opening}::bigint, ${closing}::bigint, ${JSON.stringify(sealed.summary)}::text::json, ${digest}, ${previous})`,
    );
    return true;
  });
}
