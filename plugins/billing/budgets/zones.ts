/** SQL of the time zones that accounts have of their own. */
import { type SQL, sql } from 'drizzle-orm';
import { type Runner, rowsOf, tablesOf } from '../model/sql.ts';

/** undefined: it has none. */
export async function zoneOfAccount(runner: Runner, schema: string, accountId: string): Promise<string | undefined> {
  const [row] = await rowsOf<{ zone: string | null }>(
    runner,
    sql`select zone from ${zones(schema)} where account_id = ${accountId}`,
  );
  return row?.zone ?? undefined;
}

/** Those that any account has. */
export async function zonesInUse(runner: Runner, schema: string): Promise<string[]> {
  const rows = await rowsOf<{ zone: string }>(
    runner,
    sql`select distinct zone from ${zones(schema)} where zone is not null`,
  );
  return rows.map(({ zone }) => zone);
}

export async function writeZone(runner: Runner, schema: string, accountId: string, zone: string | undefined) {
  await runner.execute(
    sql`insert into ${zones(schema)} (account_id, zone) values (${accountId}, ${zone ?? null})
        on conflict (account_id) do update set zone = excluded.zone, changed_at = clock_timestamp()`,
  );
}

const zones = (schema: string): SQL => tablesOf(schema)('account_zones');
