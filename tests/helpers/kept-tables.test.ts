/** Tables that tests use one after another are as new for each, and those that a test has changed are not used again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { openDatabase, type TestDatabase } from './database.ts';

const plugins = ['billing', 'shop'];

async function rowsIn({ orm, schema }: TestDatabase): Promise<Record<string, unknown>> {
  const tables = await rows<{ name: string }>(
    orm,
    sql`select tablename as name from pg_catalog.pg_tables where schemaname = ${schema} and tablename <> 'migrations' order by 1`,
  );
  const found: Record<string, unknown> = {};
  for (const { name } of tables)
    found[name] = await rows(
      orm,
      sql`select to_jsonb(t) as row from ${sql.identifier(schema)}.${sql.identifier(name)} t`,
    );
  return found;
}

async function rows<Row>(orm: TestDatabase['orm'], statement: ReturnType<typeof sql>): Promise<Row[]> {
  return [...((await orm.execute(statement)) as unknown as Row[])];
}

test('a schema is used again with its first rows, although the first test kept undeletable ones', async () => {
  const first = await openDatabase({ plugins });
  const table = (name: string) => sql`${sql.identifier(first.schema)}.${sql.identifier(name)}`;
  const before = await rowsIn(first);
  const entry = sql`insert into ${table('ledger')} (account_id, kind, reference, amount, balance_after, funding, created_at)
    values ('alice', 'DEBIT', 'one', -5, -5, 5, now()) returning seq::text as seq`;
  const [{ seq } = { seq: '' }] = await rows<{ seq: string }>(first.orm, entry);
  await first.orm.execute(sql`insert into ${table('balances')} (account_id, funding) values ('alice', 5)`);
  await assert.rejects(async () => first.orm.execute(sql`delete from ${table('ledger')}`));
  assert.notDeepEqual(await rowsIn(first), before);
  await first.close();
  await assert.rejects(openDatabase({ schema: first.schema }), /another test may have it/);
  await using second = await openDatabase({ plugins });
  assert.equal(second.schema, first.schema);
  assert.deepEqual(await rowsIn(second), before);
  assert.deepEqual(await rows(second.orm, entry), [{ seq }]);
});

test('a schema with changed tables, or in use by an open connection, is not used again', async () => {
  const first = await openDatabase({ plugins });
  await first.orm.execute(sql`drop trigger immutable on ${sql.identifier(first.schema)}.ledger`);
  await first.close();
  const second = await openDatabase({ plugins });
  assert.notEqual(second.schema, first.schema);
  const beside = await openDatabase({ schema: second.schema });
  await second.close();
  await using third = await openDatabase({ plugins });
  assert.notEqual(third.schema, second.schema);
  await beside.close();
});
