/** A kernel lock that limits a journal to one writing process and ends with it. */
import { DatabaseSync } from 'node:sqlite';

const sqliteBusy = 5;

export interface Lock {
  release(): void;
}

/**
 * Acquires the lock at `path`, or throws a sentence. It is an exclusive SQLite transaction on an empty file, the
 * only kernel lock that Node offers: a file with a process id would outlive its process and has no meaning in
 * another container.
 */
export function takeLock(path: string): Lock {
  const guard = new DatabaseSync(path, { timeout: 0 });
  try {
    guard.exec('begin exclusive');
  } catch (error) {
    guard.close();
    if ((error as { errcode?: number }).errcode !== sqliteBusy) throw error;
    throw new Error(
      `${path} is held by another process: only one process may write this journal. Stop that one first, or set "data" in the file (DATA_DIR) to another directory`,
    );
  }
  return { release: () => guard.close() };
}
