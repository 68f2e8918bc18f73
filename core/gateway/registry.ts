/** Loads a plugin by its name in the YAML: a built-in name, a path relative to the YAML, or a package. */
import { existsSync, readdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Plugin } from '../contract/contract.ts';
import { didYouMean } from '../contract/near-names.ts';

const builtInFolder = new URL('../../plugins/', import.meta.url);

/** Names of the built-in plugins. */
export function builtInNames(): string[] {
  return readdirSync(fileURLToPath(builtInFolder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(new URL(`${entry.name}/index.ts`, builtInFolder)))
    .map((entry) => entry.name)
    .sort();
}

/** Imports the plugin. Throws an Error with a sentence when there is none or it exports none. */
export async function loadPlugin(name: string, beside: string): Promise<Plugin> {
  const specifier = specifierOf(name, beside);
  let module: { default?: Plugin };
  try {
    module = (await import(specifier)) as { default?: Plugin };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND' || specifier.startsWith(builtInFolder.href))
      throw error;
    const near = didYouMean(name, builtInNames());
    throw new Error(
      `the plugin "${name}" cannot be found${near || `: it is no built-in one (${builtInNames().join(', ')}), no file and no installed package`}`,
      { cause: error },
    );
  }
  if (typeof module.default?.setup !== 'function') throw new Error(`the plugin "${name}" exports no plugin by default`);
  return module.default;
}

/** npm's package names; other specifiers of `import`, such as `data:` URLs, are refused. */
const packagePattern = /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*(?:\/[a-z0-9._~/-]+)?$/i;

function specifierOf(name: string, beside: string): string {
  if (/^\.{0,2}\//.test(name)) return pathToFileURL(resolve(dirname(beside), name)).href;
  if (!packagePattern.test(name)) throw new Error(`the plugin "${name}" is named by no path and no package`);
  const builtIn = new URL(`${name}/index.ts`, builtInFolder);
  return /^[a-z][a-z0-9-]*$/.test(name) && existsSync(builtIn) ? builtIn.href : name;
}
