/** The names of the stored secrets in a file beside the data, for `check`, which opens no database. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { objectOf, tryParse } from '../../../core/json/json.ts';

/** true: it can be used; false: it cannot be decrypted. */
export type SecretNames = ReadonlyMap<string, boolean>;

/** Gateways of one data directory have schemas of their own. */
const fileOf = (directory: string, schema: string) => join(directory, `vendor-secrets.${schema}.json`);

/** undefined: no gateway has written them. */
export function readNames(directory: string, schema: string): SecretNames | undefined {
  try {
    const written = objectOf(tryParse(readFileSync(fileOf(directory, schema), 'utf8'))) ?? {};
    return new Map(Object.entries(written).map(([name, usable]) => [name, usable === true]));
  } catch {
    return undefined;
  }
}

export function writeNames(directory: string, schema: string, names: SecretNames): void {
  const path = fileOf(directory, schema);
  const temporary = `${path}.${process.pid}`;
  try {
    writeFileSync(temporary, `${JSON.stringify(Object.fromEntries(names))}\n`, { mode: 0o600 });
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}
