/** Migrations: each file once, in order, whole or not at all, and never changed afterwards. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { sql } from 'drizzle-orm';
import { databaseUrl, openDatabase, type TestDatabase } from '../../helpers/database.ts';

type Files = Record<string, string>;

interface Fixture {
  readonly database: TestDatabase;
  write(files: Files): Promise<void>;
  /** Adds files to the plugin's folder and migrates. */
  migrate(files: Files, database?: TestDatabase): Promise<void>;
  rows(statement: ReturnType<typeof sql>): Promise<object[]>;
}

async function fixture(context: TestContext): Promise<Fixture> {
  const directory = await mkdtemp(join(tmpdir(), 'gateway-test-'));
  const database = await openDatabase();
  context.after(async () => {
    await rm(directory, { recursive: true });
    await database.close();
  });
  const write = async (files: Files) => {
    for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  };
  return {
    database,
    write,
    async migrate(files, through = database) {
      await write(files);
      await through.migrate('things', pathToFileURL(directory));
    },
    rows: async (statement) => ((await database.orm.execute(statement)) as object[]).map((row) => ({ ...row })),
  };
}

const createThings = 'create table {schema}.things (id int);\ninsert into {schema}.things values (1);';

test('files are applied once and in order, with the schema put in', async (context) => {
  const { database, migrate, rows } = await fixture(context);
  const files = { '002-more.sql': 'insert into {schema}.things values (2);', '001-things.sql': createThings };
  await migrate(files);
  await migrate(files);
  await migrate({ '010-most.sql': 'update {schema}.things set id = id * 10;', 'notes.txt': 'no SQL' });
  const schema = sql.identifier(database.schema);
  assert.deepEqual(await rows(sql`select id from ${schema}.things order by id`), [{ id: 10 }, { id: 20 }]);
  assert.deepEqual(
    await rows(sql`select number, name from ${schema}.migrations where plugin = 'things' order by number`),
    [
      { number: 1, name: '001-things.sql' },
      { number: 2, name: '002-more.sql' },
      { number: 10, name: '010-most.sql' },
    ],
  );
});

test('a failing file leaves nothing, is named, and can be corrected', async (context) => {
  const { migrate, rows, database } = await fixture(context);
  const broken = `${createThings}\nselect * from {schema}.nowhere;`;
  await assert.rejects(migrate({ '001-things.sql': broken }), {
    message: `The migration 001-things.sql of "things" failed: relation "${database.schema}.nowhere" does not exist`,
  });
  assert.deepEqual(
    await rows(sql`select * from ${sql.identifier(database.schema)}.migrations where plugin = 'things'`),
    [],
  );
  await migrate({ '001-things.sql': createThings });
  assert.equal((await rows(sql`select * from ${sql.identifier(database.schema)}.things`)).length, 1);
});

test('an applied file that was changed, renamed or overtaken is refused by name; other line ends are no change', async (context) => {
  const { migrate } = await fixture(context);
  await migrate({ '002-things.sql': createThings });
  await migrate({ '002-things.sql': createThings.replaceAll('\n', '\r\n') });
  await assert.rejects(migrate({ '002-things.sql': `${createThings} ` }), {
    message: 'The migration 002-things.sql of "things" was changed after it was applied: add a new file instead.',
  });
  await assert.rejects(migrate({ '002-things.sql': createThings, '001-late.sql': 'select 1' }), {
    message:
      'The migration 001-late.sql of "things" is new, but 002-things.sql is applied already: give it a higher number.',
  });
});

test('names without a number, and repeated numbers, are refused', async (context) => {
  const first = await fixture(context);
  await assert.rejects(
    first.migrate({ 'first.sql': 'select 1' }),
    /^Error: The migration first\.sql must be named like 001-first-tables\.sql\.$/,
  );
  const second = await fixture(context);
  await assert.rejects(
    second.migrate({ '001-a.sql': 'select 1', '001-b.sql': 'select 1' }),
    /001-a\.sql and 001-b\.sql have the same number/,
  );
});

test('an applied file under a new name is refused with its old name', async (context) => {
  const { database, migrate } = await fixture(context);
  const other = await mkdtemp(join(tmpdir(), 'gateway-test-'));
  context.after(() => rm(other, { recursive: true }));
  await migrate({ '001-things.sql': createThings });
  await writeFile(join(other, '001-items.sql'), createThings);
  await assert.rejects(
    database.migrate('things', pathToFileURL(`${other}/`)),
    /001-items\.sql of "things" was applied as 001-things\.sql/,
  );
});

test('two plugins may use the same numbers', async (context) => {
  const { database, migrate, rows } = await fixture(context);
  await migrate({ '001-things.sql': createThings });
  const other = await mkdtemp(join(tmpdir(), 'gateway-test-'));
  context.after(() => rm(other, { recursive: true }));
  await writeFile(join(other, '001-others.sql'), 'create table {schema}.others (id int)');
  await database.migrate('others', pathToFileURL(other));
  assert.deepEqual(await rows(sql`select * from ${sql.identifier(database.schema)}.others`), []);
});

test('processes that migrate at the same time apply each file once', async (context) => {
  const { database, write, migrate, rows } = await fixture(context);
  const others = await Promise.all(Array.from({ length: 5 }, () => openDatabase({ schema: database.schema, pool: 2 })));
  const files = { '001-things.sql': createThings, '002-more.sql': 'insert into {schema}.things values (2);' };
  await write(files);
  await Promise.all([database, ...others].map((through) => migrate({}, through)));
  assert.equal((await rows(sql`select * from ${sql.identifier(database.schema)}.things`)).length, 2);
  await Promise.all(others.map((other) => other.close()));
});

// An embedded database has one session at a time: no other session can lock a table.
if (databaseUrl !== undefined) {
  test('a migration that finds its table locked does not block later statements for long, and is applied afterwards', async (context) => {
    const { database, migrate, rows } = await fixture(context);
    await migrate({ '001-things.sql': createThings });
    const things = sql`${sql.identifier(database.schema)}.things`;
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const { promise: reading, resolve: begun } = Promise.withResolvers<void>();
    const dump = database.orm.transaction(async (transaction) => {
      await transaction.execute(sql`select * from ${things}`);
      begun();
      await held;
    });
    await reading;
    const migrated = migrate({ '002-more.sql': 'alter table {schema}.things add column name text;' });
    await pause(200);
    const startedAt = performance.now();
    await rows(sql`insert into ${things} values (2)`);
    assert.ok(performance.now() - startedAt < 10_000, 'it waited behind a migration that waited');
    release();
    await Promise.all([dump, migrated]);
    assert.deepEqual(await rows(sql`select * from ${things}`), [
      { id: 1, name: null },
      { id: 2, name: null },
    ]);
  });

  test('a migration that is ended for a deadlock with a client is applied afterwards', async (context) => {
    const { database, migrate, rows } = await fixture(context);
    await migrate({ '001-things.sql': `${createThings} create table {schema}.others (id int);` });
    const table = (name: string) => sql`${sql.identifier(database.schema)}.${sql.identifier(name)}`;
    let migrated: Promise<unknown> | undefined;
    await database.orm.transaction(async (transaction) => {
      await transaction.execute(sql`select * from ${table('things')}`);
      const text =
        'alter table {schema}.others add column name text; alter table {schema}.things add column name text;';
      migrated = migrate({ '002-more.sql': text });
      await pause(300);
      // Waits for the migration, which waits for this transaction.
      await transaction.execute(sql`select * from ${table('others')}`);
    });
    await migrated;
    assert.deepEqual(await rows(sql`select name from ${table('others')}`), []);
  });
}

test('migrations only add, so that the earlier version serves beside the next one', () => {
  for (const path of globSync('plugins/*/migrations/*.sql')) {
    // Bodies of functions are no change to a table.
    const text = readFileSync(path, 'utf8')
      .replaceAll(/\$body\$[\s\S]*?\$body\$/g, '')
      .replaceAll(/--.*$/gm, '');
    assert.doesNotMatch(text, /\bdrop\s+(table|column|function|type|view|schema|trigger)\b/i, path);
    assert.doesNotMatch(text, /\brename\b|\bset\s+not\s+null\b|\balter\s+column\s+\w+\s+(set\s+data\s+)?type\b/i, path);
    for (const [added] of text.matchAll(/\badd\s+column\b[^,;]*/gi))
      assert.ok(!/\bnot\s+null\b/i.test(added) || /\bdefault\b/i.test(added), `${path}: ${added}`);
  }
});
