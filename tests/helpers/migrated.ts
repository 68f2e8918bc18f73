/** An embedded database with all plugins' empty tables in one schema: made once for each schema, and then copied. */
import { hash } from 'node:crypto';
import { existsSync, globSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import { openDatabase } from '../../plugins/storage/database.ts';
import { migrationFolders } from '../../plugins/storage/embedded/fresh.ts';
import { fakeHost } from './fakes.ts';
import { fillDirectory, fillFrom, makeSmall, template } from './template.ts';

/** Those of which nothing was copied for so long are of other migrations. */
const keptMs = 24 * 3_600_000;

/**
 * Applying the migrations takes seconds of a processor. Tables of plugins that a gateway does not have stay empty, as on a server, so that
 * gateways with any plugins copy the same database.
 */
export async function fillMigrated(directory: string, schema: string | undefined): Promise<void> {
  // Numbers are of one run: the next one has another.
  if (schema === undefined || !/^[a-z_]+$/.test(schema)) return fillDirectory(directory);
  const path = await (made.get(schema) ?? making(schema)).catch(() => undefined);
  // Then the gateway applies the migrations itself, and the next one tries again.
  if (path === undefined) return fillDirectory(directory);
  fillFrom(path, directory);
}

const made = new Map<string, Promise<string>>();

function making(schema: string): Promise<string> {
  const path = makeMigrated(schema);
  made.set(schema, path);
  path.catch(() => made.delete(schema));
  return path;
}

async function makeMigrated(schema: string): Promise<string> {
  const path = `${await template()}-${hash('sha256', JSON.stringify([schema, migrations()])).slice(0, 24)}`;
  if (existsSync(path)) {
    utimesSync(path, new Date(), new Date());
    return path;
  }
  removeUnused(`${await template()}-`);
  const draft = mkdtempSync(`${path}.`);
  try {
    await fillDirectory(draft);
    const database = await openDatabase(fakeHost({ schema, directory: draft, mode: 'command' }), {
      database: 'embedded',
      maxConnections: 1,
    });
    for (const [plugin, folder] of migrationFolders()) await database.migrate(plugin, folder);
    await database.close();
    // Its process is killed where a busy machine closes it too late: what is left opens as it is, but not in copies.
    if (existsSync(join(draft, 'postgres.lock'))) throw new Error('the database was not closed in time');
    for (const name of ['postgres.copy', 'postgres.draft']) rmSync(join(draft, name), { recursive: true, force: true });
    makeSmall(draft);
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    // Another process was faster.
    if (!existsSync(path)) throw error;
  }
  return path;
}

const migrations = () =>
  globSync('plugins/*/migrations/*.sql')
    .sort()
    .map((name) => [name, readFileSync(name, 'utf8')]);

/** The schema of a gateway file, which may include others. Reading all of them, as a start does, takes a tenth of a gateway's start. */
export function schemaOf(file: string): string | undefined {
  try {
    return String(valueIn(file, 'schema') ?? valueIn(file, 'gateway')).replaceAll('-', '_');
  } catch {
    // The start says what is wrong with the file.
    return undefined;
  }
}

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

/** Each takes 10 MB, and a migration that changes makes all of them again. */
function removeUnused(prefix: string): void {
  for (const path of globSync(`${prefix}*`)) {
    const usedAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (usedAt < Date.now() - keptMs) rmSync(path, { recursive: true, force: true });
  }
}
