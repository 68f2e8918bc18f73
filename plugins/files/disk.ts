/** Files on the local disk, under the data directory. */
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { FSDriver } from 'flydrive/drivers/fs';
import { type ByteStore, keyOf, type OpenFile, type Span } from './bytes.ts';

/** In `directory`, beside what is still coming in. */
export function openDisk(directory: string): ByteStore {
  const driver = new FSDriver({ location: directory, visibility: 'private' });
  const placeOf = (id: string) => `kept/${keyOf(id)}`;
  return {
    async put(id, content) {
      const place = placeOf(id);
      if (content instanceof Uint8Array) await driver.put(place, content);
      else await driver.move(content.path, place);
      await flush(join(directory, place));
    },
    async open(id, span) {
      try {
        return reading(await open(join(directory, placeOf(id))), span);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw error;
      }
    },
    remove: (id) => driver.delete(placeOf(id)),
    close() {},
  };
}

/** What is called kept survives a loss of power. */
async function flush(path: string): Promise<void> {
  const handle = await open(path, 'r+');
  try {
    await handle.datasync();
  } finally {
    await handle.close();
  }
}

function reading(handle: FileHandle, { first, last }: Span): OpenFile {
  const body = handle.createReadStream({ start: first, end: last });
  // What breaks is told to whoever reads; a stream that nobody reads breaks when it is closed.
  body.on('error', () => {});
  return { body, close: () => void body.destroy() };
}
