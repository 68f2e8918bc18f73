/** A database that is made while its gateway still loads, and is taken away when the gateway's file is refused. */
import { existsSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { EmbeddedBackend } from './backend.ts';
import { pathsOf } from './copy.ts';
import { type DirectoryLock, guardPath } from './lock.ts';
import { markPath } from './mark.ts';
import type { Place } from './messages.ts';

/** A directory that this process owns, and its open database. */
export interface Taken {
  readonly lock: DirectoryLock;
  readonly backend: EmbeddedBackend;
}

export interface Ways {
  /** Undefined: another process owns the directory. */
  lock(place: Place): Promise<DirectoryLock | undefined>;
  open(place: Place): Promise<EmbeddedBackend>;
}

interface Made extends Taken {
  readonly isNew: boolean;
}

export class Early {
  readonly #ways: Ways;
  #begun:
    | { readonly place: Place; readonly folders: readonly string[]; readonly made: Promise<Made | undefined> }
    | undefined;

  constructor(ways: Ways) {
    this.#ways = ways;
  }

  /** Makes a database where there is none. One that exists is opened by an order to do so alone: that may change it. */
  begin(place: Place): void {
    if (this.#begun !== undefined || hasDatabase(place)) return;
    const folders = missingFolders(place.directory);
    const made = this.#take(place);
    made.catch(() => undefined); // It is said to the one who opens the directory.
    this.#begun = { place, folders, made };
  }

  /** The database at `place`, which stays from now on. Undefined: another process owns the directory. */
  async open(place: Place): Promise<Taken | undefined> {
    if (this.#begun?.place.directory !== place.directory) {
      await this.undo();
      return this.#take(place);
    }
    const { made } = this.#begun;
    this.#begun = undefined;
    return made;
  }

  /** Takes away what was made and not opened; what others have put beside it stays. */
  async undo(): Promise<void> {
    if (this.#begun === undefined) return;
    const { place, folders } = this.#begun;
    const made = await this.#begun.made.catch(() => undefined);
    this.#begun = undefined;
    if (made === undefined) return;
    await made.backend.close();
    if (made.isNew) removeDatabase(place.directory);
    made.lock.release();
    try {
      for (const folder of folders) rmdirSync(folder);
    } catch {
      // Another process uses it.
    }
  }

  async #take(place: Place): Promise<Made | undefined> {
    const lock = await this.#ways.lock(place);
    if (lock === undefined) return undefined;
    const isNew = !hasDatabase(place);
    return { lock, isNew, backend: await this.#ways.open(place) };
  }
}

function hasDatabase({ directory }: Place): boolean {
  const { live, copy } = pathsOf(directory);
  return existsSync(live) || existsSync(copy);
}

/** The lock's file goes while the lock is held: who waits for it makes another. */
function removeDatabase(directory: string): void {
  rmSync(pathsOf(directory).live, { recursive: true, force: true });
  rmSync(markPath(directory), { force: true });
  rmSync(guardPath(directory), { force: true });
}

/** The folders that have to be made for `directory`, from the innermost. */
function missingFolders(directory: string): string[] {
  const missing: string[] = [];
  for (let at = resolve(directory); !existsSync(at); at = dirname(at)) missing.push(at);
  return missing;
}
