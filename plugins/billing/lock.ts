/** One process alone writes a journal: a lock of the kernel, which ends with its process. */
import { DatabaseSync } from 'node:sqlite';

const sqliteBusy = 5;

export interface Lock {
  release(): void;
}

/**
 * Takes the lock at `path`, or throws a sentence. SQLite's exclusive transaction on an empty file is what Node has of
 * kernel locks: a file with a process id would outlive its process, and means nothing in another container.
 */
export function takeLock(path: string): Lock {
  const guard = new DatabaseSync(path, { timeout: 0 });
  try {
    guard.exec('begin exclusive');
  } catch (error) {
    guard.close();
    if ((error as { errcode?: number }).errcode !== sqliteBusy) throw error;
    throw new Error(`${path} is held by another process: only one process may write this journal`);
  }
  return { release: () => guard.close() };
}
