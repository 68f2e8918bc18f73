/** Opens the database's directory; when it is lost, damaged or behind the acknowledged commits, goes back to the last good copy. */
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { brokenPath, dataFolder, pathsOf, readManifest, tidyCopies } from './copy.ts';
import { type LogPoint, SafeFiles, startParameters } from './disk.ts';
import { unpackFresh } from './fresh.ts';
import { keepBehind, MarkWriter, markPath, reaches, readMark, removeMark } from './mark.ts';
import { copyTree, syncPath, syncTree } from './tree.ts';

export interface Opened {
  readonly pglite: PGlite;
  /** Calls `listener` when a file cannot be written: calls of the database may never return from then on. */
  onWriteFailure(listener: () => void): void;
  close(): Promise<void>;
}

/** Receives the changes of the directory, for the operator's log. */
export type Report = (text: string) => void;

export interface OpenOptions {
  /** Little memory, for a database that stays small. */
  readonly isSmall?: boolean;
  /** A directory that is made again may have the tables of this schema already. */
  readonly schema?: string | undefined;
}

/**
 * Opens `<directory>/postgres`, made again when there is none and no copy either, or its first making was broken off.
 *
 * A directory that is missing or does not open is put together again from the last copy and the log that has been written
 * since, as far as it is there. If acknowledged commits are missing after that, it is not opened: the error says how to go
 * on without them.
 */
export async function openDirectory(
  directory: string,
  tell: Report,
  { isSmall = false, schema }: OpenOptions = {},
): Promise<Opened> {
  checkWritable(directory);
  const { live, copy } = pathsOf(directory);
  const incomplete = join(directory, 'postgres.incomplete');
  if (existsSync(incomplete)) rmSync(live, { recursive: true, force: true });
  else tidyCopies(directory);
  if (existsSync(live)) return openOrRestore(directory, tell, isSmall);
  if (existsSync(copy) && !existsSync(incomplete)) {
    await restore(directory);
    const opened = await openOrRestore(directory, tell, isSmall);
    tell(`${live} was missing and has been restored from the last copy`);
    return opened;
  }
  return makeNew(directory, incomplete, { isSmall, schema });
}

async function makeNew(
  directory: string,
  incomplete: string,
  { isSmall = false, schema }: OpenOptions,
): Promise<Opened> {
  const { live } = pathsOf(directory);
  removeMark(directory);
  writeFileSync(incomplete, '');
  mkdirSync(live, { mode: 0o700 });
  unpackFresh(live, schema);
  const opened = await open(directory, isSmall);
  await opened.pglite.exec('checkpoint');
  // Its first files are made by another program, which syncs nothing.
  await syncTree(live);
  rmSync(incomplete);
  syncPath(directory);
  opened.beginMark();
  return opened;
}

async function openOrRestore(directory: string, tell: Report, isSmall: boolean): Promise<Opened> {
  const { live, copy } = pathsOf(directory);
  try {
    return await openChecked(directory, isSmall);
  } catch (error) {
    // A log that breaks off gives no more from the copy on than it gave here.
    if (!existsSync(copy) || error instanceof BehindError) throw error;
    await restore(directory);
    const opened = await openChecked(directory, isSmall);
    tell(
      `${live} did not open whole and has been restored from the last copy and the log since then; what was there is ` +
        `kept as ${brokenPath(directory)}. It had said: ${(error as Error).message}`,
    );
    return opened;
  }
}

/** Commits that were acknowledged are missing. */
class BehindError extends Error {
  override readonly name = 'BehindError';

  constructor(directory: string) {
    super(
      `${pathsOf(directory).live} lacks commits that were acknowledged: its log breaks off before them. Restore a backup ` +
        'that has them, or go on without and enter money that came in since again; in both cases delete ' +
        `${markPath(directory)} before the start`,
    );
  }
}

async function openChecked(directory: string, isSmall: boolean): Promise<Opened> {
  const mark = readMark(directory);
  if (mark?.behind === true) throw new BehindError(directory);
  const opened = await open(directory, isSmall);
  if (mark === undefined || reaches(await endOfLog(opened.pglite), mark)) {
    opened.beginMark();
    return opened;
  }
  // Every start moves the log on a little: a missing position must not count as reached after a few of them.
  keepBehind(directory);
  await opened.close();
  throw new BehindError(directory);
}

async function open(directory: string, isSmall: boolean): Promise<Opened & { beginMark(): void }> {
  const { live } = pathsOf(directory);
  let writer: MarkWriter | undefined;
  const files = new SafeFiles(live);
  const pglite = await PGlite.create({ fs: files, startParams: startParameters(isSmall) }).catch((error: Error) => {
    throw new Error(`${live} cannot be opened: ${error.message}`, { cause: error });
  });
  return {
    pglite,
    onWriteFailure: (listener) => files.onWriteFailure(listener),
    // Only once it is known to be whole: before, the steps of its recovery would hide missing commits.
    beginMark: () => {
      const begun = new MarkWriter(directory);
      writer = begun;
      files.follow((point) => begun.note(point));
    },
    close: async () => {
      await pglite.close();
      writer?.close();
    },
  };
}

async function endOfLog(pglite: PGlite): Promise<LogPoint> {
  const { rows } = await pglite.query<{ name: string; bytes: number }>(
    'select file_name as name, file_offset as bytes from pg_control_checkpoint(), pg_walfile_name_offset(redo_lsn)',
  );
  return rows[0]!;
}

/** Puts the last copy and the log that was written since in the directory's place, which is kept aside. */
async function restore(directory: string): Promise<void> {
  const { live, copy, draft } = pathsOf(directory);
  const manifest = readManifest(directory);
  if (manifest === undefined) throw new Error(`${copy} is not whole: restore a backup of ${live}`);
  copyTree(join(copy, dataFolder), draft);
  const log = join(live, 'pg_wal');
  for (const name of existsSync(log) ? readdirSync(log) : []) {
    if (/^[0-9A-F]{24}$/.test(name) && name >= manifest.log) copyFileSync(join(log, name), join(draft, 'pg_wal', name));
  }
  await syncTree(draft);
  // What broke first is kept: what a restoration made of it says less.
  if (existsSync(brokenPath(directory))) rmSync(live, { recursive: true, force: true });
  else if (existsSync(live)) renameSync(live, brokenPath(directory));
  renameSync(draft, live);
  syncPath(directory);
}

/** A disk that is full or read-only is no damage: nothing is restored because of it. */
function checkWritable(directory: string): void {
  const path = join(directory, 'postgres.probe');
  try {
    writeFileSync(path, Buffer.alloc(8192));
    syncPath(path);
  } catch (error) {
    throw new Error(`${directory} cannot be written: ${(error as Error).message}`, { cause: error });
  } finally {
    rmSync(path, { force: true });
  }
}
