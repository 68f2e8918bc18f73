/** Loads a plugin by its name in the YAML: a built-in name, a path relative to the YAML, or a package. */
import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Command, Plugin } from '../contract/contract.ts';
import { GatewayError, isPassing } from '../contract/errors.ts';
import { didYouMean } from '../tools/near-names.ts';
import { packageUrl, pathOf, pathUrl } from './resolution.ts';

const builtInFolder = new URL('../../plugins/', import.meta.url);

/** Names of the built-in plugins. */
export function builtInNames(): string[] {
  return readdirSync(fileURLToPath(builtInFolder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(new URL(`${entry.name}/index.ts`, builtInFolder)))
    .map((entry) => entry.name)
    .sort();
}

/** The commands of built-in plugins that need no gateway: a plugin with such has a file beside its index. */
export async function commandsAlone(): Promise<readonly Command[]> {
  const files = builtInNames().map((name) => new URL(`${name}/alone.ts`, builtInFolder));
  const modules = files.filter((file) => existsSync(file)).map(({ href }) => import(href));
  return ((await Promise.all(modules)) as { default: readonly Command[] }[]).flatMap((module) => module.default);
}

/** The modules of plugins that are not built in. */
const outside = new WeakMap<Plugin, string>();

/** The path of a plugin that is not built in. */
export function outsideFile(plugin: Plugin): string | undefined {
  return outside.get(plugin);
}

/** Imports the plugin. Throws an Error with a sentence when there is none or it exports none. */
export async function loadPlugin(name: string, beside: string): Promise<Plugin> {
  const builtIn = new URL(`${name}/index.ts`, builtInFolder);
  if (/^[a-z][a-z0-9-]*$/.test(name) && existsSync(builtIn))
    return ((await import(builtIn.href)) as { default: Plugin }).default;
  const url = outsideUrl(name, beside);
  if (url === undefined) {
    const near = didYouMean(name, builtInNames());
    throw new Error(
      `the plugin "${name}" cannot be found${near || `: it is no built-in one (${builtInNames().join(', ')}), no file and no installed package`}`,
    );
  }
  const file = pathOf(url);
  const module = await importOutside(name, url, file);
  if (typeof module.default?.setup !== 'function')
    throw new Error(
      `the plugin "${name}" (${file}) exports no plugin: \`export default definePlugin({ … })\` is missing`,
    );
  if (module.default.config?._zod === undefined)
    throw new Error(
      `the plugin "${name}" (${file}) has no schema of its section: without settings it is \`config: z.strictObject({})\``,
    );
  outside.set(module.default, file);
  return module.default;
}

async function importOutside(name: string, url: string, file: string): Promise<{ default?: Plugin }> {
  try {
    return (await import(url)) as { default?: Plugin };
  } catch (error) {
    throw new Error(`the plugin "${name}" (${file}) cannot be loaded: ${causeOf(error, file)}`, { cause: error });
  }
}

/** The error that a plugin from outside threw in its setup, as a sentence; undefined: the error is reported unchanged. */
export function setupSentence(plugin: Plugin, error: unknown): string | undefined {
  const file = outsideFile(plugin);
  if (file === undefined || error instanceof GatewayError || isPassing(error)) return undefined;
  return `the plugin "${plugin.name}" (${file}) failed in its setup: ${causeOf(error, file)}`;
}

/** An error in one line, with the place in the plugin's file where it was thrown. */
function causeOf(error: unknown, file: string): string {
  if (!(error instanceof Error)) return String(error);
  const line = error.stack?.split('\n').find((frame) => frame.includes(`${file}:`));
  const place = line === undefined ? undefined : /:(\d+)(?::\d+)?\)?$/.exec(line.trim())?.[1];
  const kind = error.constructor === Error ? '' : `${error.name}: `;
  return `${kind}${error.message}${place === undefined ? '' : `, in line ${place}`}`;
}

/** npm's package names; other specifiers of `import`, such as `data:` URLs, are refused. */
const packagePattern = /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*(?:\/[a-z0-9._~/-]+)?$/i;

function outsideUrl(name: string, beside: string): string | undefined {
  if (/^\.{0,2}\//.test(name)) return pathUrl(name, beside);
  if (!packagePattern.test(name)) throw new Error(`the plugin "${name}" is named by no path and no package`);
  return packageUrl(name, beside);
}
