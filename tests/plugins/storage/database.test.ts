/** The database service on both kinds of Postgres: exact values, transactions, schemas apart, health. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eq, sql } from 'drizzle-orm';
import { bigint, integer, jsonb, pgSchema, text, timestamp } from 'drizzle-orm/pg-core';
import { MadeParameters } from '../../../plugins/common/domain/database.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';
import { fc } from '../../helpers/properties.ts';

async function withDatabase(work: (database: TestDatabase) => Promise<void>, pool = 5): Promise<void> {
  await using database = await openDatabase({ pool });
  await work(database);
}

async function rowsOf(database: TestDatabase, statement: ReturnType<typeof sql>): Promise<Record<string, unknown>[]> {
  const rows = (await database.orm.execute(statement)) as Record<string, unknown>[];
  return rows.map((row) => ({ ...row }));
}

const int8 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });

test('whole numbers of 64 bits are exact, raw and by drizzle, alone and in arrays', () =>
  withDatabase(async (database) => {
    const amounts = pgSchema(database.schema).table('amounts', { amount: bigint({ mode: 'bigint' }).notNull() });
    await database.orm.execute(sql`create table ${amounts} (amount int8 not null)`);
    await fc.assert(
      fc.asyncProperty(int8, async (amount) => {
        await database.orm.delete(amounts);
        await database.orm.insert(amounts).values({ amount });
        assert.deepEqual(await database.orm.select().from(amounts).where(eq(amounts.amount, amount)), [{ amount }]);
        assert.deepEqual(
          await rowsOf(database, sql`select amount, array[amount] as list, ${amount}::int8 as echo from ${amounts}`),
          [{ amount, list: [amount], echo: amount }],
        );
      }),
      { numRuns: 40 },
    );
  }));

test('counts and cast sums are exact bigints, and decimals stay text', () =>
  withDatabase(async (database) => {
    const [row] = await rowsOf(
      database,
      sql`select count(*) as rows, sum(n)::int8 as sum, sum(n) as decimal from (values (9007199254740993::int8), (1::int8)) as t(n)`,
    );
    assert.deepEqual(row, { rows: 2n, sum: 9007199254740994n, decimal: '9007199254740994' });
  }));

test('times, JSON and nulls are unchanged when written and read', () =>
  withDatabase(async (database) => {
    const events = pgSchema(database.schema).table('events', {
      id: integer().primaryKey(),
      at: timestamp({ withTimezone: true }),
      data: jsonb(),
      note: text(),
    });
    await database.orm.execute(sql`create table ${events} (id int primary key, at timestamptz, data jsonb, note text)`);
    const at = new Date('2026-02-03T04:05:06.789Z');
    const data = { list: [1, 'zwei', null], nested: { ok: true } };
    await database.orm.insert(events).values([
      { id: 1, at, data, note: 'ä\u{1f600}' },
      { id: 2, at: null, data: null, note: null },
    ]);
    assert.deepEqual(await database.orm.select().from(events).orderBy(events.id), [
      { id: 1, at, data, note: 'ä\u{1f600}' },
      { id: 2, at: null, data: null, note: null },
    ]);
    await database.orm.execute(
      sql`insert into ${events} (id, at, data) values (3, ${at}, ${JSON.stringify(data)}::jsonb)`,
    );
    assert.deepEqual(await rowsOf(database, sql`select at, data from ${events} where id = 3`), [
      { at: '2026-02-03 04:05:06.789+00', data },
    ]);
  }));

test('a batch is inserted by one statement, at any size', () =>
  withDatabase(async (database) => {
    await database.orm.execute(
      sql`create table ${sql.identifier(database.schema)}.batch (id int8 primary key, note text)`,
    );
    const table = sql`${sql.identifier(database.schema)}.batch`;
    for (const size of [1, 256, 5_000]) {
      const batch = Array.from({ length: size }, (_, index) => ({
        id: String(2n ** 60n + BigInt(index)),
        note: `n${index}`,
      }));
      await database.orm.execute(sql`insert into ${table} select * from json_to_recordset(${JSON.stringify(batch)}::json)
        as rows(id int8, note text) on conflict do nothing`);
      const [row] = await rowsOf(database, sql`select count(*) as rows, max(id) as last from ${table}`);
      assert.deepEqual(row, { rows: BigInt(size), last: 2n ** 60n + BigInt(size - 1) });
    }
  }));

test('a transaction that throws leaves nothing, and its error is thrown', () =>
  withDatabase(async (database) => {
    const table = sql`${sql.identifier(database.schema)}.undone`;
    await database.orm.execute(sql`create table ${table} (id int primary key)`);
    const failing = database.orm.transaction(async (transaction) => {
      await transaction.execute(sql`insert into ${table} values (${1})`);
      await transaction.execute(sql`insert into ${table} values (${1})`);
    });
    await assert.rejects(failing, (error: Error & { cause?: { code?: string } }) => error.cause?.code === '23505');
    assert.deepEqual(await rowsOf(database, sql`select * from ${table}`), []);
  }));

test('parameters that the driver makes arrive; where they cannot be made the statement fails, and the next one works', () =>
  withDatabase(async (database) => {
    const requestOf = (words: string) =>
      rowsOf(database, sql`select ${new MadeParameters(maker, { words })}::text as first, $2::text as second`);
    assert.deepEqual(await requestOf('a b'), [{ first: 'a', second: 'b' }]);
    await assert.rejects(requestOf('refused b'), (error: Error & { cause?: Error }) =>
      /no such words/.test(`${error.cause}`),
    );
    assert.deepEqual(await Promise.all([requestOf('c d'), requestOf('e f')]), [
      [{ first: 'c', second: 'd' }],
      [{ first: 'e', second: 'f' }],
    ]);
  }));

/** A module as one that a plugin has. */
const maker = `data:text/javascript,${encodeURIComponent(`
  export function parametersOf({ words }) {
    if (words.startsWith('refused')) throw new Error('no such words');
    return words.split(' ');
  }`)}`;

test('concurrent transactions on one balance lose no update', () =>
  withDatabase(async (database) => {
    const table = sql`${sql.identifier(database.schema)}.balances`;
    await database.orm.execute(sql`create table ${table} (id int primary key, amount int8 not null)`);
    await database.orm.execute(sql`insert into ${table} values (1, 0)`);
    const move = () =>
      database.orm.transaction(async (transaction) => {
        const [row] = (await transaction.execute(sql`select amount from ${table} where id = ${1} for update`)) as {
          amount: bigint;
        }[];
        await transaction.execute(sql`update ${table} set amount = ${row!.amount + 3n} where id = ${1}`);
      });
    await Promise.all(Array.from({ length: 60 }, move));
    assert.deepEqual(await rowsOf(database, sql`select amount from ${table}`), [{ amount: 180n }]);
  }));

test('a transaction with a failed statement is not committed, even if the failure was ignored', () =>
  withDatabase(async (database) => {
    const table = sql`${sql.identifier(database.schema)}.careless`;
    await database.orm.execute(sql`create table ${table} (id int primary key)`);
    const careless = database.orm.transaction(async (transaction) => {
      await transaction.execute(sql`insert into ${table} values (${1})`);
      await transaction.execute(sql`insert into ${table} values (${1})`).catch(() => undefined);
    });
    await assert.rejects(careless, { code: '23505' });
    assert.deepEqual(await rowsOf(database, sql`select * from ${table}`), []);
  }));

test('a statement that was not awaited runs inside its transaction or not at all', () =>
  withDatabase(async (database) => {
    const table = sql`${sql.identifier(database.schema)}.late`;
    await database.orm.execute(sql`create table ${table} (id int)`);
    const late = await database.orm.transaction(async (transaction) => {
      void transaction.execute(sql`insert into ${table} values (1)`).execute();
      return transaction.execute;
    });
    assert.equal(typeof late, 'function');
    let escaped: Pick<typeof database.orm, 'execute'> | undefined;
    await database.orm.transaction(async (transaction) => {
      escaped = transaction;
    });
    await assert.rejects(async () => escaped!.execute(sql`insert into ${table} values (2)`));
    assert.deepEqual(await rowsOf(database, sql`select * from ${table}`), [{ id: 1 }]);
  }));

test('a nested transaction is rolled back alone', () =>
  withDatabase(async (database) => {
    const table = sql`${sql.identifier(database.schema)}.nested`;
    await database.orm.execute(sql`create table ${table} (id int)`);
    await database.orm.transaction(async (transaction) => {
      await transaction.execute(sql`insert into ${table} values (${1})`);
      await transaction
        .transaction(async (inner) => {
          await inner.execute(sql`insert into ${table} values (${2})`);
          throw new Error('undo');
        })
        .catch(() => undefined);
    });
    assert.deepEqual(await rowsOf(database, sql`select id from ${table}`), [{ id: 1 }]);
  }));

test('statements continue after a change of their table', () =>
  withDatabase(async (database) => {
    const table = sql`${sql.identifier(database.schema)}.changing`;
    await database.orm.execute(sql`create table ${table} (id int)`);
    await database.orm.execute(sql`insert into ${table} values (1)`);
    const read = () => rowsOf(database, sql`select * from ${table} where id = ${1}`);
    assert.deepEqual(await read(), [{ id: 1 }]);
    await database.orm.execute(sql`alter table ${table} add column name text default 'new'`);
    assert.deepEqual(await read(), [{ id: 1, name: 'new' }]);
  }, 1));

test('statements are prepared, so that parameters cost no round trip, up to a bound', () =>
  withDatabase(async (database) => {
    const count = async () => {
      const [row] = await rowsOf(
        database,
        sql`select count(*)::int as rows from pg_prepared_statements where statement like '%bound%'`,
      );
      return row!['rows'] as number;
    };
    await rowsOf(database, sql`select ${1}::int as bound`);
    await rowsOf(database, sql`select ${2}::int as bound`);
    assert.equal(await count(), 1);
    for (let index = 0; index < 600; index += 1)
      await rowsOf(database, sql`select ${index}::int as bound, ${sql.raw(String(index))} as other`);
    const prepared = await count();
    assert.ok(prepared > 400 && prepared <= 500, String(prepared));
  }, 1));

test('two schemas of one database are separate', async () => {
  const [main, alt] = [await openDatabase(), await openDatabase()];
  await main.orm.execute(sql`create table ${sql.identifier(main.schema)}.own (id int)`);
  await assert.rejects(async () => alt.orm.execute(sql`select * from ${sql.identifier(alt.schema)}.own`));
  await Promise.all([main.close(), alt.close()]);
});

test('many processes may open a new schema at once', async () => {
  await using first = await openDatabase();
  await first.orm.execute(sql`drop schema ${sql.identifier(first.schema)} cascade`);
  const others = await Promise.all(Array.from({ length: 6 }, () => openDatabase({ schema: first.schema, pool: 2 })));
  const [row] = await rowsOf(first, sql`select count(*)::int as rows from ${sql.identifier(first.schema)}.migrations`);
  assert.equal(row!['rows'], 1);
  await Promise.all(others.map((other) => other.close()));
});

test('health follows the regular poll, and its change is logged once', () =>
  withDatabase(async (database) => {
    const logged = () =>
      database.host.lines.filter(({ message }) => message.startsWith('the database')).map(({ message }) => message);
    await database.poll();
    assert.equal(database.healthy(), true);
    const table = sql`${sql.identifier(database.schema)}.changes`;
    await database.orm.execute(sql`alter table ${table} rename to away`);
    await database.poll();
    await database.poll();
    assert.equal(database.healthy(), false);
    await database.orm.execute(sql`alter table ${sql.identifier(database.schema)}.away rename to changes`);
    await database.poll();
    assert.equal(database.healthy(), true);
    assert.deepEqual(logged(), ['the database does not answer', 'the database answers again']);
  }));

test('a hanging poll makes health bad', () =>
  withDatabase(async (database) => {
    const table = sql`${sql.identifier(database.schema)}.changes`;
    let polling: Promise<void> | undefined;
    await database.orm.transaction(async (transaction) => {
      await transaction.execute(sql`lock table ${table} in access exclusive mode`);
      polling = database.poll();
      database.host.advance(5_001);
      assert.equal(database.healthy(), false);
    });
    await polling;
    assert.equal(database.healthy(), true);
  }));
