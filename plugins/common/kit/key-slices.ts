/** Ranges of a table's key with a bounded number of rows each, so that no statement which goes through many rows changes more at once. */
import { type SQL, sql } from 'drizzle-orm';
import { type Runner, rowsOf } from './sql.ts';

/** Rows of a range, at most. */
export const sliceRows = 2_000;

/** Consecutive ranges of UUIDs that are from `from` to below `until` together. Each is looked for when the one before it is done with. */
export async function* keySlices(
  runner: Runner,
  table: SQL,
  { from, until }: { readonly from: string; readonly until: string },
): AsyncGenerator<readonly [from: string, until: string]> {
  for (let begin = from; begin < until; ) {
    const [row] = await rowsOf<{ next: string }>(
      runner,
      sql`select id::text as next from ${table} where id >= ${begin}::uuid and id < ${until}::uuid
          order by id offset ${sliceRows}::int limit 1`,
    );
    const end = row?.next ?? until;
    yield [begin, end];
    begin = end;
  }
}
