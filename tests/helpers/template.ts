/** An embedded database that is made once and then copied: making one takes two seconds of a processor, copying it a hundredth of one. */
import {
  closeSync,
  existsSync,
  ftruncateSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join, relative } from 'node:path';
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
  const copied = join(directory, 'postgres');
  const { folders, files } = contentsOf(join(made, 'postgres'));
  mkdirSync(directory, { recursive: true });
  for (const folder of folders) mkdirSync(join(copied, folder), { recursive: true, mode: 0o700 });
  for (const { path, parts } of files) {
    const file = openSync(join(copied, path), 'w', 0o600);
    for (const { at, content } of parts) writeSync(file, content, 0, content.length, at);
    if (isLog(path)) ftruncateSync(file, logBytes);
    closeSync(file);
  }
}

interface Contents {
  readonly folders: readonly string[];
  readonly files: readonly {
    readonly path: string;
    readonly parts: readonly { readonly at: number; readonly content: Buffer }[];
  }[];
}

/** The last few that were copied, since the tests of a file copy the same one again and again. */
const kept = new Map<string, Contents>();
const mostKept = 4;

function contentsOf(from: string): Contents {
  const known = kept.get(from) ?? readContents(from);
  kept.delete(from);
  kept.set(from, known);
  if (kept.size > mostKept) kept.delete(kept.keys().next().value!);
  return known;
}

function readContents(from: string): Contents {
  const names = readdirSync(from, { withFileTypes: true, recursive: true }).map((entry) => ({
    path: relative(from, join(entry.parentPath, entry.name)),
    isFolder: entry.isDirectory(),
  }));
  const paths = (areFolders: boolean) => names.flatMap(({ path, isFolder }) => (isFolder === areFolders ? [path] : []));
  const files = paths(false).map((path) => {
    const content = readFileSync(join(from, path));
    return { path, parts: isLog(path) ? partsOfLog(content) : [{ at: 0, content }] };
  });
  return { folders: ['', ...paths(true).sort()], files };
}

const pageBytes = 8_192;

/**
 * A start reads the head of the log, and the record of the clean end of before, which is its last. What stands between them made the tables,
 * and takes half of all bytes.
 */
function partsOfLog(content: Buffer): Contents['files'][number]['parts'] {
  const at = Math.max(pageBytes, content.length - (content.length % pageBytes) - 8 * pageBytes);
  return [
    { at: 0, content: Buffer.from(content.subarray(0, pageBytes)) },
    { at, content: Buffer.from(content.subarray(at)) },
  ];
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

const isLog = (path: string) => /(?:^|pg_wal\/)[0-9A-F]{24}$/.test(path);

/** Files of the write-ahead log, which are as long as each other and end in zeros. */
function logsOf(directory: string): string[] {
  const logs = join(directory, 'postgres/pg_wal');
  return readdirSync(logs)
    .filter(isLog)
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
