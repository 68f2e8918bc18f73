/** The names of the stored secrets in a file beside the data, for `check`, which opens no database. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { objectOf, tryParse } from '../../../core/json/json.ts';

/** true: it can be used; false: it cannot be decrypted. */
export type SecretNames = ReadonlyMap<string, boolean>;

const fileName = 'vendor-secrets.json';

export function readNames(directory: string): SecretNames {
  try {
    const written = objectOf(tryParse(readFileSync(join(directory, fileName), 'utf8'))) ?? {};
    return new Map(Object.entries(written).map(([name, usable]) => [name, usable === true]));
  } catch {
    return new Map();
  }
}

export function writeNames(directory: string, names: SecretNames): void {
  const path = join(directory, fileName);
  const temporary = `${path}.${process.pid}`;
  try {
    writeFileSync(temporary, `${JSON.stringify(Object.fromEntries(names))}\n`, { mode: 0o600 });
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}
