/** How a request ended, by its ledger rows and its attempts. */
import { sql } from 'drizzle-orm';
import type { Ledger, Orm } from '../../core/vocabulary.ts';
import { rowsOf, tablesOf } from './sql.ts';

type End = Awaited<ReturnType<Ledger['endOf']>>;

/** `open`: it is held for and has not ended. undefined: the ledger has no row of it. */
export async function readEnd(orm: Orm, schema: string, requestId: string): Promise<End> {
  const table = tablesOf(schema);
  // An attempt's row is of the same transaction as the end.
  const rows = await rowsOf<{ kind: string; ran: boolean }>(
    orm,
    sql`select kind, exists (
          select from ${table('attempts')} where request_id = ${requestId}::uuid and result not in ('refused', 'not_sent')
        ) as ran
        from ${table('ledger')} where request_id = ${requestId}::uuid`,
  );
  const end = rows.find(({ kind }) => kind === 'SETTLE' || kind === 'VOID' || kind === 'EXPIRE');
  if (end?.kind === 'VOID' && end.ran) return 'in_vain';
  return (end?.kind as End) ?? (rows.length === 0 ? undefined : 'open');
}
