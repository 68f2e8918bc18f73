/** How plugins outside the gateway are found, and how they import what the gateway offers to their authors. */
import { existsSync, statSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** The modules that authors import, by the name in package.json's `exports`. */
const authorModules = new Map([
  ['model-gateway', new URL('../../plugins/common/author/index.ts', import.meta.url).href],
  ['model-gateway/domain', new URL('../../plugins/common/author/domain.ts', import.meta.url).href],
  ['model-gateway/kit', new URL('../../plugins/common/author/kit.ts', import.meta.url).href],
  ['model-gateway/testing', new URL('../../plugins/common/author/testing.ts', import.meta.url).href],
  ['model-gateway/unstable', new URL('../../plugins/common/author/unstable.ts', import.meta.url).href],
]);
const besideScheme = 'beside:';

/** The URL of what authors import by this name. */
export function authorModule(specifier: string): string | undefined {
  return authorModules.get(specifier);
}

let isRegistered = false;

/**
 * Resolves `model-gateway` to the running gateway, wherever the importing plugin is installed: context keys, services and extension
 * points are compared by identity, so a second copy of them would match nothing.
 */
export function resolveAuthorModules(): void {
  if (isRegistered) return;
  isRegistered = true;
  registerHooks({
    resolve(specifier, context, next) {
      const own = authorModules.get(specifier);
      if (own !== undefined) return next(own, context);
      if (!specifier.startsWith(besideScheme)) return next(specifier, context);
      const [name, parentURL] = JSON.parse(decodeURIComponent(specifier.slice(besideScheme.length)));
      return next(name, { ...context, parentURL });
    },
  });
}

/** The URL of an installed package, looked for beside the file first and then beside the gateway; undefined: there is none. */
export function packageUrl(name: string, beside: string): string | undefined {
  resolveAuthorModules();
  for (const parent of [pathToFileURL(resolve(beside)).href, import.meta.url]) {
    try {
      return import.meta.resolve(besideScheme + encodeURIComponent(JSON.stringify([name, parent])));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    }
  }
  return undefined;
}

const entries = ['index.ts', 'index.mts', 'index.js', 'index.mjs'];

/** The URL of a file, or of the index in a folder, relative to the YAML; undefined: there is none. */
export function pathUrl(name: string, beside: string): string | undefined {
  resolveAuthorModules();
  const path = resolve(dirname(beside), name);
  const files = isFolder(path) ? entries.map((entry) => join(path, entry)) : [path];
  const file = files.find((candidate) => existsSync(candidate));
  return file === undefined ? undefined : pathToFileURL(file).href;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** A module's path, for messages. */
export function pathOf(url: string): string {
  return url.startsWith('file:') ? fileURLToPath(url) : url;
}
