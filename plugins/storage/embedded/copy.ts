/** The last good copy of the database's directory: made at a checkpoint, one at a time, of files that have changed since the one before. */
import {
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { syncFiles, syncPath } from './tree.ts';

/** Where a copy of `directory` stands. */
export interface CopyPaths {
  readonly live: string;
  readonly copy: string;
  readonly draft: string;
  readonly old: string;
}

export function pathsOf(directory: string): CopyPaths {
  const path = (name: string) => join(directory, name);
  return {
    live: path('postgres'),
    copy: path('postgres.copy'),
    draft: path('postgres.draft'),
    old: path('postgres.old'),
  };
}

/** Path of a directory's state before its restore. */
export function brokenPath(directory: string): string {
  return join(directory, 'postgres.broken');
}

/** The files of a copy stand in this folder of it, beside the manifest. */
export const dataFolder = 'data';
const manifestName = 'manifest.json';

/** A file's state when it was copied. */
interface Stamp {
  readonly ino: string;
  readonly size: string;
  readonly changed: string;
  /** It had not been changed for a while: if it looks the same later, it is. */
  readonly settled: boolean;
}

export interface Manifest {
  /** Where the log stood, as `pg_lsn` text. */
  readonly lsn: string;
  /** Name of the first log file that a start from this copy reads. */
  readonly log: string;
  readonly files: Readonly<Record<string, Stamp>>;
}

/** Written times have the grain of the system's clock tick; two changes within one would look like one. */
const settledAfterNs = 2_000_000_000n;
const filesPerTurn = 20;

/** undefined when there is no copy. */
export function readManifest(directory: string): Manifest | undefined {
  const path = join(pathsOf(directory).copy, manifestName);
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Manifest) : undefined;
}

/** Ends what a stop in the middle of a change of copies left half done. */
export function tidyCopies(directory: string): void {
  const { copy, draft, old } = pathsOf(directory);
  rmSync(draft, { recursive: true, force: true });
  if (!existsSync(copy) && existsSync(old)) renameSync(old, copy);
  rmSync(old, { recursive: true, force: true });
}

/** A copy in the making. */
export class Draft {
  readonly #paths: CopyPaths;
  readonly #before: Manifest | undefined;
  readonly #files = new Map<string, Stamp>();
  readonly #unsynced = new Set<string>();

  constructor(directory: string) {
    tidyCopies(directory);
    this.#paths = pathsOf(directory);
    this.#before = readManifest(directory);
    mkdirSync(join(this.#paths.draft, dataFolder), { recursive: true, mode: 0o700 });
  }

  /** Copies most of it while the database goes on: what changes meanwhile is copied again by `finish`. */
  async gather(): Promise<void> {
    let count = 0;
    for (const _ of this.#steps()) if (++count % filesPerTurn === 0) await setImmediate();
    await this.#sync();
  }

  /** Copies the rest. Call it only while nothing is written, right after a checkpoint. The checkpoint's log begins in the file `log`. */
  async finish(lsn: string, log: string): Promise<void> {
    for (const _ of this.#steps());
    const { live, draft } = this.#paths;
    makeFolders(live, join(draft, dataFolder));
    for (const name of readdirSync(join(live, 'pg_wal')).filter((file) => file.length === 24 && file >= log)) {
      this.#copyFile(join('pg_wal', name));
    }
    const manifest: Manifest = { lsn, log, files: Object.fromEntries(this.#files) };
    writeFileSync(join(draft, manifestName), JSON.stringify(manifest));
    this.#unsynced.add(join(draft, manifestName));
    await this.#sync();
    await syncFiles([draft, ...foldersOf(draft)]);
    this.#exchange();
  }

  async #sync(): Promise<void> {
    const paths = [...this.#unsynced].filter((path) => existsSync(path));
    this.#unsynced.clear();
    await syncFiles(paths);
  }

  *#steps(): Generator<void> {
    const now = this.#timeOfFiles();
    const present = new Set<string>();
    for (const path of filesOf(this.#paths.live, '')) {
      present.add(path);
      const stamp = stampOf(join(this.#paths.live, path), now);
      if (stamp !== undefined && !same(this.#files.get(path), stamp)) this.#take(path, stamp);
      yield;
    }
    for (const path of this.#files.keys()) {
      if (present.has(path)) continue;
      rmSync(join(this.#paths.draft, dataFolder, path), { force: true });
      this.#files.delete(path);
    }
  }

  #take(path: string, stamp: Stamp): void {
    const target = join(this.#paths.draft, dataFolder, path);
    rmSync(target, { force: true });
    if (same(this.#before?.files[path], stamp)) {
      mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
      linkSync(join(this.#paths.copy, dataFolder, path), target);
    } else if (!this.#copyFile(path)) return;
    this.#files.set(path, stamp);
  }

  /** false: it is gone. */
  #copyFile(path: string): boolean {
    const target = join(this.#paths.draft, dataFolder, path);
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
    try {
      copyFileSync(join(this.#paths.live, path), target, constants.COPYFILE_FICLONE);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
      throw error;
    }
    this.#unsynced.add(target);
    return true;
  }

  /** By the clock that stamps files. */
  #timeOfFiles(): bigint {
    const path = join(this.#paths.draft, 'time');
    writeFileSync(path, '.');
    return lstatSync(path, { bigint: true }).mtimeNs;
  }

  #exchange(): void {
    const { copy, draft, old } = this.#paths;
    if (existsSync(copy)) renameSync(copy, old);
    renameSync(draft, copy);
    syncPath(dirname(copy));
    rmSync(old, { recursive: true, force: true });
    rmSync(brokenPath(dirname(copy)), { recursive: true, force: true });
  }
}

/** Everything but the log, and what a start makes again. */
function* filesOf(root: string, folder: string): Generator<string> {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (path === 'pg_wal' || entry.name === 'pgsql_tmp' || entry.name === 'postmaster.pid') continue;
    if (entry.isDirectory()) yield* filesOf(root, path);
    else yield path;
  }
}

/** Postgres does not start without its empty folders either. */
function makeFolders(from: string, to: string): void {
  mkdirSync(to, { recursive: true, mode: 0o700 });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    if (entry.isDirectory()) makeFolders(join(from, entry.name), join(to, entry.name));
  }
}

function stampOf(path: string, now: bigint): Stamp | undefined {
  const found = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (found === undefined) return undefined;
  const { ino, size, mtimeNs } = found;
  return { ino: String(ino), size: String(size), changed: String(mtimeNs), settled: now - mtimeNs > settledAfterNs };
}

function same(known: Stamp | undefined, stamp: Stamp): boolean {
  if (known === undefined || !known.settled) return false;
  return known.ino === stamp.ino && known.size === stamp.size && known.changed === stamp.changed;
}

function* foldersOf(path: string): Generator<string> {
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    yield join(path, entry.name);
    yield* foldersOf(join(path, entry.name));
  }
}
