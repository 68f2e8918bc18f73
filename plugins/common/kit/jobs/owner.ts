/** The owner name of this data directory: created once, so that a start recognises the calls of the run before. */
import { link, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Random } from '../../../../core/contract/host-tools.ts';
import { makeDirectory } from '../../../../core/tools/unwritable.ts';

const format = /^[0-9a-f]{32}$/;

/** Throws when the directory cannot be written. Several gateways that start here at once get the same name. */
export async function readOrMakeOwner(directory: string, random: Random): Promise<string> {
  const path = join(directory, 'idempotency.owner');
  const known = await readOwner(path);
  if (known !== undefined) return known;
  makeDirectory(directory);
  const made = random.bytes(16).toString('hex');
  const draft = `${path}.${made}`;
  await writeFile(draft, `${made}\n`, { flag: 'wx', flush: true });
  try {
    // The file appears whole or not at all; later creators take the existing name.
    await link(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await rm(draft, { force: true });
  }
  return (await readOwner(path)) ?? made;
}

async function readOwner(path: string): Promise<string | undefined> {
  try {
    const text = (await readFile(path, 'utf8')).trim();
    return format.test(text) ? text : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
