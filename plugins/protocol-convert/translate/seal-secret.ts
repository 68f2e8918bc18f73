/** The default secret of seals: a file that is created once, also when several processes start at the same time. */
import { link, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Random } from '../../../core/contract/host-tools.ts';
import { makeDirectory } from '../../../core/tools/unwritable.ts';

const secretBytes = 32;
const format = new RegExp(`^[0-9a-f]{${2 * secretBytes}}$`);

/** Throws when the directory cannot be written or the file does not hold a secret. */
export async function readOrMakeSecret(directory: string, random: Random): Promise<Buffer> {
  const path = join(directory, 'seal.key');
  const found = await readSecret(path);
  if (found !== undefined) return found;
  makeDirectory(directory);
  await makeSecret(path, random);
  const made = await readSecret(path);
  if (made === undefined) throw new Error(`${path} has vanished`);
  return made;
}

/** undefined: this directory has none. */
export const readSecretIn = (directory: string) => readSecret(join(directory, 'seal.key'));

async function readSecret(path: string): Promise<Buffer | undefined> {
  let text: string;
  try {
    text = (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  if (!format.test(text)) throw new Error(`${path} does not hold a secret of ${secretBytes} bytes in hexadecimal`);
  return Buffer.from(text, 'hex');
}

/** The file appears complete or not at all; a second process keeps the first one's file. */
async function makeSecret(path: string, random: Random): Promise<void> {
  const draft = `${path}.${process.pid}.${random.bytes(8).toString('hex')}`;
  try {
    const file = await open(draft, 'wx', 0o600);
    try {
      await file.writeFile(`${random.bytes(secretBytes).toString('hex')}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await link(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await rm(draft, { force: true });
  }
}
