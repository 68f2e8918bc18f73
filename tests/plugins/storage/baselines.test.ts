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

/** SHA-256 of each plugin's `001-baseline.sql`. A change of tables is a migration with a higher number, and these lines stay. */
const digests: Readonly<Record<string, string>> = {
  admission: '2d18a9ed1d2c0a5d0e85c81f0777498d3a482d094d1676c34f71c55ae829f4e4',
  alerts: '9dbd78c1ac18018eb7f8a001d399cd3ab1c562978c6e1338aee74a9376f39555',
  auth: '932b914e72bda96e5fde0a9e7cbd78da41b3dfd75ff5fe3e296265d86d52a41c',
  batches: '1e008c5eaf954fcc662960ad342fbf72ff7d171f5fd26ce303507efd92766547',
  billing: 'a2ac55ee3e076313c6151328cd4edb83ee840694310e6b4f0019bc754f512996',
  console: '94ac6cc3ea7a88e78a8cc130ae1fdd3c5e8b1f6165807f350cf69fe7acdac399',
  files: '2d1eb0df79c132407ef60262a666abd82b84a4f4ff9c4bd93786fbd925842a07',
  idempotency: '2dbebae3e19ed1431bc32b52082e18d781894a4e50e75317d14b2bc7452ef381',
  payments: '469b09b564492ff077da317e3463e7528f88ba344bb496221c4ad77e5fd19308',
  'protocol-convert': '6135699db485fe92c2e0047837606d3a73895eb392354b6a6020201c85581724',
  providers: 'b5886296579b5d572bf5e0f39d302899b82db3fd412d5391529982b156f46ffd',
  'request-log': 'cb0218f99b36b51c0e5c752690fed22125f4a2cd17e99f52a97e1e19cf2005ea',
  shop: '14f32d021bdeb12da4436231038b145c80c29a95920512725801c3c1f80c8bce',
  storage: '9d7733c9b804a0cd00c8a6945e17898cdb52967f030d10571767493a6ed6a3eb',
  'task-store': '0c8e9f418778d6f67f70ae756128ba9e03745a501a6a76dcaaeaa8e22ef93e1b',
  uploads: 'fdd524aabb6e6fd76831322ce5285cead273ca66b69a6673120e2bc62889e369',
  websockets: '0be6f98ae6809d12f918caadf4ef1b54a5d740b016a294e959d283dffd41c252',
};

test('the baseline of each plugin is that of 0.1.0', () => {
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
