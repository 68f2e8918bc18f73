/** Lets Node load some two thousand modules for a part of the work: keeps what was compiled, and looks once at each folder. */
import { lstatSync, mkdirSync } from 'node:fs';
import { constants, enableCompileCache, registerHooks } from 'node:module';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

/**
 * What is compiled is kept for the next start, in NODE_COMPILE_CACHE or the user's own directory for such things; for the
 * processes that this one starts too. Without a directory that is this user's alone nothing is kept: who can write there
 * decides what runs here.
 */
export function keepCompiled(): void {
  const directory = process.env['NODE_COMPILE_CACHE'] ?? ownDirectory();
  if (directory === undefined) return;
  const { status } = enableCompileCache(directory);
  if (status === constants.compileCacheStatus.ENABLED) process.env['NODE_COMPILE_CACHE'] = directory;
}

function ownDirectory(): string | undefined {
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

/**
 * Node looks for the package.json of each module anew, and parses what it finds, 180 kB of it for each of a hundred modules
 * of drizzle. Two modules of one folder with one ending have the same.
 */
export function rememberFormats(): void {
  const formats = new Map<string, string>();
  registerHooks({
    resolve(specifier, context, next) {
      const ending = /^\.{1,2}\/.*(\.[jt]s)$/.exec(specifier)?.[1];
      if (ending === undefined || !context.conditions.includes('import')) return next(specifier, context);
      const { href: url } = new URL(specifier, context.parentURL);
      const kind = dirname(url) + ending;
      const known = formats.get(kind);
      if (known !== undefined) return { url, format: known, shortCircuit: true };
      const resolved = next(specifier, context);
      if (resolved.url === url && resolved.format?.startsWith('module') === true) formats.set(kind, resolved.format);
      return resolved;
    },
  });
}
