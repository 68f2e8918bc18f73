/** How a request ended, by its ledger rows. */
import { sql } from 'drizzle-orm';
import type { Ledger, Orm } from '../../core/vocabulary.ts';
import { rowsOf, tablesOf } from './sql.ts';

type End = Awaited<ReturnType<Ledger['endOf']>>;

/** `open`: it is held for and has not ended. undefined: the ledger has no row of it. */
export async function readEnd(orm: Orm, schema: string, requestId: string): Promise<End> {
  const rows = await rowsOf<{ kind: string }>(
    orm,
    sql`select kind from ${tablesOf(schema)('ledger')} where request_id = ${requestId}::uuid`,
  );
  const end = rows.find(({ kind }) => kind === 'SETTLE' || kind === 'VOID' || kind === 'EXPIRE');
  return (end?.kind as End) ?? (rows.length === 0 ? undefined : 'open');
}
