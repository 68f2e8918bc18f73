/** Applies numbered SQL files, each once and in order, however many processes start at the same time. */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { type SQL, sql } from 'drizzle-orm';
import type { Orm } from '../common/domain/database.ts';

const fileName = /^(\d{3})-[a-z0-9]+(?:-[a-z0-9]+)*\.sql$/;

/**
 * A statement that waits for a table's lock blocks all later ones. So a migration that finds a table in use, by a dump for
 * example, releases its locks after this time and tries again.
 */
const tableLockMs = 2_000;
const betweenTriesMs = 500;
const mostTries = 120;
/** Not done, and worth another try: a lock that was not available, and a deadlock that this session was chosen to end. */
const lockErrors = new Set<string | undefined>(['55P03', '40P01']);

interface Migration {
  readonly number: number;
  readonly name: string;
  readonly text: string;
  readonly checksum: string;
}

interface Applied {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
}

type Runner = Pick<Orm, 'execute'>;

/** Makes the schema and its `migrations` table unless they are there. */
export async function prepareSchema(orm: Orm, schema: string): Promise<void> {
  const found = await rowsOf<{ ready: boolean }>(
    orm,
    sql`select exists (
      select from pg_catalog.pg_tables where schemaname = ${schema} and tablename = 'migrations') as ready`,
  );
  if (found[0]!.ready) return;
  await locked(orm, schema, async (runner) => {
    // Asked first: "if not exists" wants the right to create schemas even where there is nothing to create.
    const schemas = await rowsOf(runner, sql`select 1 from pg_catalog.pg_namespace where nspname = ${schema}`);
    if (schemas.length === 0) await runner.execute(sql`create schema ${sql.identifier(schema)}`);
    await runner.execute(sql`create table if not exists ${migrationsOf(schema)} (
      plugin text not null,
      number integer not null,
      name text not null,
      checksum text not null,
      applied_at timestamptz not null default now(),
      primary key (plugin, number)
    )`);
  });
}

/**
 * Applies those files of `directory` (`001-name.sql`) that this schema has not seen, each in a transaction of its own.
 * `{schema}` in them becomes the quoted name. Throws when a file that was applied has changed since, when a new one has
 * a lower number than an applied one, and when a file's name is not of that form.
 */
export async function migrate(
  orm: Orm,
  schema: string,
  plugin: string,
  directory: URL,
  begins: (migration: string) => void = () => {},
): Promise<void> {
  const migrations = await readMigrations(directory);
  const pending = pendingOf(migrations, await appliedOf(orm, schema, plugin), plugin);
  for (const migration of pending) {
    begins(`${plugin}/${migration.name}`);
    await applyPatiently(orm, schema, plugin, migration, migrations);
  }
}

/** Every migration of this schema, in the order in which they were applied. */
export function migrationsIn(orm: Orm, schema: string): Promise<AppliedMigration[]> {
  return rowsOf<AppliedMigration>(
    orm,
    sql`select plugin, name, applied_at as "appliedAt" from ${migrationsOf(schema)} order by applied_at, plugin, number`,
  );
}

export interface AppliedMigration {
  readonly plugin: string;
  readonly name: string;
  readonly appliedAt: string;
}

async function readMigrations(directory: URL): Promise<Migration[]> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.sql')).sort();
  const migrations: Migration[] = [];
  for (const name of names) {
    const match = fileName.exec(name);
    if (match === null) throw new Error(`The migration ${name} must be named like 001-first-tables.sql.`);
    const number = Number(match[1]);
    const before = migrations.at(-1);
    if (before?.number === number) throw new Error(`The migrations ${before.name} and ${name} have the same number.`);
    const text = (await readFile(new URL(name, slashed(directory)), 'utf8')).replaceAll('\r\n', '\n');
    migrations.push({ number, name, text, checksum: createHash('sha256').update(text).digest('hex') });
  }
  return migrations;
}

function slashed(directory: URL): URL {
  return directory.href.endsWith('/') ? directory : new URL(`${directory.href}/`);
}

function pendingOf(migrations: readonly Migration[], applied: readonly Applied[], plugin: string): Migration[] {
  const byNumber = new Map(applied.map((row) => [row.number, row]));
  const highest = applied.at(-1);
  return migrations.filter(({ number, name, checksum }) => {
    const row = byNumber.get(number);
    if (row === undefined) {
      if (highest === undefined || number > highest.number) return true;
      throw new Error(
        `The migration ${name} of "${plugin}" is new, but ${highest.name} is applied already: give it a higher number.`,
      );
    }
    if (row.name !== name)
      throw new Error(`The migration ${name} of "${plugin}" was applied as ${row.name}: give it its old name back.`);
    if (row.checksum !== checksum)
      throw new Error(`The migration ${name} of "${plugin}" was changed after it was applied: add a new file instead.`);
    return false;
  });
}

/** Retries while another session uses the tables. */
async function applyPatiently(...given: Parameters<typeof applyOnce>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await applyOnce(...given);
    } catch (error) {
      if (tries === mostTries || !lockErrors.has(codeOf(error))) throw error;
    }
    await pause(betweenTriesMs);
  }
}

/** Looks again under the lock: another process may have applied it meanwhile. */
async function applyOnce(
  orm: Orm,
  schema: string,
  plugin: string,
  migration: Migration,
  all: readonly Migration[],
): Promise<void> {
  const { number, name, checksum, text } = migration;
  await locked(orm, schema, async (runner) => {
    const pending = pendingOf(all, await appliedOf(runner, schema, plugin), plugin);
    if (!pending.includes(migration)) return;
    await runner.execute(sql.raw(`set local lock_timeout = ${tableLockMs}`));
    try {
      await runner.execute(sql.raw(text.replaceAll('{schema}', quoted(schema))));
    } catch (error) {
      throw new Error(`The migration ${name} of "${plugin}" failed: ${reasonOf(error)}`, { cause: error });
    }
    await runner.execute(sql`insert into ${migrationsOf(schema)} (plugin, number, name, checksum)
      values (${plugin}, ${number}, ${name}, ${checksum})`);
  });
}

/** A transaction that runs in one process at a time, for as long as it takes. */
function locked(orm: Orm, schema: string, work: (runner: Runner) => Promise<void>): Promise<void> {
  return orm.transaction(async (transaction) => {
    await transaction.execute(sql`select pg_advisory_xact_lock(hashtextextended(${`migrations of ${schema}`}, 0))`);
    await work(transaction);
  });
}

function appliedOf(runner: Runner, schema: string, plugin: string): Promise<Applied[]> {
  return rowsOf<Applied>(
    runner,
    sql`select number, name, checksum from ${migrationsOf(schema)} where plugin = ${plugin} order by number`,
  );
}

function migrationsOf(schema: string): SQL {
  return sql`${sql.identifier(schema)}.migrations`;
}

async function rowsOf<Row>(runner: Runner, statement: SQL): Promise<Row[]> {
  return (await runner.execute(statement)) as Row[];
}

function quoted(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}

/** The database's own code of an error, however often it was wrapped. */
function codeOf(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code } = at as { code?: unknown };
    if (typeof code === 'string') return code;
  }
  return undefined;
}

/** drizzle wraps what the database said in an error that repeats the whole statement. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error;
  return cause instanceof Error ? cause.message : message;
}
