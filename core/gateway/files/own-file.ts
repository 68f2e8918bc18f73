/** The operator's own file over a gateway that is shipped: in the data directory, where each start finds it and forms write. */
import { realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const shippedFolder = fileURLToPath(new URL('../../../config/', import.meta.url));
/** Those that are served as they are. A fleet's nodes have data directories of their own, and one file for all of them. */
const served = ['alt', 'company', 'demo', 'demo-alt', 'main', 'passthrough'];
/** Other files in that folder are the operator's own. */
const shippedNames = new Set(
  [...served, 'fleet', 'models', 'sandbox', 'search-engines', 'shared', 'vendors'].map((name) => `${name}.yaml`),
);

/** Whether an update of the product replaces this file. */
export function isShipped(path: string): boolean {
  const real = realOf(path);
  return dirname(real) === realOf(resolve(shippedFolder)) && shippedNames.has(basename(real));
}

function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Where the own file of a gateway stands or would stand; undefined: its file is the operator's already. `values`: what its files say. */
export function ownFileOf(
  file: string,
  { gateway, data }: Readonly<Record<string, unknown>>,
  environment: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (typeof gateway !== 'string' || !/^[\w-]+$/.test(gateway)) return undefined;
  if (!served.includes(basename(file, '.yaml')) || !isShipped(file)) return undefined;
  return join(dataDirectory(data, environment), `${gateway}.own.yaml`);
}

/** Absolute. */
export function dataDirectory(written: unknown, environment: Readonly<Record<string, string | undefined>>): string {
  const given = environment['DATA_DIR'];
  return resolve(given === undefined || given === '' ? String(written ?? './data') : given);
}
