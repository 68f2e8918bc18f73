/** A disk that loses power: knows of each file what was synced, and gives a directory back as a power cut may leave it. */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join, relative } from 'node:path';

/** Bytes that a disk writes as one. */
const sectorBytes = 4096;

interface Range {
  readonly from: number;
  readonly to: number;
}

/**
 * Watches every write and sync of this process under `root`. As file systems with a journal do, a synced file has its name
 * too; renames and removals are safe once their directory is synced.
 */
export class SimulatedDisk {
  readonly #root: string;
  readonly #shadow: string;
  /** Path, relative to the root, of each safe name, and the file behind it. */
  readonly #names = new Map<string, bigint>();
  readonly #unsynced = new Map<bigint, Range[]>();
  readonly #originals = { writeSync: fs.writeSync, fsyncSync: fs.fsyncSync, fdatasyncSync: fs.fdatasyncSync };
  syncs = 0;

  /** Takes what is under `root` now as safe; keeps its own files in `shadow`. */
  constructor(root: string, shadow: string) {
    this.#root = root;
    this.#shadow = shadow;
    fs.mkdirSync(shadow, { recursive: true });
    for (const path of filesUnder(root)) this.#keepFile(path);
    const { writeSync, fsyncSync, fdatasyncSync } = this.#originals;
    Object.assign(fs, {
      writeSync: (descriptor: number, data: Uint8Array, offset?: number, length?: number, position?: number) => {
        const bytes = writeSync(descriptor, data, offset as number, length, position);
        this.#noteWrite(descriptor, position, bytes);
        return bytes;
      },
      fsyncSync: (descriptor: number) => {
        fsyncSync(descriptor);
        this.#noteSync(descriptor);
      },
      fdatasyncSync: (descriptor: number) => {
        fdatasyncSync(descriptor);
        this.#noteSync(descriptor);
      },
    });
    syncBuiltinESMExports();
  }

  stop(): void {
    Object.assign(fs, this.#originals);
    syncBuiltinESMExports();
  }

  /** Makes `target` what is left after a power cut now: all that was synced, and of the rest each sector by `chance`. */
  cutPower(target: string, chance: () => boolean): void {
    for (const path of filesUnder(this.#root)) fs.mkdirSync(join(target, dirname(path)), { recursive: true });
    for (const path of foldersUnder(this.#root)) fs.mkdirSync(join(target, path), { recursive: true });
    for (const [path, ino] of this.#names) {
      const file = join(target, path);
      fs.mkdirSync(dirname(file), { recursive: true });
      fs.copyFileSync(join(this.#shadow, String(ino)), file);
    }
    for (const path of filesUnder(this.#root)) this.#spill(path, join(target, path), chance);
  }

  /** Sectors that were written and not synced may be on the disk all the same, in any order. */
  #spill(path: string, target: string, chance: () => boolean): void {
    const live = join(this.#root, path);
    const { ino } = fs.statSync(live, { bigint: true });
    const known = this.#names.get(path) === ino;
    if (!known && !chance()) return;
    const data = fs.readFileSync(live);
    const descriptor = fs.openSync(target, known ? 'r+' : 'w');
    const ranges = known ? (this.#unsynced.get(ino) ?? []) : [{ from: 0, to: data.length }];
    for (const { from, to } of ranges) {
      for (let at = from - (from % sectorBytes); at < to && at < data.length; at += sectorBytes) {
        if (chance()) this.#originals.writeSync(descriptor, data, at, Math.min(sectorBytes, data.length - at), at);
      }
    }
    fs.closeSync(descriptor);
  }

  #pathOf(descriptor: number): string | undefined {
    const path = relative(this.#root, fs.readlinkSync(`/proc/self/fd/${descriptor}`));
    return path.startsWith('..') || path.endsWith(' (deleted)') ? undefined : path;
  }

  #noteWrite(descriptor: number, position: number | undefined, bytes: number): void {
    const { ino, size } = fs.fstatSync(descriptor, { bigint: true });
    const from = typeof position === 'number' ? position : Math.max(0, Number(size) - bytes);
    const ranges = this.#unsynced.get(ino) ?? [];
    ranges.push({ from, to: from + bytes });
    this.#unsynced.set(ino, ranges);
  }

  #noteSync(descriptor: number): void {
    const path = this.#pathOf(descriptor);
    if (path === undefined) return;
    this.syncs += 1;
    if (fs.fstatSync(descriptor).isDirectory()) this.#keepNames(path);
    else this.#keepFile(path);
  }

  #keepFile(path: string): void {
    const live = join(this.#root, path);
    const { ino, size } = fs.statSync(live, { bigint: true });
    const shadow = join(this.#shadow, String(ino));
    if (!fs.existsSync(shadow)) fs.copyFileSync(live, shadow);
    else this.#copyRanges(live, shadow, this.#unsynced.get(ino) ?? [], Number(size));
    this.#unsynced.delete(ino);
    this.#names.set(path, ino);
  }

  #copyRanges(live: string, shadow: string, ranges: readonly Range[], size: number): void {
    const [source, target] = [fs.openSync(live, 'r'), fs.openSync(shadow, 'r+')];
    for (const { from, to } of ranges) {
      const data = Buffer.alloc(to - from);
      const bytes = fs.readSync(source, data, 0, data.length, from);
      this.#originals.writeSync(target, data, 0, bytes, from);
    }
    fs.ftruncateSync(target, size);
    fs.closeSync(source);
    fs.closeSync(target);
  }

  /** Renames and removals in this directory are safe now. */
  #keepNames(folder: string): void {
    const present = new Map<bigint, string>();
    for (const entry of fs.readdirSync(join(this.#root, folder), { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isFile()) present.set(fs.statSync(join(this.#root, path), { bigint: true }).ino, path);
    }
    for (const [path, ino] of [...this.#names]) {
      if ((dirname(path) === '.' ? '' : dirname(path)) !== (folder === '.' ? '' : folder)) continue;
      if (present.get(ino) !== path) this.#names.delete(path);
    }
    for (const [ino, path] of present) if (fs.existsSync(join(this.#shadow, String(ino)))) this.#names.set(path, ino);
  }
}

function* foldersUnder(root: string, folder = ''): Generator<string> {
  for (const entry of fs.readdirSync(join(root, folder), { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    yield join(folder, entry.name);
    yield* foldersUnder(root, join(folder, entry.name));
  }
}

function* filesUnder(root: string): Generator<string> {
  for (const folder of ['', ...foldersUnder(root)]) {
    for (const entry of fs.readdirSync(join(root, folder), { withFileTypes: true })) {
      if (entry.isFile()) yield join(folder, entry.name);
    }
  }
}
