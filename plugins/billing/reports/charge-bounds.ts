/**
 * Between which numbers charges of a span of time are, all but those that came late, so that a page of a span reads neither what came since
 * nor what was before. A charge that is not late has got its number within ten minutes of its call's end, by the clock of the database, whatever
 * the clocks of gateways say. So of two such charges that are more than twenty minutes apart the later one has the higher number.
 */
import { type SQL, sql } from 'drizzle-orm';
import type { Span } from '../../common/domain/admin/pages.ts';
import { firstIdAt } from '../../common/kit/arrival.ts';
import { instantText } from '../../common/kit/paging.ts';

const slackMs = 20 * 60_000;
/** Calls of either side that are looked at: most of them are charged. Ids, which are in the order of arrivals, only say which these are. */
const nearRows = 200;
const tables = ['calls', 'archived_charges'];

/** A part of the statement: `bounds`, with `low` and `high`. */
export function chargeBounds(
  table: (name: string) => SQL,
  accountId: string | undefined,
  { from, until }: Partial<Span>,
): SQL {
  const own = accountId === undefined ? sql`` : sql`account_id = ${accountId} and`;
  const near = (name: string, ids: SQL, direction: SQL) =>
    sql`(select seq, created_at, is_late from ${table(name)} where ${own} ${ids}
      order by ${accountId === undefined ? sql`` : sql`account_id ${direction},`} id ${direction} limit ${nearRows}::int)`;
  const before = (name: string) => {
    const end = from! - slackMs;
    return sql`(select max(seq) from ${near(name, sql`id < ${firstIdAt(end)}::uuid`, sql`desc`)} as earlier
      where created_at < ${instantText(end)}::timestamptz and is_late is false)`;
  };
  const behind = (name: string) => {
    const begin = until! + slackMs;
    return sql`(select min(seq) from ${near(name, sql`id >= ${firstIdAt(begin)}::uuid`, sql``)} as later
      where created_at >= ${instantText(begin)}::timestamptz and is_late is false)`;
  };
  const low =
    from === undefined ? sql`0::bigint` : sql`coalesce(greatest(${sql.join(tables.map(before), sql`, `)}), 0)`;
  const high =
    until === undefined
      ? sql`${lastSeq}::bigint`
      : sql`coalesce(least(${sql.join(tables.map(behind), sql`, `)}), ${lastSeq}::bigint)`;
  return sql`with bounds as materialized (select ${low} as low, ${high} as high)`;
}

const lastSeq = '9223372036854775807';

/** Conditions that together find all charges of the span, each once: those between the bounds, and late ones beyond them. */
export function chargeSpans({ from, until }: Partial<Span>): readonly SQL[] {
  if (from === undefined && until === undefined) return [sql`true`];
  const between = sql`seq > (select low from bounds) and seq < (select high from bounds)`;
  const beyond = [
    ...(from === undefined ? [] : [sql`seq <= (select low from bounds)`]),
    ...(until === undefined ? [] : [sql`seq >= (select high from bounds)`]),
  ];
  return [between, ...beyond.map((numbers) => sql`${numbers} and is_late is not false`)];
}
