/** Which other processes may still end a hold: what an audit cannot judge from one journal alone. */
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import type { Files } from '../segments.ts';
import { type Runner, rowsOf, tablesOf } from '../sql.ts';

/** How many other journals belong to processes that live, or died with leases and have not come back. */
export async function otherJournals(runner: Runner, schema: string, files: Files, directory: string): Promise<number> {
  const table = tablesOf(schema);
  const [row] = await rowsOf<{ count: number }>(
    runner,
    sql`select count(*)::int as count from ${table('journal_cursor')} as cursors
        where journal <> ${nameIn(files, directory)} and (updated_at > now() - interval '15 seconds'
          or exists (select from ${table('leases')} as leases where leases.node = cursors.journal))`,
  );
  return row!.count;
}

/** The name of the journal at `directory`; '' where there is none. */
function nameIn(files: Files, directory: string): string {
  try {
    return files.read(join(directory, 'name')).toString('utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
