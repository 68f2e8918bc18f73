/** Databases that a version before the first release has made: one sentence refuses them, and nothing in them is changed. */
import { existsSync } from 'node:fs';
import { sql } from 'drizzle-orm';
import { migrationsOf, type Runner, rowsOf } from './transfer/tables.ts';

const baseline = '001-baseline.sql';
/** The last one with the migrations of those versions. */
const lastCommit = 'a36cc982';

/** Throws where the schema has tables of such a version. */
export async function refuseDevelopment(runner: Runner, schema: string): Promise<void> {
  const tables = await rowsOf(
    runner,
    sql`select 1 from pg_catalog.pg_tables where schemaname = ${schema} and tablename = 'migrations'`,
  );
  if (tables.length > 0 && isOfDevelopment(await migrationsOf(runner, schema)))
    throw new Error(developmentRefusal(`The schema ${schema} of this database`));
}

/** Whether a plugin of this program began with other migrations than it does now. */
export function isOfDevelopment(migrations: readonly { readonly plugin: string; readonly name?: string }[]): boolean {
  const begun = new Set(migrations.flatMap(({ plugin, name }) => (name === baseline ? [plugin] : [])));
  return migrations.some(({ plugin }) => !begun.has(plugin) && isOfProgram(plugin));
}

function isOfProgram(plugin: string): boolean {
  return existsSync(new URL(`../${plugin}/migrations/${baseline}`, import.meta.url));
}

/** `subject`: begins the sentence. */
export function developmentRefusal(subject: string): string {
  return `${subject} is of a development version before 0.1.0, which this version cannot read: the last commit that can is ${lastCommit}; nothing was changed, so serve it with that one, or begin with an empty database.`;
}
