/** One owner for each data directory: a lock of the kernel, which ends with its process, and a file that names the owner. */
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';

const retryMs = 50;
const sqliteBusy = 5;

/** The owner of a data directory, as `postgres.lock` names it. */
export interface Owner {
  /** The process that runs the database. */
  readonly pid: number;
  /** The gateway that started it. */
  readonly gatewayPid: number;
  /** Path of the socket; empty until the server listens. */
  readonly address: string;
}

export interface DirectoryLock {
  /** Writes the server's address for other processes. */
  publish(address: string): void;
  release(): void;
}

/** The content of `postgres.lock`; undefined without the file. The process that it names may be dead. */
export function readOwner(directory: string): Owner | undefined {
  try {
    return JSON.parse(readFileSync(ownerFile(directory), 'utf8')) as Owner;
  } catch {
    return undefined;
  }
}

/**
 * Takes the directory for this process, waiting up to `waitMs` for its owner to release it. Undefined when it did not.
 *
 * A file with a process id alone cannot do this: two takers of a stale one can both win, ids are used again (in a
 * container almost surely by the next start) and mean nothing in another container. So SQLite's exclusive transaction on
 * an empty file beside it is the lock: the kernel gives it up when the process ends, however that happens.
 */
export async function lockDirectory(directory: string, waitMs: number): Promise<DirectoryLock | undefined> {
  let guard = openGuard(directory);
  for (let waitedMs = 0; !guard.tryLock(); waitedMs += retryMs) {
    if (waitedMs >= waitMs) {
      guard.close();
      return undefined;
    }
    await sleep(retryMs);
    if (guard.isCurrent()) continue;
    guard.close();
    guard = openGuard(directory);
  }
  const publish = (address: string) => writeOwner(directory, address);
  publish('');
  return {
    publish,
    release() {
      rmSync(ownerFile(directory), { force: true });
      guard.close();
    },
  };
}

interface Guard {
  /** Locks the file, if it is still the directory's. */
  tryLock(): boolean;
  isCurrent(): boolean;
  close(): void;
}

function openGuard(directory: string): Guard {
  const path = guardPath(directory);
  const database = new DatabaseSync(path, { timeout: 0 });
  const fileOf = () => statSync(path, { throwIfNoEntry: false })?.ino;
  const file = fileOf();
  // An owner that takes away a database which was never used takes the file with it.
  const isCurrent = () => file !== undefined && fileOf() === file;
  return { isCurrent, tryLock: () => begin(database) && isCurrent(), close: () => database.close() };
}

function begin(guard: DatabaseSync): boolean {
  try {
    guard.exec('begin exclusive');
    return true;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === sqliteBusy) return false;
    throw error;
  }
}

export function guardPath(directory: string): string {
  return join(directory, 'postgres.guard');
}

function ownerFile(directory: string): string {
  return join(directory, 'postgres.lock');
}

/** Writes a second file and renames it, so that no reader sees half of it. */
function writeOwner(directory: string, address: string): void {
  const owner: Owner = { pid: process.pid, gatewayPid: process.ppid, address };
  const draft = `${ownerFile(directory)}.new`;
  writeFileSync(draft, `${JSON.stringify(owner)}\n`);
  renameSync(draft, ownerFile(directory));
}
