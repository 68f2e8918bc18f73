/** Makes the other parts of kept sums from the fine one, by the hour, once an hour is over. */
import { sql } from 'drizzle-orm';
import type { Orm } from '../../domain/database.ts';
import { instantText } from '../paging.ts';
import { type Runner, rowsOf } from './rows.ts';
import { added, finePart, grouped, keptShape, namesOf, type SumTable } from './table.ts';

const hourMs = 3_600_000;
/** Rows of an hour come within this time after it, nearly all of them. */
const settledMs = 300_000;
/** Batches wait while a slice is folded. */
const sliceMs = 6 * hourMs;

/** How often to look whether an hour is over. */
export const foldEveryMs = 300_000;

/** The wall-clock milliseconds up to which all parts are made. */
export async function foldedUntil(orm: Runner, schema: string, sums: SumTable): Promise<number> {
  const [row] = await rowsOf<{ until: number }>(
    orm,
    sql`select greatest(extract(epoch from folded) * 1000, 0)::float8 as until from ${namesOf(schema, sums).state}`,
  );
  return Number(row!.until);
}

/** Every part up to the last full hour, in one transaction for every few hours. */
export async function foldSums(orm: Orm, schema: string, sums: SumTable, now: number): Promise<void> {
  const until = Math.floor((now - settledMs) / hourMs) * hourMs;
  for (let from = await foldedUntil(orm, schema, sums); from < until; )
    from = await foldSlice(orm, schema, sums, until);
}

/** Resolves with the end of the slice. */
function foldSlice(orm: Orm, schema: string, sums: SumTable, until: number): Promise<number> {
  const { kept, state } = namesOf(schema, sums);
  const fine = sql`part = ${sql.raw(String(finePart))}`;
  return orm.transaction(async (transaction) => {
    // Waits for the batches that are being written; later ones wait for this.
    await transaction.execute(sql`select from ${state} for update`);
    const from = await foldedUntil(transaction, schema, sums);
    const [first] = await rowsOf<{ at: number | null }>(
      transaction,
      sql`select extract(epoch from min(at))::float8 * 1000 as at from ${kept} where ${fine} and at >= ${instantText(from)}::timestamptz`,
    );
    // Hours without any row are passed at once.
    const begin = first!.at === null ? until : Math.max(from, Math.floor(Number(first!.at) / hourMs) * hourMs);
    const end = Math.min(until, begin + sliceMs);
    if (end <= from) return end;
    const rows = sql`(select * from ${kept} where ${fine} and at >= ${instantText(from)}::timestamptz and at < ${instantText(end)}::timestamptz)`;
    const others = sql`part.number <> ${sql.raw(String(finePart))}`;
    await transaction.execute(added(schema, sums, grouped(sums, keptShape, rows, others)));
    await transaction.execute(sql`update ${state} set folded = ${instantText(end)}::timestamptz`);
    return end;
  });
}
