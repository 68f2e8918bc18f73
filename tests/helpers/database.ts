/** Databases for tests: each a fresh schema of a real Postgres (`TEST_DATABASE_URL`) or of one embedded database per process. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { Database } from '../../plugins/common/domain/database.ts';
import { type OpenedDatabase, openDatabase as openOfPlugin } from '../../plugins/storage/database.ts';
import { type EmbeddedDatabase, useEmbedded } from '../../plugins/storage/embedded/keeper.ts';
import { atEnd } from '../runner/end.ts';
import { type FakeHost, fakeHost } from './fakes.ts';
import { KeptTables, type Taken } from './kept-tables.ts';
import { fillDirectory } from './template.ts';

export const databaseUrl = process.env['TEST_DATABASE_URL'] || undefined;

/** A test that needs a server: sessions that wait for each other, or several processes. Without one it is not defined. */
export const testOnServer: (name: string, run: (context: TestContext) => Promise<void>) => void =
  databaseUrl === undefined ? () => {} : (name, run) => void test(name, run);

/** A schema for a gateway of the tests: on a server one that no one else has, and that name alone in a directory of its own. */
export function ownSchema(name: string): string {
  return databaseUrl === undefined ? name : `${name}_${randomBytes(6).toString('hex')}`;
}

export interface TestDatabase extends Database {
  /** The host it was opened with: its log lines, and its clock to move. */
  readonly host: FakeHost;
  /** Reads announcements of others, as a serving gateway does four times a second. */
  poll(): Promise<void>;
  /** Notifications that have reached it so far. */
  notices(): number;
  /** Disconnects, and drops the schema on a server, unless it was given. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface TestDatabaseOptions {
  /** Opens this schema, as a second process would. */
  schema?: string;
  /** Connections, at most. */
  pool?: number;
  /** Mixes into the host that the plugin sees. */
  host?: FakeHost;
  /** Another server than that of all tests. */
  url?: string;
  /** Those whose tables it begins with, in the order in which they are set up. Such a schema is used again by later tests. */
  plugins?: readonly string[];
}

export async function openDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const taken = options.plugins === undefined ? undefined : await (await keptTables()).take(options.plugins);
  const schema = options.schema ?? taken?.schema ?? randomSchema();
  if (taken !== undefined) {
    givenBack.delete(schema);
    inUse.set(schema, { taken, handles: 0 });
  }
  if (givenBack.has(schema)) throw new Error(`${schema} was closed by all who had opened it: another test may have it`);
  const use = inUse.get(schema);
  if (use !== undefined) use.handles += 1;
  const url = options.url ?? databaseUrl;
  const directory = url === undefined ? await embeddedDirectory() : '/nonexistent';
  const host = options.host ?? fakeHost({ schema, directory });
  const database = await openOfPlugin(host, {
    database: url ?? 'embedded',
    maxConnections: options.pool ?? 5,
  });
  const close = async () => {
    if (!opened.delete(close)) return;
    // The embedded one goes with its directory.
    if (options.schema === undefined && url !== undefined && use === undefined) {
      await database.orm.execute(sql`drop schema if exists ${sql.identifier(schema)} cascade`);
    }
    await database.close();
    if (use === undefined || --use.handles > 0) return;
    inUse.delete(schema);
    givenBack.add(schema);
    use.taken.giveBack();
  };
  opened.add(close);
  return {
    ...database,
    host,
    async poll() {
      await host.intervals.find(({ name }) => name === 'poll for changes')!.work();
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Closed in the end, so that a test that failed before it did so keeps no one waiting. */
const opened = new Set<() => Promise<void>>();

/** Schemas whose tables are kept, while somebody has them open. */
const inUse = new Map<string, { readonly taken: Taken; handles: number }>();
const givenBack = new Set<string>();

const randomSchema = () => `test_${randomBytes(6).toString('hex')}`;

/** A schema with the tables of these plugins, for a gateway. */
export async function takeSchema(plugins: readonly string[]): Promise<Taken> {
  return (await keptTables()).take(plugins);
}

let keeping: Promise<{ tables: KeptTables; database: OpenedDatabase }> | undefined;

async function keptTables(): Promise<KeptTables> {
  keeping ??= keepTables();
  return (await keeping).tables;
}

async function keepTables() {
  const open = async (schema: string) => {
    const directory = databaseUrl === undefined ? await embeddedDirectory() : '/nonexistent';
    return openOfPlugin(fakeHost({ schema, directory }), { database: databaseUrl ?? 'embedded', maxConnections: 2 });
  };
  const database = await open(randomSchema());
  const tables = new KeptTables(database.orm, async (plugins) => {
    const schema = randomSchema();
    const made = await open(schema);
    for (const plugin of plugins)
      await made.migrate(plugin, new URL(`../../plugins/${plugin}/migrations/`, import.meta.url));
    await made.close();
    return schema;
  });
  return { tables, database };
}

let starting: Promise<{ directory: string; embedded: EmbeddedDatabase }> | undefined;

/** A data directory whose database runs until this process has run its tests. */
export async function embeddedDirectory(): Promise<string> {
  starting ??= start();
  return (await starting).directory;
}

async function start() {
  const directory = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  await fillDirectory(directory);
  return { directory, embedded: await useEmbedded(directory, 'serve', fakeHost().log) };
}

atEnd(async () => {
  await Promise.all([...opened].map((close) => close()));
  const kept = await keeping?.catch(() => undefined);
  if (databaseUrl !== undefined && kept !== undefined) {
    await kept.tables.drop();
    await kept.database.orm.execute(sql`drop schema ${sql.identifier(kept.database.schema)} cascade`);
  }
  await kept?.database.close();
  const started = await starting?.catch(() => undefined);
  await started?.embedded.release();
});
