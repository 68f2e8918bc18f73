/** The new database that comes with the program: what is packed is what is unpacked, and a first start begins with it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { emptyArchive, migratedArchive, packFresh, unpackFresh } from '../../../plugins/storage/embedded/fresh.ts';
import { type Opened, openDirectory } from '../../../plugins/storage/embedded/opening.ts';
import { makeTables } from '../../../plugins/storage/embedded/tables.ts';
import { fillDirectory } from '../../helpers/template.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const here = temporaryDirectory();
await fillDirectory(here);
const made = join(here, 'postgres');
const archive = join(here, 'fresh.zst');
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

test('the unpacked directory equals the packed one', () => {
  const folder = emptyFolder();
  unpackFresh(folder, undefined, [archive]);
  const [unpacked, packed] = [treeOf(folder), treeOf(made)];
  assert.deepEqual(Object.keys(unpacked), Object.keys(packed));
  assert(Object.keys(packed).length > 250);
  for (const [path, content] of Object.entries(packed)) assert(unpacked[path] === content, path);
});

/** A copy of an archive, its first line changed. */
function changed(from: string, pattern: RegExp, into: string): string {
  const other = join(temporaryDirectory(), 'other.zst');
  writeFileSync(other, readFileSync(from, 'latin1').replace(pattern, into), 'latin1');
  return other;
}

test('a template of another database version is ignored, and so is a missing one', () => {
  const folder = emptyFolder();
  unpackFresh(folder, undefined, [changed(archive, /"version":"/, '"version":"0'), join(here, 'no such file')]);
  assert.deepEqual(readdirSync(folder), []);
});

const owner = { schema: 'shop', plugins: ['auth', 'storage', 'shop', 'telemetry'] };
const migrated = join(here, 'migrated.zst');

test("a template's tables are used only for their own gateway, and only with the migrations of this program", async () => {
  const directory = temporaryDirectory();
  await fillDirectory(directory);
  await makeTables(directory, [owner]);
  packFresh(join(directory, 'postgres'), migrated, [owner.schema]);
  const made = treeOf(join(directory, 'postgres'));
  const unpacked = (schema: string | undefined, from = migrated) => {
    const folder = emptyFolder();
    unpackFresh(folder, schema, [from]);
    return treeOf(folder);
  };
  assert.deepEqual(Object.keys(unpacked('shop')), Object.keys(made));
  for (const other of ['other', undefined]) assert.deepEqual(unpacked(other), {});
  assert.deepEqual(unpacked('shop', changed(migrated, /"migrations":"./, '"migrations":"x')), {});
});

const built = existsSync(emptyArchive);

test('first starts begin with the built template, without databases that others would be made of', {
  skip: !built && 'npm run build:database has not run',
}, async () => {
  const identifiers = [];
  for (let start = 0; start < 2; start++) {
    const { pglite, close } = await openDirectory(temporaryDirectory(), assert.fail);
    const { rows } = await pglite.query<{ id: string }>(
      'select system_identifier::text as id from pg_control_system()',
    );
    identifiers.push(rows[0]!.id);
    const { rows: databases } = await pglite.query<{ name: string }>('select datname as name from pg_database');
    assert.deepEqual(
      databases.map(({ name }) => name),
      ['postgres'],
    );
    await close();
  }
  // A database that is made has one of its own.
  assert.equal(identifiers[0], identifiers[1]);
});

/** What a schema consists of, and the migrations that it has seen. */
const parts = (schema: string) => `
  select 'column', format('%s.%s %s %s %s %s', table_name, column_name, ordinal_position, data_type, is_nullable, column_default)
    from information_schema.columns where table_schema = '${schema}'
  union all select 'index', indexdef from pg_indexes where schemaname = '${schema}'
  union all select 'constraint', conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid)
    from pg_constraint where connamespace = '${schema}'::regnamespace
  union all select 'relation', relkind::text || relname || coalesce(reloptions::text, '')
    from pg_class where relnamespace = '${schema}'::regnamespace
  union all select 'function', pg_get_functiondef(oid) from pg_proc where pronamespace = '${schema}'::regnamespace
  union all select 'trigger', pg_get_triggerdef(oid) from pg_trigger
    where not tgisinternal and tgrelid in (select oid from pg_class where relnamespace = '${schema}'::regnamespace)
  union all select 'migration', format('%s %s %s %s', plugin, number, name, checksum) from ${schema}.migrations
  order by 1, 2`;

async function partsOf({ pglite }: Opened, schema: string): Promise<string[]> {
  const { rows } = await pglite.query(parts(schema), [], { rowMode: 'array' });
  return (rows as unknown as string[][]).map((row) => row.join(' '));
}

/** Both demo gateways, until they listen. */
async function startAndStop(directory: string): Promise<void> {
  const files = ['config/demo.yaml', 'config/demo-alt.yaml'];
  const child = spawn(process.execPath, ['core/process/main.ts', 'serve', ...files], {
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, DATA_DIR: directory, PORT: '0', ALT_PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  for await (const text of child.stdout.setEncoding('utf8')) {
    output += text;
    if (output.match(/"msg":"listening"/g)?.length === files.length) break;
  }
  child.kill('SIGTERM');
  if (child.exitCode === null) await once(child, 'exit');
}

test('built tables are those that a start makes, and have no other rows', {
  skip: !existsSync(migratedArchive) && 'npm run build:database has not run',
}, async () => {
  const started = temporaryDirectory();
  await fillDirectory(started);
  await startAndStop(started);
  const [own, unpacked] = [
    await openDirectory(started, assert.fail),
    await openDirectory(temporaryDirectory(), assert.fail, { schema: 'demo' }),
  ];
  for (const schema of ['demo', 'demo_alt']) {
    const [expected, found] = [await partsOf(own, schema), await partsOf(unpacked, schema)];
    assert(expected.length > 500, `${expected.length}`);
    // Differences alone, as there are thousands of parts.
    assert.deepEqual(
      found.filter((part) => !expected.includes(part)),
      [],
    );
    assert.deepEqual(
      expected.filter((part) => !found.includes(part)),
      [],
    );
    const { rows: tables } = await unpacked.pglite.query<{ name: string }>(
      `select tablename as name from pg_tables where schemaname = '${schema}' and tablename <> 'migrations'`,
    );
    const filled: string[] = [];
    for (const { name } of tables) {
      const { rows } = await unpacked.pglite.query(`select from ${schema}.${name} limit 1`);
      if (rows.length > 0) filled.push(name);
    }
    // Rows of migrations, the same in each database: nothing that was made up, and no time.
    assert.deepEqual(filled.sort(), ['archive_state', 'call_sums_state', 'notice_look', 'request_sums_state']);
  }
  await own.close();
  await unpacked.close();
});
