/** Makes the files of a running process unwritable, as on a file system that has become read-only. */
import { spawnSync } from 'node:child_process';

/** The kernel then refuses every write to a file (EFBIG), open or not; sockets and pipes go on. */
export const canForbidWrites = spawnSync('prlimit', ['--fsize']).status === 0;

export function allowWrites(pid: number, allowed: boolean): void {
  const { status, stderr } = spawnSync('prlimit', [`--pid=${pid}`, `--fsize=${allowed ? 'unlimited' : '0'}:`]);
  if (status !== 0) throw new Error(String(stderr));
}
