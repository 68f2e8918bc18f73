/** An embedded database with a gateway's empty tables: made once for each schema and list of plugins with tables, and then copied. */
import { hash } from 'node:crypto';
import { existsSync, globSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { sql } from 'drizzle-orm';
import { parse } from 'yaml';
import { boot } from '../../core/gateway/boot.ts';
import { createLog } from '../../core/gateway/log.ts';
import { type Database, database } from '../../plugins/common/domain/database.ts';
import { fillDirectory, fillFrom, makeSmall, template } from './template.ts';

/** Those of which nothing was copied for so long are of other migrations. */
const keptMs = 24 * 3_600_000;

/** Applying the migrations takes a second of a processor. The file must take its data directory from `DATA_DIR`. */
export async function fillMigrated(
  directory: string,
  file: string,
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  const made = await madeFor(directory, file, environment).catch((error: unknown) => {
    // Or every gateway of the tests would apply the migrations, twice, without a word.
    if (error instanceof WrittenError) throw error;
    return undefined;
  });
  if (made === undefined) return fillDirectory(directory);
  fillFrom(made, directory);
}

const madeBefore = new Map<string, Promise<string | undefined>>();

/** Gateways of one process are alike but for their directories: the files of the first are read. */
function madeFor(
  directory: string,
  file: string,
  environment: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const key = JSON.stringify([readFileSync(file, 'utf8'), environment]).replaceAll(directory, '');
  const before = madeBefore.get(key);
  if (before !== undefined) return before;
  const made = migrated(file, environment);
  madeBefore.set(key, made);
  return made;
}

async function migrated(file: string, environment: Readonly<Record<string, string>>): Promise<string | undefined> {
  const schema = String(valueIn(file, 'schema') ?? valueIn(file, 'gateway')).replaceAll('-', '_');
  // The next process that asks would have another name.
  if (!/^[a-z_]+$/.test(schema)) return undefined;
  const path = `${await template()}-${keyOf(schema, valueIn(file, 'plugins') as string[], dirname(file))}`;
  if (existsSync(path)) {
    utimesSync(path, new Date(), new Date());
    return path;
  }
  removeUnused(`${await template()}-`);
  const draft = mkdtempSync(`${path}.`);
  try {
    await fillDirectory(draft);
    const gateway = await boot(file, {
      mode: 'command',
      environment: { ...environment, DATA_DIR: draft },
      log: createLog('silent'),
    });
    const written = await writtenTables(gateway.find(database)!).finally(() => gateway.stop(0));
    // A start would find what another one has left there.
    if (written.length > 0) throw new WrittenError(`a command has written rows of ${written.join(', ')}`);
    makeSmall(draft);
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    // Another process was faster.
    if (!existsSync(path)) throw error;
  }
  return path;
}

/** A value of the file or of one that it includes. Reading all of them, as a start does, takes a tenth of a gateway's start. */
function valueIn(file: string, name: string): unknown {
  const values = valuesOf(readFileSync(file, 'utf8'));
  if (values[name] !== undefined) return values[name];
  const included = [values['include'] ?? []].flat().map((path) => valueIn(resolve(dirname(file), String(path)), name));
  return included.findLast((value) => value !== undefined);
}

const parsed = new Map<string, Readonly<Record<string, unknown>>>();

function valuesOf(text: string): Readonly<Record<string, unknown>> {
  const values = parsed.get(text) ?? (parse(text, { merge: true }) as Record<string, unknown>);
  parsed.set(text, values);
  return values;
}

let migrations: readonly (readonly [name: string, text: string])[] | undefined;

/** Plugins without tables, and their order, make no difference. Those that are named by a path have theirs in a folder beside them. */
function keyOf(schema: string, listed: readonly string[], folder: string): string {
  migrations ??= globSync('plugins/*/migrations/*.sql')
    .sort()
    .map((name) => [name, readFileSync(name, 'utf8')]);
  const folderOf = (name: string) => (name.includes('/') ? dirname(resolve(folder, name)) : join('plugins', name));
  const plugins = listed.filter((name) => existsSync(join(folderOf(name), 'migrations'))).sort();
  return hash('sha256', JSON.stringify([schema, plugins, migrations])).slice(0, 24);
}

/** Each takes 10 MB, and a migration that changes makes all of them again. */
function removeUnused(prefix: string): void {
  for (const path of globSync(`${prefix}*`)) {
    const usedAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (usedAt < Date.now() - keptMs) rmSync(path, { recursive: true, force: true });
  }
}

/** Secrets that the first command makes; each gateway of the tests makes its own. */
const settings = ['auth_settings', 'file_settings'];
/** Rows that a migration writes. */
const born = ['migrations', 'call_sums_state', 'request_sums_state', 'archive_state', 'notice_look'];

class WrittenError extends Error {}

async function writtenTables({ orm, schema }: Database): Promise<string[]> {
  const rows = async (text: ReturnType<typeof sql>) => [...((await orm.execute(text)) as unknown as Row[])];
  const found = await rows(sql`select tablename from pg_catalog.pg_tables where schemaname = ${schema}`);
  const tables = found.map(({ tablename }) => tablename);
  const named = (table: string) => sql`${sql.identifier(schema)}.${sql.identifier(table)}`;
  for (const table of settings) if (tables.includes(table)) await orm.execute(sql`delete from ${named(table)}`);
  const written: string[] = [];
  for (const table of tables)
    if (!born.includes(table) && (await rows(sql`select 1 from ${named(table)} limit 1`)).length > 0)
      written.push(table);
  return written;
}

interface Row {
  readonly tablename: string;
}
