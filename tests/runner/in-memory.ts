/** What tests write goes where writing and syncing cost least, if there is room. */
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const memory = '/dev/shm';
/** Five processes at a time, with a few databases each. */
const neededBytes = 4e9;
const prefix = 'gateway-tests-';

/** For all processes that are started from now on. Set by a caller, a directory for temporary files is used as it is. */
export function writeInMemory(): void {
  if (process.env['TMPDIR'] !== undefined || !hasRoom()) return;
  removeLeft();
  // Databases that are copied, and compiled code: made once and kept, on disk.
  process.env['TEST_KEPT'] ??= tmpdir();
  const directory = mkdtempSync(join(memory, `${prefix}${process.pid}-`));
  // Some tests run the gateway as another user.
  chmodSync(directory, 0o755);
  process.env['TMPDIR'] = directory;
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
}

function hasRoom(): boolean {
  if (!existsSync(memory)) return false;
  const { bavail, bsize } = statfsSync(memory);
  return bavail * bsize > neededBytes;
}

/** Removes directories of killed runs. */
function removeLeft(): void {
  for (const name of readdirSync(memory)) {
    const pid = name.startsWith(prefix) && /\d+/.exec(name)?.[0];
    if (pid && !existsSync(`/proc/${pid}`)) rmSync(join(memory, name), { recursive: true, force: true });
  }
}
