/**
 * Imported first, in plain JavaScript: compiled code is kept for the next start, in NODE_COMPILE_CACHE or the user's own directory for such
 * things; for the processes that this one starts too. Without a directory that is this user's alone nothing is kept: who can write there
 * decides what runs here.
 */
import { lstatSync, mkdirSync } from 'node:fs';
import { constants, enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

const directory = process.env['NODE_COMPILE_CACHE'] ?? ownDirectory();
if (directory !== undefined && enableCompileCache(directory).status === constants.compileCacheStatus.ENABLED)
  process.env['NODE_COMPILE_CACHE'] = directory;

function ownDirectory() {
  const { XDG_CACHE_HOME: configured = '' } = process.env;
  const directory = join(isAbsolute(configured) ? configured : join(homedir(), '.cache'), 'model-gateway');
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const { uid, mode } = lstatSync(directory);
    const isOwn = process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0);
    return isOwn ? directory : undefined;
  } catch {
    return undefined; // A read-only file system, or a user without a home.
  }
}
