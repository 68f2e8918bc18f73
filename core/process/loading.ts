/** Lets Node load some two thousand modules for a part of the work: keeps what was compiled, and looks once at each folder and package. */
import { existsSync, lstatSync, mkdirSync } from 'node:fs';
import { constants, enableCompileCache, type ResolveHookSync, registerHooks } from 'node:module';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

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

/** The folder of the gateway. Modules in it import a package from the same place, but for those of a folder with packages of its own. */
const own = dirname(dirname(import.meta.dirname));
const packagesFolder = 'node_modules';
const packageName = /^(?:@[\w.-]+\/)?[a-zA-Z][\w.-]*(?:\/|$)/;

let areRemembered = false;

/**
 * Node looks for the package.json of each module anew, and parses what it finds, 180 kB of it for each import of drizzle. Two
 * modules of one folder with one ending have the same, and what one module of the gateway has found all others find.
 */
export function rememberModules(): void {
  if (areRemembered) return;
  areRemembered = true;
  const formats = new Map<string, string>();
  const packages = new Map<string, Found>();
  const folders = new Map([[own, true]]);
  registerHooks({
    resolve(specifier, context, next) {
      if (!context.conditions.includes('import')) return next(specifier, context);
      if (packageName.test(specifier) && sharesPackages(context.parentURL, folders)) {
        return rememberIn(packages, specifier, () => next(specifier, context));
      }
      const ending = /^\.{1,2}\/.*(\.[jt]s)$/.exec(specifier)?.[1];
      if (ending === undefined) return next(specifier, context);
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

type Found = ReturnType<ResolveHookSync>;

function sharesPackages(parent: string | undefined, folders: Map<string, boolean>): boolean {
  if (parent?.startsWith('file:') !== true) return false;
  // What `--import` names is resolved from the working directory, which is a folder itself.
  const folder = dirname(fileURLToPath(parent));
  return (folder === own || folder.startsWith(own + sep)) && lacksPackages(folder, folders);
}

/** Whether neither this folder of the gateway's nor one that it is in has packages of its own. */
function lacksPackages(folder: string, folders: Map<string, boolean>): boolean {
  const known = folders.get(folder);
  if (known !== undefined) return known;
  const lacks = !existsSync(join(folder, packagesFolder)) && lacksPackages(dirname(folder), folders);
  folders.set(folder, lacks);
  return lacks;
}

function rememberIn(packages: Map<string, Found>, specifier: string, resolve: () => Found): Found {
  const known = packages.get(specifier);
  if (known !== undefined) return known;
  const found = resolve();
  // Other hooks give names of their own a meaning.
  if (found.url.includes(`/${packagesFolder}/`)) packages.set(specifier, { ...found, shortCircuit: true });
  return found;
}
