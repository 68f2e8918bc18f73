/** The new database that comes with the program: what is packed is what is unpacked, and a first start begins with it. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { packFresh, unpackFresh } from '../../../plugins/storage/embedded/fresh.ts';
import { openDirectory } from '../../../plugins/storage/embedded/opening.ts';
import { fillDirectory } from '../../helpers/template.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const here = temporaryDirectory();
await fillDirectory(here);
const made = join(here, 'postgres');
const archive = join(here, 'fresh.gz');
packFresh(made, archive);

/** Each file with its bytes, and each folder. */
function treeOf(root: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(root, { recursive: true, withFileTypes: true })
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
      .map((path) => [path.slice(root.length), contentOf(path)]),
  );
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    return (error as NodeJS.ErrnoException).code!;
  }
}

function emptyFolder(): string {
  const folder = join(temporaryDirectory(), 'postgres');
  mkdirSync(folder);
  return folder;
}

test('what is unpacked is what was packed', () => {
  const folder = emptyFolder();
  unpackFresh(folder, archive);
  const [unpacked, packed] = [treeOf(folder), treeOf(made)];
  assert.deepEqual(Object.keys(unpacked), Object.keys(packed));
  assert(Object.keys(packed).length > 900);
  for (const [path, content] of Object.entries(packed)) assert(unpacked[path] === content, path);
});

test('one of another version of the database is left alone, and so is none', () => {
  const folder = emptyFolder();
  const other = join(temporaryDirectory(), 'fresh.gz');
  const text = gunzipSync(readFileSync(archive))
    .toString('latin1')
    .replace(/"version":"/, '"version":"0');
  writeFileSync(other, gzipSync(Buffer.from(text, 'latin1')));
  unpackFresh(folder, other);
  unpackFresh(folder, join(here, 'no such file'));
  assert.deepEqual(readdirSync(folder), []);
});

const built = existsSync('plugins/storage/embedded/dist/fresh.gz');

test('first starts begin with the one that was built', {
  skip: !built && 'npm run build:database has not run',
}, async () => {
  const identifiers = [];
  for (let start = 0; start < 2; start++) {
    const { pglite, close } = await openDirectory(temporaryDirectory(), assert.fail);
    const { rows } = await pglite.query<{ id: string }>(
      'select system_identifier::text as id from pg_control_system()',
    );
    identifiers.push(rows[0]!.id);
    await close();
  }
  // A database that is made has one of its own.
  assert.equal(identifiers[0], identifiers[1]);
});
