/**
 * What a process of the gateway asks of Node before it loads the rest: to load some two thousand modules for a part of the work, by keeping what was
 * compiled and looking once at each folder and package, and to collect garbage as a server needs it.
 */
import { existsSync, lstatSync, mkdirSync } from 'node:fs';
import { constants, enableCompileCache, type ResolveHookSync, registerHooks } from 'node:module';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';

/** The folder of the gateway. Modules in it import a package from the same place, but for those of a folder with packages of its own. */
const own = dirname(dirname(import.meta.dirname));
const packagesFolder = 'node_modules';

/**
 * Compiled code is kept for the next start, in NODE_COMPILE_CACHE, beside the packages where `npm ci` has put what it compiled, or in the
 * user's own directory for such things; for the processes that this one starts too. Without a directory that is this user's alone nothing
 * is kept: who can write there decides what runs here.
 */
export function keepCompiled(): void {
  const directory = process.env['NODE_COMPILE_CACHE'] ?? builtDirectory() ?? ownDirectory();
  if (directory === undefined) return;
  const { status } = enableCompileCache(directory);
  if (status === constants.compileCacheStatus.ENABLED) process.env['NODE_COMPILE_CACHE'] = directory;
}

/** `docker/compile.mjs` makes it. Packages that are linked are those of another checkout. */
function builtDirectory(): string | undefined {
  const packages = join(own, packagesFolder);
  const directory = join(packages, '.cache', 'model-gateway');
  return existsSync(directory) && lstatSync(packages).isDirectory() && isOwn(directory) ? directory : undefined;
}

function ownDirectory(): string | undefined {
  const { XDG_CACHE_HOME: configured = '' } = process.env;
  const directory = join(isAbsolute(configured) ? configured : join(homedir(), '.cache'), 'model-gateway');
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    return isOwn(directory) ? directory : undefined;
  } catch {
    return undefined; // A read-only file system, or a user without a home.
  }
}

function isOwn(directory: string): boolean {
  const { uid, mode } = lstatSync(directory);
  return process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0);
}

const packageName = /^(?:@[\w.-]+\/)?[a-zA-Z][\w.-]*(?:\/|$)/;

let areRemembered = false;

/**
 * Node looks for the package.json of each module again, and parses what it finds, 180 kB of it for each import of drizzle. Two
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

/** The first version of V8 with the last flag is that of Node 24. */
const versionWithAll = 13;

/**
 * Sets flags of V8, for all threads of the process, so that full collections of garbage are rare. Each stops its thread for 10 to 20 ms and
 * keeps another busy for about 80 ms.
 *
 * - No collection after some seconds with little to do. It would return memory to the system, but also delete the description of each kind
 *   of object that has no instance at that moment, and with it the optimized code that uses the kind: requests after such a pause took twice the
 *   processor time, until their code was optimized again.
 * - A collection when the heap has three times its size after the last one. Without the flag V8 often collects when it is a quarter larger.
 * - No collection only because 64 MB have been allocated outside the heap, as everything that is read from a socket is: under a load of
 *   streams there were four in a second. Instead, V8 counts these bytes as it counts those of the heap.
 */
export function collectLessOften(): void {
  setFlagsFromString('--memory-reducer-gc-count=0');
  setFlagsFromString('--heap-growing-percent=200');
  if (Number.parseInt(process.versions.v8, 10) < versionWithAll) return;
  setFlagsFromString('--external-memory-accounted-in-global-limit');
}
