/** A data directory and a database of 0.1.0: every row comes to the current version, which serves on them. */
import assert from 'node:assert/strict';
import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { sql } from 'drizzle-orm';
import { requestQueries } from '../../plugins/common/domain/admin/requests.ts';
import type { Orm } from '../../plugins/common/domain/database.ts';
import { rowsOf } from '../../plugins/common/kit/sql.ts';
import { type OpenedDatabase, openDatabase as openOfPlugin } from '../../plugins/storage/database.ts';
import { migrationFolders } from '../../plugins/storage/embedded/fresh.ts';
import { migrate, prepareSchema } from '../../plugins/storage/migrate.ts';
import { importFrom } from '../../plugins/storage/transfer/import.ts';
import { databaseUrl, openDatabase } from '../helpers/database.ts';
import { fakeHost } from '../helpers/fakes.ts';
import { startGateway } from '../helpers/gateway.ts';
import { fillDirectory } from '../helpers/template.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const exported = fileURLToPath(new URL('./rows-0.1.0.gz', import.meta.url));
const schema = 'upgrade';
/** A key of the account `alice`, which is in the rows. */
const key = 'sk-gw-bEmfbn4W7e6tsQaRVD5NwD1A1s8Fgqtyj1XG37Bhov83VQYFT';

/** What moved that account's money, oldest first, and all of it afterwards. */
const statement = [
  'CREDIT 40.00 40.00',
  'CREDIT 2.00 42.00',
  'DEBIT -0.50 41.50',
  'PAYOUT -1.00 40.50',
  'PURCHASE -20.00 20.50',
  'CREDIT 25.00 45.50',
  'CREDIT 3.00 48.50',
  'CREDIT 0.30 48.80',
  'CHARGE -0.000069 48.799931',
  'CHARGE -0.000069 48.799862',
  'CHARGE -0.000069 48.799793',
  'CHARGE -0.000069 48.799724',
  'CHARGE -0.0000705 48.7996535',
  'CHARGE -0.053 48.7466535',
  'CHARGE -0.053 48.6936535',
  'CHARGE -0.000069 48.6935845',
  'REFUND 0.000001 48.6935855',
  'EXPIRE -0.1936535 48.499932',
];
const lists = [
  ['/v1/tasks', 2],
  ['/v1/files', 2],
  ['/v1/batches', 1],
] as const;
const requests = ['16 of 200', '1 of 404'];

type Migrations = readonly { readonly plugin: string; readonly number: number }[];

/** The tables as 0.1.0 made them. */
async function makeTables(orm: Orm, migrations: Migrations): Promise<void> {
  await prepareSchema(orm, schema);
  const folders = migrationFolders();
  for (const [plugin, own] of Map.groupBy(migrations, (each) => each.plugin)) {
    const directory = temporaryDirectory('upgrade-');
    for (const name of readdirSync(folders.get(plugin)!))
      if (own.some(({ number }) => number === Number.parseInt(name, 10)))
        cpSync(new URL(name, folders.get(plugin)), join(directory, name));
    await migrate(orm, schema, plugin, pathToFileURL(`${directory}/`));
  }
}

/** Every table with its columns, and its rows as texts. */
async function rowsIn({ orm }: OpenedDatabase, known?: Map<string, readonly string[]>) {
  const columns = await rowsOf<{ table: string; name: string }>(
    orm,
    sql`select table_name as table, column_name as name from information_schema.columns join information_schema.tables using (table_schema, table_name)
        where table_schema = ${schema} and table_type = 'BASE TABLE' and table_name <> 'migrations' order by table_name, ordinal_position`,
  );
  const named =
    known ??
    new Map([...Map.groupBy(columns, ({ table }) => table)].map(([table, of]) => [table, of.map(({ name }) => name)]));
  const found = new Map<string, string[]>();
  for (const [table, names] of named) {
    const list = sql.join(
      names.map((name) => sql.identifier(name)),
      sql`, `,
    );
    const rows = await rowsOf<{ row: string }>(
      orm,
      sql`select row_to_json(kept)::text as row from (select ${list} from ${sql.identifier(schema)}.${sql.identifier(table)}) as kept order by 1`,
    );
    found.set(
      table,
      rows.map(({ row }) => row),
    );
  }
  return { named, found };
}

async function upgraded(directory: string, url: string): Promise<void> {
  const open = () =>
    openOfPlugin(fakeHost({ schema: 'public', directory, mode: 'command' }), { database: url, maxConnections: 2 });
  const store = await open();
  await store.patiently((orm) =>
    importFrom(exported, { orm, makeTables: (_schema, migrations) => makeTables(orm, migrations) }),
  );
  const { named, found } = await rowsIn(store);
  await store.makeTables(
    schema,
    [...migrationFolders().keys()].map((plugin) => ({ plugin })),
  );
  assert.deepEqual((await rowsIn(store, named)).found, found);
  const empty = [...found].flatMap(([table, rows]) => (rows.length === 0 ? [table] : []));
  assert.deepEqual(empty, ['archived_charges', 'archives'], 'every other table has rows');
  await store.close();
}

async function serves(directory: string, url: string): Promise<void> {
  await using gateway = await startGateway(`include: config/demo.yaml\nschema: ${schema}\n`, {
    directory,
    environment: { DATABASE_URL: url },
  });
  const run = async (name: string, values: object) =>
    (await gateway.gateway.commands.find((each) => each.name === name)!.run(values as never)).json;
  assert.deepEqual(((await run('audit', {})) as { violations: unknown[] }).violations, []);
  const { rows } = (await run('ledger', { name: 'alice' })) as {
    rows: { seq: string; kind: string; change: string; balance_after: string }[];
  };
  const lines = rows.toReversed().map(({ kind, change, balance_after }) => `${kind} ${change} ${balance_after}`);
  assert.deepEqual(lines.slice(0, statement.length), statement);
  const get = async (path: string) => {
    const answer = await fetch(gateway.origin + path, { headers: { authorization: `Bearer ${key}` } });
    const text = await answer.text();
    assert.equal(answer.status, 200, `${path}: ${text}`);
    return JSON.parse(text) as { readonly data?: readonly object[] };
  };
  for (const [path, count] of lists) assert.equal((await get(path)).data?.length, count, path);
  const from = Date.UTC(2026, 10, 28, 22);
  const page = await gateway.gateway.find(requestQueries)!.list({ from, until: from + 17 * 60_000 }, { limit: 100 });
  assert.deepEqual(
    Object.entries(Object.groupBy(page.rows, ({ status }) => status)).map(
      ([status, of]) => `${of!.length} of ${status}`,
    ),
    requests,
  );
}

test('the embedded database of 0.1.0 comes to this version with every row, and is served', async () => {
  const directory = temporaryDirectory('upgrade-');
  await fillDirectory(directory);
  await upgraded(directory, 'embedded');
  await serves(directory, 'embedded');
});

if (databaseUrl !== undefined)
  test('a PostgreSQL of 0.1.0 comes to this version with every row, and is served', async () => {
    await using admin = await openDatabase();
    const name = `upgrade_${process.pid}`;
    await admin.orm.execute(sql.raw(`create database ${name}`));
    try {
      const url = Object.assign(new URL(databaseUrl!), { pathname: `/${name}` }).href;
      const directory = temporaryDirectory('upgrade-');
      await upgraded(directory, url);
      await serves(directory, url);
    } finally {
      await admin.orm.execute(sql.raw(`drop database ${name} with (force)`));
    }
  });
