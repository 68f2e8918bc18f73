/** Makes the new database that first starts unpack: `node plugins/storage/embedded/build.ts`. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packFresh, removeFresh } from './fresh.ts';
import { openDirectory } from './opening.ts';

const directory = mkdtempSync(join(tmpdir(), 'gateway-fresh-'));
try {
  removeFresh();
  const { close } = await openDirectory(directory, console.error);
  await close();
  packFresh(join(directory, 'postgres'));
} finally {
  rmSync(directory, { recursive: true, force: true });
}
