/** Reports changed files once they are stable, whether they are written in place, renamed or linked. */
import { type FSWatcher, watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { Log } from '../contract/host-tools.ts';

/** Editors and deployments write several files, or one in several steps. */
const settleMs = 300;
/** How long to wait for the rest of a text that looks incomplete. */
const unfinishedMs = 5_000;

export class FileWatch {
  readonly #log: Log;
  readonly #changed: () => void;
  readonly #watchers = new Map<string, FSWatcher>();
  /** The texts that were read last, by absolute path. */
  #files: ReadonlyMap<string, string> = new Map();
  #timer: NodeJS.Timeout | undefined;
  /** The wait for an incomplete text is over. */
  #waited = false;

  constructor(log: Log, changed: () => void) {
    this.#log = log;
    this.#changed = changed;
  }

  /** Watches exactly these files. Watches their directories, because a replaced file is a new inode. */
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
    // Kubernetes mounts files as links through a directory `..data` that is swapped.
    const concerns =
      name === null || name.startsWith('..') || [...this.#files.keys()].some((file) => isAt(file, directory, name));
    if (!concerns) return;
    this.#waited = false;
    this.#arm(settleMs);
  }

  #arm(afterMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#settled(), afterMs);
    this.#timer.unref();
  }

  /** A file may have been touched without a change of its text. */
  async #settled(): Promise<void> {
    const texts = await Promise.all(
      [...this.#files].map(async ([file, before]) => ({
        file,
        before,
        text: await readFile(file, 'utf8').catch(() => undefined),
      })),
    );
    const changed = texts.filter(({ before, text }) => text !== before);
    if (changed.length === 0) return;
    const half = changed.find(({ before, text }) => text !== undefined && seemsUnfinished(text, before));
    if (half === undefined || this.#waited) {
      this.#changed();
      return;
    }
    this.#log.info({ file: half.file }, 'a file seems to be written at the moment: it is taken up when it is complete');
    this.#waited = true;
    this.#arm(unfinishedMs);
  }
}

/** A file that is written in place is empty, ends within a line, or is a prefix of its old text until it is complete. */
function seemsUnfinished(text: string, before: string): boolean {
  if (text.trim() === '' || before.startsWith(text)) return true;
  return !text.endsWith('\n') && before.endsWith('\n');
}

function isAt(file: string, directory: string, name: string): boolean {
  return basename(file) === name && dirname(file) === directory;
}
