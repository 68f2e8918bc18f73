/** Checks archived files, and each call in them, and leaves what other checks need of these calls in a temporary table. */
import { type SQL, sql } from 'drizzle-orm';
import { loadArchive, loadedShape } from '../archive/loading.ts';
import type { ArchiveReader } from '../archive/reader.ts';
import { type Runner, rowsOf, tablesOf } from '../model/sql.ts';
import { chargeRule, recountCharges } from './charges.ts';
import type { Check } from './grants.ts';

const fileRule = 'A1';
const loaded = sql.raw('pg_temp.archived_calls');

interface Finding {
  readonly rule: string;
  readonly what: string;
  readonly subjects: { readonly subject: string }[];
}

/** Within a transaction, which the table ends with. `checks`: of each call by itself. */
export async function checkArchive(
  transaction: Runner,
  schema: string,
  archive: ArchiveReader,
  checks: readonly Check[],
): Promise<{ readonly archived: SQL; readonly hasFiles: boolean; readonly found: readonly Finding[] }> {
  const table = tablesOf(schema);
  const [row] = await rowsOf<{ has: boolean }>(
    transaction,
    sql`select exists (select from ${table('archives')}) as has`,
  );
  if (!row!.has) return { archived: sql`(select * from ${table('calls')} where false)`, hasFiles: false, found: [] };
  await transaction.execute(sql`create temp table archived_calls on commit drop as ${loadedShape(schema)}`);
  const found = new Map<string, Finding>();
  const add = (rule: string, what: string, subjects: readonly { subject: string }[]) => {
    if (subjects.length === 0) return;
    const known = found.get(what) ?? { rule, what, subjects: [] };
    found.set(what, known);
    known.subjects.push(...subjects);
  };
  const faults = await loadArchive({
    runner: transaction,
    schema,
    contents: archive.contents,
    into: loaded,
    each: async (calls) => {
      const given = (name: string) => (name === 'calls' ? calls : table(name));
      for (const { rule, what, query } of checks)
        add(rule, what, await rowsOf(transaction, query(given, schema, loaded)));
      add(chargeRule.rule, chargeRule.what, await recountCharges(transaction, calls));
    },
  });
  for (const { what, object } of faults) add(fileRule, what, [{ subject: object }]);
  return { archived: loaded, hasFiles: true, found: [...found.values()] };
}
