/** The tables of the first release: files that are never edited, and databases from before them. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { rowsOf } from '../../../plugins/common/kit/sql.ts';
import { openDatabase as openOfPlugin } from '../../../plugins/storage/database.ts';
import { migrationFolders } from '../../../plugins/storage/embedded/fresh.ts';
import { databaseUrl, embeddedDirectory, openDatabase } from '../../helpers/database.ts';
import { fakeHost } from '../../helpers/fakes.ts';

/** SHA-256 of each plugin's `001-baseline.sql`: that of 0.1.0, or of the release that the plugin came with. A change of tables is a migration with a higher number, and these lines stay. */
const digests: Readonly<Record<string, string>> = {
  admission: '9049f40f7cc135d58f6d332d722bc70969731f61f9482533375220200aceb202',
  alerts: '9dbd78c1ac18018eb7f8a001d399cd3ab1c562978c6e1338aee74a9376f39555',
  auth: '932b914e72bda96e5fde0a9e7cbd78da41b3dfd75ff5fe3e296265d86d52a41c',
  batches: '33c49163618b175566edfd526d8b35397f6c1b1ed1263f5efd258d7c11ca78cf',
  billing: 'd16a9c77f355be9396a3470576709ce5844a96461870d50360a8d3d23678145a',
  cache: 'cb2a91c2f51e0f652449bf77fdaf6efd5945d245176bc183c8c46922d894e575',
  console: '94ac6cc3ea7a88e78a8cc130ae1fdd3c5e8b1f6165807f350cf69fe7acdac399',
  files: 'a34b98cc33a9ef70d59592cda30a566105eeaef1f93c34af8bd130cb8ccf4e93',
  guardrails: 'fdca936cab7cbc468309a1d39e6893737375a2489add0f9ed1156c151e56eabd',
  idempotency: '2dbebae3e19ed1431bc32b52082e18d781894a4e50e75317d14b2bc7452ef381',
  mcp: '777ab5fa8c6a8925f646c6e6d7585b3bfc81f913096abca248d6d996888853e6',
  notices: '1d9c00fc0f641b4da1a27bc3f6571d012135c82b6f23d4e3433d36ba7001f5e2',
  payments: '469b09b564492ff077da317e3463e7528f88ba344bb496221c4ad77e5fd19308',
  'protocol-convert': '6135699db485fe92c2e0047837606d3a73895eb392354b6a6020201c85581724',
  providers: 'b5886296579b5d572bf5e0f39d302899b82db3fd412d5391529982b156f46ffd',
  'request-log': '9cb69d0c96d4e93892bfa72851abbf795d452c95b5b37cb6e4e5ba93a966b919',
  shop: '14f32d021bdeb12da4436231038b145c80c29a95920512725801c3c1f80c8bce',
  storage: '9d7733c9b804a0cd00c8a6945e17898cdb52967f030d10571767493a6ed6a3eb',
  'task-store': 'fbd57e11ce4aeb77d5b679814235c9a7405a444f65767ae28da98ab335d856c7',
  uploads: '5defc5c599e893daf594f7e8e7d61ef963768cb7b3fe4c4bb03378b47bcc4346',
  'vector-stores': '18a68660d750d176936b2d90536b37f8c11260c686515a8eaae761c3ff4f2599',
  websockets: '0be6f98ae6809d12f918caadf4ef1b54a5d740b016a294e959d283dffd41c252',
};

test('the baseline of each plugin is that of its first release', () => {
  const found = [...migrationFolders()].sort().map(([plugin, folder]) => {
    const [first] = readdirSync(folder).sort();
    assert.equal(first, '001-baseline.sql', plugin);
    return [
      plugin,
      createHash('sha256')
        .update(readFileSync(new URL(first, folder)))
        .digest('hex'),
    ];
  });
  assert.deepEqual(Object.fromEntries(found), digests);
});

/** Some that development versions have recorded. */
const recorded = [
  ['storage', 1, '001-changes.sql'],
  ['billing', 24, '024-charges-in-calls.sql'],
  ['request-log', 8, '008-keys.sql'],
  ['websockets', 2, '002-live-tokens.sql'],
] as const;

test('a database with any migration of a development version is refused by a start and by commands, and stays as it is', async () => {
  await using beside = await openDatabase();
  const schema = `${beside.schema}_earlier`;
  const table = sql`${sql.identifier(schema)}.migrations`;
  await beside.orm.execute(sql`create schema ${sql.identifier(schema)}`);
  await beside.orm.execute(
    sql`create table ${table} (plugin text, number integer, name text, checksum text, applied_at timestamptz default now())`,
  );
  const directory = databaseUrl === undefined ? await embeddedDirectory() : '/nonexistent';
  const content = async () => [
    await rowsOf(
      beside.orm,
      sql`select relname from pg_catalog.pg_class join pg_catalog.pg_namespace as spaces
      on spaces.oid = relnamespace where nspname = ${schema} order by 1`,
    ),
    await rowsOf(beside.orm, sql`select * from ${table}`),
  ];
  for (const [plugin, number, name] of recorded) {
    await beside.orm.execute(sql`delete from ${table}`);
    await beside.orm.execute(sql`insert into ${table} values (${plugin}, ${number}::int, ${name}, 'c')`);
    const before = await content();
    for (const mode of ['serve', 'command'] as const)
      await assert.rejects(
        openOfPlugin(fakeHost({ schema, directory, mode }), { database: databaseUrl ?? 'embedded', maxConnections: 2 }),
        /^Error: The schema \S+_earlier of this database is of a development version before 0\.1\.0, which this version cannot read: the last commit that can is [0-9a-f]{8}; nothing was changed, so serve it with that one, or begin with an empty database\.$/,
      );
    assert.deepEqual(await content(), before);
  }
  // Plugins from outside of the program have numbers and names of their own.
  await beside.orm.execute(sql`delete from ${table}`);
  await beside.orm.execute(sql`insert into ${table} values ('notes', 1, '001-notes.sql', 'c')`);
  const opened = await openOfPlugin(fakeHost({ schema, directory, mode: 'command' }), {
    ...{ database: databaseUrl ?? 'embedded', maxConnections: 2 },
  });
  await opened.close();
  await beside.orm.execute(sql`drop schema ${sql.identifier(schema)} cascade`);
});
