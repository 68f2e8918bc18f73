/** An embedded database that is made once and then copied: making one takes two seconds of a processor, copying it a twentieth of one. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { keepEmbeddedProcesses, useEmbedded } from '../../plugins/storage/embedded/keeper.ts';
import { fakeHost } from './fakes.ts';
import { temporaryDirectory } from './temporary-directory.ts';

// Starting one and compiling the database's program takes half of a gateway's start.
keepEmbeddedProcesses(true);

/** An empty embedded database at `directory`, for a gateway that is not to make its own. */
export async function fillDirectory(directory: string): Promise<void> {
  const made = await template();
  mkdirSync(directory, { recursive: true });
  cpSync(join(made, 'postgres'), join(directory, 'postgres'), { recursive: true });
}

/** An empty database inside this process, gone with it. */
export async function openInProcess(): Promise<PGlite> {
  const directory = temporaryDirectory('gateway-test-');
  await fillDirectory(directory);
  return PGlite.create(join(directory, 'postgres'));
}

/** Kept in the system's temporary directory, for every process of the tests. */
export async function template(): Promise<string> {
  const { dependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const version: string = dependencies['@electric-sql/pglite'];
  const path = join(tmpdir(), `gateway-test-template-${version}-${userInfo().uid}`);
  if (existsSync(path)) return path;
  const draft = mkdtempSync(`${path}.`);
  await (await useEmbedded(draft, 'serve', fakeHost().log)).release();
  try {
    renameSync(draft, path);
  } catch {
    rmSync(draft, { recursive: true, force: true }); // Another process was faster.
  }
  return path;
}
