/** Grants as listed and refunded: the amount granted and the amount refunded of each. */
import { sql } from 'drizzle-orm';
import { millisecondsOf, type Runner, rowsOf, tablesOf } from '../model/sql.ts';

export interface GrantRow {
  readonly id: string;
  readonly kind: string;
  readonly reason: string;
  readonly reference: string;
  readonly amount: string;
  readonly paid_out: string;
  readonly created_at: string;
  readonly expires_at: string | null;
}

/** At most this many grants of one account are listed, newest first. */
const listed = 10_000;

const columns = (table: ReturnType<typeof tablesOf>) => sql`
  id::text as id, grants.kind, reason, grants.reference, grants.amount::text as amount,
  (select coalesce(-sum(ledger.amount), 0)::text from ${table('ledger')} as ledger
    where ledger.account_id = grants.account_id and ledger.grant_id = grants.id and ledger.kind = 'PAYOUT') as paid_out,
  ${millisecondsOf(sql`created_at`)} as created_at, ${millisecondsOf(sql`expires_at`)} as expires_at`;

/** Non-expiring grants, newest first. */
export function readNonExpiring(runner: Runner, schema: string, accountId: string): Promise<GrantRow[]> {
  const table = tablesOf(schema);
  return rowsOf<GrantRow>(
    runner,
    sql`select ${columns(table)} from ${table('grants')} as grants
        join (select grant_id, seq from ${table('ledger')} where account_id = ${accountId} and kind in ('CREDIT', 'REFUND')) as credits
          on credits.grant_id = grants.id
        where grants.account_id = ${accountId} and expires_at is null order by credits.seq desc limit ${listed}::int`,
  );
}

export function readGrants(
  runner: Runner,
  schema: string,
  accountId: string,
  grantIds: readonly string[],
): Promise<GrantRow[]> {
  if (grantIds.length === 0) return Promise.resolve([]);
  const table = tablesOf(schema);
  const ids = sql.join(
    grantIds.map((id) => sql`${id}::uuid`),
    sql`, `,
  );
  return rowsOf<GrantRow>(
    runner,
    sql`select ${columns(table)} from ${table('grants')} as grants where account_id = ${accountId} and id in (${ids})`,
  );
}
