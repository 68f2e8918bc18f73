/** Files on the local disk, under the data directory. */
import { randomUUID } from 'node:crypto';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { FSDriver } from 'flydrive/drivers/fs';
import { type ByteStore, keyOf, type OpenFile, type Span } from './bytes.ts';

/** Keeps files in `directory`, beside incoming ones. */
export function openDisk(directory: string): ByteStore {
  const driver = new FSDriver({ location: directory, visibility: 'private' });
  const pathOf = (id: string) => `kept/${keyOf(id)}`;
  return {
    async put(id, content) {
      const path = pathOf(id);
      if (id.includes('/')) return putSealed(directory, path, content as Uint8Array, driver);
      if (content instanceof Uint8Array) await driver.put(path, content);
      else await driver.move(content.path, path);
      await flush(join(directory, path));
    },
    async open(id, span) {
      try {
        return reading(await open(join(directory, pathOf(id))), span);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw error;
      }
    },
    remove: (id) => driver.delete(pathOf(id)),
    close() {},
  };
}

/** Whole or not at all: a process that is late with the same file, and dies while it writes, must leave the one that is there. */
async function putSealed(directory: string, path: string, content: Uint8Array, driver: FSDriver): Promise<void> {
  const part = `${path}.${randomUUID()}.part`;
  try {
    await driver.put(part, content);
    await flush(join(directory, part));
    await rename(join(directory, part), join(directory, path));
  } catch (error) {
    await driver.delete(part).catch(() => {});
    throw error;
  }
  await flushFolders(directory, path);
}

/** Flushes to disk, so that a stored file survives a power loss. */
async function flush(path: string): Promise<void> {
  const handle = await open(path, 'r+');
  try {
    await handle.datasync();
  } finally {
    await handle.close();
  }
}

/** Its row was deleted for a sealed file, so a power cut must not leave a folder that does not name it. */
async function flushFolders(directory: string, path: string): Promise<void> {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const handle = await open(join(directory, folder), 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
    if (folder === '.') return;
  }
}

function reading(handle: FileHandle, { first, last }: Span): OpenFile {
  const body = handle.createReadStream({ start: first, end: last });
  // A reader gets the error by itself; without a listener an unread stream would crash the process.
  body.on('error', () => {});
  return { body, close: () => void body.destroy() };
}
