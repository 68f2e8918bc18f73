/** Tells when files have changed, once they have come to rest; however they are written: in place, renamed into it, or by a link. */
import { type FSWatcher, watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { Log } from './contract.ts';

/** Editors and deployments write several files, or one in several steps. */
const settleMs = 300;

export class FileWatch {
  readonly #log: Log;
  readonly #changed: () => void;
  readonly #watchers = new Map<string, FSWatcher>();
  /** Absolute path to the text as it was read last. */
  #files: ReadonlyMap<string, string> = new Map();
  #timer: NodeJS.Timeout | undefined;

  constructor(log: Log, changed: () => void) {
    this.#log = log;
    this.#changed = changed;
  }

  /** Watches these files from now on, and no others. Directories are watched: a file that is replaced is another one. */
  follow(files: ReadonlyMap<string, string>): void {
    this.#files = files;
    const directories = new Set([...files.keys()].map((file) => dirname(file)));
    for (const [directory, watcher] of this.#watchers)
      if (!directories.has(directory)) this.#forget(directory, watcher);
    for (const directory of directories) if (!this.#watchers.has(directory)) this.#watch(directory);
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const [directory, watcher] of this.#watchers) this.#forget(directory, watcher);
  }

  #watch(directory: string): void {
    try {
      const watcher = watch(directory, { persistent: false }, (_event, name) => this.#seen(directory, name));
      watcher.on('error', (error) => this.#fail(directory, error));
      this.#watchers.set(directory, watcher);
    } catch (error) {
      this.#fail(directory, error);
    }
  }

  #fail(directory: string, error: unknown): void {
    const watcher = this.#watchers.get(directory);
    if (watcher !== undefined) this.#forget(directory, watcher);
    this.#log.error({ error, directory }, 'changes cannot be watched; SIGHUP still takes them up');
  }

  #forget(directory: string, watcher: FSWatcher): void {
    this.#watchers.delete(directory);
    watcher.close();
  }

  #seen(directory: string, name: string | null): void {
    // Clusters mount files as links through a directory `..data` that is swapped.
    const concerns =
      name === null || name.startsWith('..') || [...this.#files.keys()].some((file) => isAt(file, directory, name));
    if (!concerns) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#settled(), settleMs);
    this.#timer.unref();
  }

  /** Somebody may have touched a file without changing it, or it is what was read already. */
  async #settled(): Promise<void> {
    for (const [file, text] of this.#files) {
      if ((await readFile(file, 'utf8').catch(() => undefined)) === text) continue;
      this.#changed();
      return;
    }
  }
}

function isAt(file: string, directory: string, name: string): boolean {
  return basename(file) === name && dirname(file) === directory;
}
