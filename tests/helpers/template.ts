/** An embedded database that is made once and then copied: making one takes two seconds of a processor, copying it a twentieth of one. */
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { keepEmbeddedProcesses, useEmbedded } from '../../plugins/storage/embedded/keeper.ts';
import { fakeHost } from './fakes.ts';

// Starting one and compiling the database's program takes half of a gateway's start.
keepEmbeddedProcesses(true);

/** An empty embedded database at `directory`, for a gateway that is not to make its own. */
export async function fillDirectory(directory: string): Promise<void> {
  fillFrom(await template(), directory);
}

/** What PostgreSQL calls the databases that `create database` copies, which no gateway does. Built ones lack them; they are half of all files. */
const unused = ['1', '4'];
const logBytes = 16 * 1024 * 1024;

/** Copies the template at `made`. */
export function fillFrom(made: string, directory: string): void {
  mkdirSync(directory, { recursive: true });
  cpSync(join(made, 'postgres'), join(directory, 'postgres'), { recursive: true });
  for (const log of logsOf(directory)) truncateSync(log, logBytes);
}

/** Takes out of a directory what need not be copied; `fillFrom` puts back what PostgreSQL asks for. */
export function makeSmall(directory: string): void {
  for (const name of unused) {
    const database = join(directory, 'postgres/base', name);
    if (!existsSync(database)) continue;
    rmSync(database, { recursive: true, force: true });
    mkdirSync(database, { mode: 0o700 });
  }
  // Maps of free and of visible pages, which PostgreSQL makes again.
  for (const map of globSync(join(directory, 'postgres/{base,global}/**/*_{fsm,vm}'))) rmSync(map);
  for (const log of logsOf(directory)) {
    const bytes = readFileSync(log);
    let end = bytes.length;
    while (end > 0 && bytes[end - 1] === 0) end -= 1;
    truncateSync(log, end);
  }
}

/** Files of the write-ahead log, which are as long as each other and end in zeros. */
function logsOf(directory: string): string[] {
  const logs = join(directory, 'postgres/pg_wal');
  return readdirSync(logs)
    .filter((name) => /^[0-9A-F]{24}$/.test(name))
    .map((name) => join(logs, name));
}

/** An empty database inside this process, gone with it. */
export async function openInProcess(): Promise<PGlite> {
  const directory = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  await fillDirectory(directory);
  return PGlite.create(join(directory, 'postgres'));
}

/** Kept in the system's temporary directory, for every process of the tests. */
export async function template(): Promise<string> {
  const { dependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const version: string = dependencies['@electric-sql/pglite'];
  const path = join(process.env['TEST_KEPT'] ?? tmpdir(), `gateway-test-database-${version}-${userInfo().uid}`);
  if (existsSync(path)) return path;
  const draft = mkdtempSync(`${path}.`);
  await (await useEmbedded(draft, 'serve', fakeHost().log)).release();
  makeSmall(draft);
  try {
    renameSync(draft, path);
  } catch {
    rmSync(draft, { recursive: true, force: true }); // Another process was faster.
  }
  return path;
}
