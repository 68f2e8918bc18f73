/** A disk in memory behind the journal's file functions: what was not synced can be lost, and it can be full, slow or torn. */
import { dirname } from 'node:path';
import type { Files } from '../../plugins/billing/journal/segments.ts';
import type { Chance } from './chance.ts';
import type { Life, Schedule } from './schedule.ts';

interface StoredFile {
  data: Buffer;
  length: number;
  /** As much of it as survives a power cut. */
  synced: number;
  /** What is not synced: the lines' numbers, and where they end. */
  unsafe: { readonly number: number; readonly end: number }[];
  /** From here on the system has forgotten after a failed sync that anything is to be written. */
  forgottenFrom: number;
  /** What was put over older bytes and is not synced, and the bytes as they are safe. */
  overwrites: Overwrite[];
  safe: Buffer | undefined;
}

interface Overwrite {
  readonly from: number;
  readonly data: Buffer;
  forgotten: boolean;
}

export interface DiskFaults {
  /** Writes fail after so many more bytes; undefined: there is room. */
  roomBytes: number | undefined;
  syncFails: boolean;
  /** A power cut tears everything that was put over older bytes and is not synced, each near its beginning. */
  tears: boolean;
}

/** What a crash takes with it: `process`, nothing that was written; `power`, what was not synced, or a part of it. */
export type CrashKind = 'process' | 'power';

export class Disk {
  readonly faults: DiskFaults = { roomBytes: undefined, syncFails: false, tears: false };
  /** Lines that were written whole so far. */
  writes = 0;
  readonly #schedule: Schedule;
  readonly #chance: Chance;
  readonly #files = new Map<string, StoredFile>();
  readonly #open = new Map<number, StoredFile>();
  readonly #locks = new Map<string, Life>();
  /** Removed, but the directory was not synced since: a power cut brings the last of them back. */
  #removed: { path: string; file: StoredFile }[] = [];
  #descriptors = 2;

  constructor(schedule: Schedule, chance: Chance) {
    this.#schedule = schedule;
    this.#chance = chance;
  }

  /** The functions that a process of this life is given. */
  filesOf(life: Life): Files {
    return {
      ensure: () => {},
      list: (directory) => [...this.#files.keys()].filter((path) => dirname(path) === directory).map(baseName),
      read: (path) => {
        const { data, length } = this.#find(path);
        return Buffer.from(data.subarray(0, length));
      },
      create: (path) => this.#create(path),
      open: (path) => this.#openAgain(path),
      rewrite: (descriptor, data, from) => this.#rewrite(this.#opened(descriptor), data, from),
      write: (descriptor, data) => this.#write(this.#opened(descriptor), data),
      truncate: (file, length) => {
        const stored = typeof file === 'number' ? this.#opened(file) : this.#find(file);
        stored.length = length;
        stored.synced = Math.min(stored.synced, length);
      },
      sync: (descriptor) => this.#sync(this.#opened(descriptor), life),
      close: (descriptor) => void this.#open.delete(descriptor),
      remove: (path) => {
        const file = this.#files.get(path);
        if (file !== undefined) this.#removed.push({ path, file });
        this.#files.delete(path);
      },
      lock: (path) => this.#lock(path, life),
    };
  }

  /** All lines up to this number survive a power cut. */
  get safeWrites(): number {
    let safe = this.writes;
    for (const { unsafe } of this.#files.values()) {
      if (unsafe.length > 0) safe = Math.min(safe, unsafe[0]!.number - 1);
    }
    return safe;
  }

  crash(kind: CrashKind): void {
    this.#open.clear();
    if (kind === 'process') return;
    for (const file of this.#files.values()) this.#cut(file);
    const back = this.#chance.below(this.#removed.length + 1);
    for (const { path, file } of this.#removed.slice(this.#removed.length - back)) this.#files.set(path, file);
    this.#removed = [];
  }

  /** A part of what was not synced survives; of the rest some blocks may hold nothing but zeros. */
  #cut(file: StoredFile): void {
    if (file.safe !== undefined) this.#loseOverwrites(file, file.safe);
    if (file.synced >= file.length) return;
    const kept = file.synced + this.#chance.below(file.length - file.synced + 1);
    file.data.fill(0, kept, file.length);
    if (kept === file.synced || this.#chance.oneIn(2)) file.length = kept;
    else file.length = kept + this.#chance.below(Math.min(64, file.length - kept) + 1);
    Object.assign(file, empty(), { synced: file.length });
  }

  /** Bytes that were put over older ones may each be there, whole or in part, or not. */
  #loseOverwrites(file: StoredFile, safe: Buffer): void {
    const lost = Buffer.alloc(file.length);
    safe.copy(lost);
    for (const { from, data } of file.overwrites) {
      const fate = this.faults.tears ? 4 : this.#chance.below(8);
      const limit = this.faults.tears ? Math.min(data.length, 32) : data.length;
      if (fate < 4) data.copy(lost, from);
      else if (fate === 4) data.subarray(0, this.#chance.below(limit)).copy(lost, from);
    }
    lost.copy(file.data);
    Object.assign(file, { safe: undefined, overwrites: [] });
  }

  #create(path: string): number {
    if (this.faults.roomBytes !== undefined && this.faults.roomBytes <= 0) throw diskFull();
    if (this.#files.has(path)) throw Object.assign(new Error(`EEXIST: ${path}`), { code: 'EEXIST' });
    const file: StoredFile = { data: Buffer.alloc(4_096), ...empty(), length: 0 };
    this.#files.set(path, file);
    this.#removed = [];
    return this.#descriptorOf(file);
  }

  #openAgain(path: string): number {
    return this.#descriptorOf(this.#find(path));
  }

  #descriptorOf(file: StoredFile): number {
    this.#descriptors += 1;
    this.#open.set(this.#descriptors, file);
    return this.#descriptors;
  }

  /** Needs room on the disk only where the file grows. */
  #rewrite(file: StoredFile, data: Uint8Array, from: number): void {
    const { roomBytes } = this.faults;
    const grows = from + data.length > file.length;
    if (grows && roomBytes !== undefined && roomBytes <= 0) throw diskFull();
    file.safe ??= Buffer.from(file.data.subarray(0, file.length));
    if (grows) {
      resize(file, from + data.length);
      file.length = from + data.length;
    }
    file.data.set(data, from);
    file.overwrites.push({ from, data: Buffer.from(data), forgotten: false });
    if (from <= file.forgottenFrom && from + data.length >= file.forgottenFrom)
      file.forgottenFrom = Number.POSITIVE_INFINITY;
  }

  #write(file: StoredFile, data: Uint8Array): number {
    const { faults } = this;
    if (faults.roomBytes !== undefined && faults.roomBytes <= 0) throw diskFull();
    let bytes = Math.min(data.length, faults.roomBytes ?? data.length);
    // A write may take less than it was given, and be called again for the rest.
    if (bytes > 1 && this.#chance.oneIn(200)) bytes = this.#chance.between(1, bytes - 1);
    if (faults.roomBytes !== undefined) faults.roomBytes -= bytes;
    append(file, data.subarray(0, bytes));
    file.unsafe.push({ number: this.writes + 1, end: file.length });
    if (data[bytes - 1] === 0x0a) this.writes += 1;
    return bytes;
  }

  /** Makes safe what was written before it was called. */
  #sync(file: StoredFile, life: Life): Promise<void> {
    const { length } = file;
    const overwritten = file.overwrites.length;
    return new Promise((resolve, reject) => {
      this.#schedule.after(this.#chance.delay(2), life, 'sync', () => {
        if (this.faults.syncFails) {
          // What could not be written is taken for written from now on: the next sync does not try it again.
          file.forgottenFrom = Math.min(file.forgottenFrom, file.synced);
          for (const each of file.overwrites) each.forgotten = true;
          reject(Object.assign(new Error('EIO: the disk does not answer'), { code: 'EIO' }));
          return;
        }
        file.synced = Math.max(file.synced, Math.min(length, file.length, file.forgottenFrom));
        if (overwritten > 0) keepOverwrites(file, overwritten);
        file.unsafe = file.unsafe.filter(({ end }) => end > file.synced);
        resolve();
      });
    });
  }

  #lock(path: string, life: Life) {
    if (this.#locks.get(path)?.alive === true) throw new Error(`${path} is held by another process`);
    this.#locks.set(path, life);
    return { release: () => void this.#locks.delete(path) };
  }

  #opened(descriptor: number): StoredFile {
    const file = this.#open.get(descriptor);
    if (file === undefined) throw Object.assign(new Error('EBADF: bad file descriptor'), { code: 'EBADF' });
    return file;
  }

  #find(path: string): StoredFile {
    const file = this.#files.get(path);
    if (file === undefined) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
    return file;
  }
}

function empty(): Omit<StoredFile, 'data' | 'length'> {
  return { synced: 0, unsafe: [], forgottenFrom: Number.POSITIVE_INFINITY, overwrites: [], safe: undefined };
}

/** The first so many overwrites are safe, those that the system has forgotten excepted. */
function keepOverwrites(file: StoredFile, count: number): void {
  const safe = Buffer.alloc(file.length);
  file.safe?.copy(safe);
  const done = file.overwrites.slice(0, count).filter(({ forgotten }) => !forgotten);
  for (const { from, data } of done) data.copy(safe, from);
  const isCovered = (old: Overwrite) =>
    done.some(({ from, data }) => from <= old.from && from + data.length >= old.from + old.data.length);
  const left = file.overwrites.filter((each, index) => !done.includes(each) && !(index < count && isCovered(each)));
  file.overwrites = left;
  file.safe = left.length === 0 ? undefined : safe;
}

function resize(file: StoredFile, bytes: number): void {
  if (bytes <= file.data.length) return;
  const larger = Buffer.alloc(Math.max(file.data.length * 2, bytes));
  file.data.copy(larger, 0, 0, file.length);
  file.data = larger;
}

function append(file: StoredFile, data: Uint8Array): void {
  resize(file, file.length + data.length);
  file.data.set(data, file.length);
  file.length += data.length;
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

function diskFull(): Error {
  return Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
}
