/** The journal's files: their names, the file operations it needs, and reading a file back. */
import {
  accessSync,
  closeSync,
  constants,
  fdatasync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { makeDirectory } from '../../../core/tools/unwritable.ts';
import { decodeLine, type Line } from '../model/records.ts';
import { type Lock, takeLock } from './lock.ts';

/** The file system operations of the journal; tests supply one that fails. */
export interface Files {
  ensure(directory: string): void;
  /** Names in a directory; none when it does not exist. */
  list(directory: string): string[];
  read(path: string): Buffer;
  /** Creates a file, open for appending, with a durable name. Fails when it exists. */
  create(path: string): number;
  /** Opens an existing file for `rewrite`. */
  open(path: string): number;
  /** Overwrites bytes at `from` in a file opened by `open`. */
  rewrite(descriptor: number, data: Uint8Array, from: number): void;
  /** Returns the bytes written, perhaps fewer than given. */
  write(descriptor: number, data: Uint8Array): number;
  truncate(file: number | string, length: number): void;
  sync(descriptor: number): Promise<void>;
  close(descriptor: number): void;
  remove(path: string): void;
  /** Throws a sentence while another process holds the lock. */
  lock(path: string): Lock;
}

const datasync = promisify(fdatasync);

export const nodeFiles: Files = {
  ensure: (directory) => {
    makeDirectory(directory);
    // What SQLite says of a directory that is read-only, where the lock is, does not name the cause.
    accessSync(directory, constants.W_OK | constants.X_OK);
  },
  list: (directory) => {
    try {
      return readdirSync(directory);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  },
  read: (path) => readFileSync(path),
  create: (path) => {
    const descriptor = openSync(path, 'ax', 0o600);
    try {
      syncDirectory(dirname(path));
    } catch (error) {
      // Otherwise the next try would find a file of this name.
      closeSync(descriptor);
      rmSync(path, { force: true });
      throw error;
    }
    return descriptor;
  },
  open: (path) => openSync(path, 'r+'),
  rewrite: (descriptor, data, from) => {
    for (let done = 0; done < data.length; ) {
      done += writeSync(descriptor, data, done, data.length - done, from + done);
    }
  },
  write: (descriptor, data) => writeSync(descriptor, data),
  truncate: (file, length) => (typeof file === 'number' ? ftruncateSync(file, length) : truncateSync(file, length)),
  sync: (descriptor) => datasync(descriptor),
  close: closeSync,
  remove: (path) => rmSync(path, { force: true }),
  lock: takeLock,
};

function syncDirectory(path: string): void {
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

export interface Segment {
  readonly path: string;
  /** Sequence number of its first record, which names the file. */
  readonly first: number;
  /** Sequence number of its last record; one less than `first` while it is empty. */
  last: number;
  bytes: number;
}

export function segmentPath(directory: string, first: number): string {
  return join(directory, `${String(first).padStart(16, '0')}.journal`);
}

/** The directory's segments in order of their names; `last` and `bytes` are known once they are read. */
export function listSegments(files: Files, directory: string): Segment[] {
  return files
    .list(directory)
    .flatMap((name) => /^(\d{16})\.journal$/.exec(name)?.[1] ?? [])
    .map((digits) => Number.parseInt(digits, 10))
    .sort((left, right) => left - right)
    .map((first) => ({ path: segmentPath(directory, first), first, last: first - 1, bytes: 0 }));
}

/** A line of a segment and its offsets. */
export interface PlacedLine extends Line {
  readonly from: number;
  /** After its line feed. */
  readonly to: number;
  /** Sequence number of its last record. */
  readonly last: number;
}

export interface Scan {
  readonly lines: PlacedLine[];
  /** The end of the whole lines. */
  readonly goodBytes: number;
  /** The offset of a broken line that whole lines follow. */
  readonly damagedAt: number | undefined;
}

/**
 * Scans a segment. A broken line at its very end was never acknowledged and is skipped; a broken line before that
 * is damage.
 */
export function scanSegment(data: Buffer, first: number): Scan {
  const lines: PlacedLine[] = [];
  let from = 0;
  let next = first;
  for (let end = data.indexOf(0x0a); end !== -1; end = data.indexOf(0x0a, from)) {
    const line = decodeLine(data.subarray(from, end));
    if (line?.first !== next) {
      const torn = line === undefined && !holdsLine(data, end + 1);
      return { lines, goodBytes: from, damagedAt: torn ? undefined : from };
    }
    next += line.records.length;
    lines.push({ ...line, from, to: end + 1, last: next - 1 });
    from = end + 1;
  }
  return { lines, goodBytes: from, damagedAt: undefined };
}

function holdsLine(data: Buffer, from: number): boolean {
  let offset = from;
  for (let end = data.indexOf(0x0a, offset); end !== -1; end = data.indexOf(0x0a, offset)) {
    if (decodeLine(data.subarray(offset, end)) !== undefined) return true;
    offset = end + 1;
  }
  return false;
}
