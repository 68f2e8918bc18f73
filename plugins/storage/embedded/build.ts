/** Makes the new databases that first starts unpack: `node plugins/storage/embedded/build.ts`. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { emptyArchive, migratedArchive, packFresh, removeFresh } from './fresh.ts';
import { openDirectory } from './opening.ts';
import { makeTables } from './tables.ts';

/** The gateways that `npm start` serves: no start would make other tables than theirs. */
const files = ['demo.yaml', 'demo-alt.yaml'].map((name) => new URL(`../../../config/${name}`, import.meta.url));
const gateways = files.map((file) => parse(readFileSync(file, 'utf8')) as { schema: string; plugins: string[] });

const directory = mkdtempSync(join(tmpdir(), 'gateway-fresh-'));
const live = join(directory, 'postgres');
try {
  removeFresh();
  const { pglite, close } = await openDirectory(directory, console.error);
  // The two that others are made of, 640 files: nothing makes others here.
  await pglite.exec('update pg_database set datistemplate = false');
  for (const name of ['template0', 'template1']) await pglite.exec(`drop database ${name}`);
  await pglite.exec('checkpoint');
  await close();
  packFresh(live, emptyArchive);
  await makeTables(directory, gateways);
  packFresh(
    live,
    migratedArchive,
    gateways.map(({ schema }) => schema),
  );
} finally {
  rmSync(directory, { recursive: true, force: true });
}
