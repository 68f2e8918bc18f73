/** Reports changed files once they are stable, whether they are written in place, renamed or linked. */
import { type FSWatcher, watch } from 'node:fs';
import type { Log } from '../contract/host-tools.ts';
import { entriesOf } from './secrets/path-entries.ts';

/** Editors and deployments write several files, or one in several steps. */
const settleMs = 300;
/** How long to wait for the rest of a text that looks incomplete. */
const unfinishedMs = 5_000;

type Texts = ReadonlyMap<string, string | undefined>;

export interface FileWatchOptions {
  readonly log: Log;
  readonly changed: () => void;
  /** undefined: it cannot be read. */
  readonly read: (file: string) => string | undefined | Promise<string | undefined>;
  /** Whether a text looks as if the rest is still to be written. */
  readonly seemsUnfinished: (text: string, before: string | undefined) => boolean;
  /** Looks so often without being called, for file systems that report nothing. */
  readonly everyMs?: number;
}

export class FileWatch {
  readonly #options: FileWatchOptions;
  readonly #watchers = new Map<string, FSWatcher>();
  /** The texts that were read last, by absolute path. */
  #files: Texts = new Map();
  /** `directory/name` of the watched files. */
  #entries = new Set<string>();
  /** The changed texts that were reported last: they may have been refused. */
  #reported: Texts = new Map();
  #timer: NodeJS.Timeout | undefined;
  #interval: NodeJS.Timeout | undefined;
  /** The wait for an incomplete text is over. */
  #waited = false;

  constructor(options: FileWatchOptions) {
    this.#options = options;
  }

  /** Watches exactly these files. Watches directories, because a replaced file is a new inode. */
  follow(files: Texts): void {
    this.#files = files;
    this.#reported = new Map();
    this.#followLinks();
    const { everyMs } = this.#options;
    if (everyMs === undefined || files.size === 0) this.#stopLooking();
    else this.#interval ??= setInterval(() => void this.#settled(), everyMs).unref();
  }

  close(): void {
    this.#files = new Map();
    clearTimeout(this.#timer);
    this.#stopLooking();
    for (const [directory, watcher] of this.#watchers) this.#forget(directory, watcher);
  }

  #stopLooking(): void {
    clearInterval(this.#interval);
    this.#interval = undefined;
  }

  #followLinks(): void {
    const entries = [...this.#files.keys()].flatMap(entriesOf);
    this.#entries = new Set(entries.map(({ directory, name }) => `${directory}/${name}`));
    const directories = new Set(entries.map(({ directory }) => directory));
    for (const [directory, watcher] of this.#watchers)
      if (!directories.has(directory)) this.#forget(directory, watcher);
    for (const directory of directories) if (!this.#watchers.has(directory)) this.#watch(directory);
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
    this.#options.log.error({ error, directory }, 'changes cannot be watched; SIGHUP still takes them up');
  }

  #forget(directory: string, watcher: FSWatcher): void {
    this.#watchers.delete(directory);
    watcher.close();
  }

  #seen(directory: string, name: string | null): void {
    // Kubernetes mounts files as links through a directory `..data` that is swapped.
    const concerns = name === null || name.startsWith('..') || this.#entries.has(`${directory}/${name}`);
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
    const { log, read, seemsUnfinished } = this.#options;
    const followed = this.#files;
    const texts = await Promise.all(
      [...followed].map(async ([file, before]) => ({ file, before, text: await read(file) })),
    );
    if (followed !== this.#files) return;
    this.#followLinks();
    const changed = texts.filter(
      ({ before, file, text }) => text !== (this.#reported.has(file) ? this.#reported.get(file) : before),
    );
    if (changed.length === 0) return;
    const half = changed.find(({ before, text }) => text !== undefined && seemsUnfinished(text, before));
    if (half === undefined || this.#waited) {
      this.#reported = new Map(texts.map(({ file, text }) => [file, text]));
      this.#options.changed();
      return;
    }
    log.info({ file: half.file }, 'a file seems to be written at the moment: it is applied when it is complete');
    this.#waited = true;
    this.#arm(unfinishedMs);
  }
}

/** A file that is written in place is empty, ends within a line, or is a prefix of its old text until it is complete. */
export function seemsUnfinished(text: string, before = ''): boolean {
  if (text.trim() === '' || before.startsWith(text)) return true;
  return !text.endsWith('\n') && before.endsWith('\n');
}
