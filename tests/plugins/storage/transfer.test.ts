/** A database that is exported and imported: every row as it was, whole or not at all, and only into an empty one at rest. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { sql } from 'drizzle-orm';
import type { CommandResult } from '../../../core/contract/commands.ts';
import type { PluginInstance } from '../../../core/contract/contract.ts';
import type { GatewayError } from '../../../core/contract/errors.ts';
import billing from '../../../plugins/billing/index.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { money } from '../../../plugins/common/domain/money.ts';
import type { OpenedDatabase } from '../../../plugins/storage/database.ts';
import storage from '../../../plugins/storage/index.ts';
import { databaseUrl } from '../../helpers/database.ts';
import { type FakeHost, fakeHost, setUp } from '../../helpers/fakes.ts';
import { fillDirectory } from '../../helpers/template.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

interface Side {
  readonly host: FakeHost;
  readonly part: PluginInstance;
  readonly orm: OpenedDatabase['orm'];
  run(name: string, file: string): Promise<CommandResult>;
  stop(): Promise<void>;
}

/** Storage and billing as a command has them, on a database of their own. */
async function open(directory: string, section: object = {}, mode: 'command' | 'serve' = 'command'): Promise<Side> {
  const host = fakeHost({ schema: 'main', directory, mode });
  const part = (await setUp(storage, host, section)) as PluginInstance;
  await setUp(billing, host);
  return {
    host,
    part,
    orm: host.get(database).orm,
    run: (name, file) => part.commandLine!.commands!.find((each) => each.name === name)!.run({ file }),
    stop: async () => part.lifecycle!.stop!(),
  };
}

async function emptyDirectory(): Promise<string> {
  const directory = temporaryDirectory('transfer-');
  await fillDirectory(directory);
  return directory;
}

/** Every row of every table, as text. */
async function rowsIn({ orm }: Side): Promise<Record<string, string[]>> {
  const tables = (await orm.execute(
    sql`select schemaname || '.' || tablename as name from pg_catalog.pg_tables where schemaname in ('main', 'odd') order by 1`,
  )) as unknown as { name: string }[];
  const found: Record<string, string[]> = {};
  for (const { name } of tables) {
    if (name.endsWith('.migrations') || name.endsWith('.changes')) continue;
    const rows = await orm.execute(sql.raw(`select row_to_json(t)::text as row from ${name} as t order by 1`));
    found[name] = (rows as unknown as { row: string }[]).map(({ row }) => row);
  }
  return found;
}

const file = (name: string) => join(temporaryDirectory('export-'), name);
const isRefused = (expected: RegExp) => (error: unknown) => expected.test((error as GatewayError).message);

let source: Side;
let whole: string;

before(async () => {
  source = await open(await emptyDirectory());
  const { orm, host } = source;
  for (let index = 0; index < 30; index += 1) {
    const entry = { kind: 'top-up', reason: `odd "\u2028\n\\" text ${index}`, reference: `r-${index}` };
    await host.get(ledger).credit(`account-${index % 3}`, money(10n ** 15n + BigInt(index)), entry);
  }
  // Another gateway's schema, with what is hard to carry over, and a trigger that counts.
  await orm.execute(sql`create schema odd`);
  await orm.execute(
    sql`create table odd.migrations (plugin text, number int, name text, checksum text, applied_at timestamptz default now())`,
  );
  await orm.execute(
    sql`insert into odd.migrations values ('storage', 1, '001-baseline.sql', (select checksum from main.migrations where plugin = 'storage' and number = 1))`,
  );
  await orm.execute(
    sql`create table odd.changes (id bigint generated always as identity primary key, topic text, subject text, at timestamptz default now())`,
  );
  await orm.execute(
    sql`insert into odd.changes (topic, subject) select 'a', 'number ' || number from generate_series(1, 450) as number`,
  );
  whole = file('whole.gz');
  const { json } = await source.run('storage export', whole);
  assert.deepEqual(
    (json as { schemas: { schema: string }[] }).schemas.map(({ schema }) => schema),
    ['main', 'odd'],
  );
});
after(() => source.stop());

test('an export is imported row by row, with continuing sequences, and the ledger adds up', async () => {
  const target = await open(await emptyDirectory());
  await target.run('storage import', whole);
  assert.deepEqual(await rowsIn(target), await rowsIn(source));
  await target.host.get(ledger).credit('account-0', money(1n), { kind: 'top-up', reason: 'r', reference: 'later' });
  const [last] = (await target.orm.execute(sql`select max(seq)::int as seq from main.ledger`)) as unknown as {
    seq: number;
  }[];
  assert.equal(last!.seq, 31);
  await assert.rejects(target.orm.execute(sql`update main.ledger set amount = 0`), 'triggers are there again');
  const again = file('again.gz');
  await target.run('storage export', again);
  await assert.rejects(target.run('storage import', whole), isRefused(/main is not empty/));
  await assert.rejects(target.run('storage export', again), isRefused(/is there already/));
  await target.stop();
});

test('a cut, changed or invalid file leaves the database empty', async () => {
  const target = await open(await emptyDirectory());
  const bytes = readFileSync(whole);
  const text = gunzipSync(bytes).toString();
  const made = (name: string, content: Buffer | string) => {
    const path = file(name);
    writeFileSync(path, content);
    return path;
  };
  const files = [
    made('cut.gz', bytes.subarray(0, bytes.length / 2)),
    made('changed.gz', gzipSync(text.replace('r-17"', 'r-71"'))),
    made('shorter.gz', gzipSync(text.slice(0, text.lastIndexOf('{"end"')))),
    made('plain.txt', 'no export'),
    join(temporaryDirectory('none-'), 'none'),
  ];
  for (const path of files)
    await assert.rejects(target.run('storage import', path), isRefused(/cut short|damaged|no file|no whole export/));
  const rows = await rowsIn(target);
  assert.deepEqual([rows['main.ledger'], rows['main.grants'], rows['odd.changes']], [[], [], undefined]);
  await target.stop();
});

test('the export of a development version is refused before any table is made', async () => {
  const target = await open(await emptyDirectory());
  const before = await rowsIn(target);
  const lines = gunzipSync(readFileSync(whole)).toString().trimEnd().split('\n').slice(0, -1);
  const of = (name: string | undefined) =>
    lines.map((line) => {
      const read = JSON.parse(line) as { schema?: string; migrations?: { number: number }[] };
      if (read.schema !== 'odd') return line;
      return JSON.stringify({ ...read, migrations: read.migrations!.map((each) => ({ ...each, name })) });
    });
  for (const name of ['001-changes.sql', undefined]) {
    const text = `${of(name).join('\n')}\n`;
    const path = file(`of-${name}.gz`);
    const end = JSON.stringify({ end: true, sha256: createHash('sha256').update(text).digest('hex') });
    writeFileSync(path, gzipSync(`${text}${end}\n`));
    await assert.rejects(
      target.run('storage import', path),
      isRefused(/of-\S+ is of a development version before 0\.1\.0, .* the last commit that can is [0-9a-f]{8};/),
    );
  }
  assert.deepEqual(await rowsIn(target), before);
  await target.stop();
});

test('before a command, a database without rows is named with the database beside it, and one with rows is not', async () => {
  const directory = await emptyDirectory();
  const before = async (name: string, section: object = {}, at = directory) => {
    const side = await open(at, section);
    const sentences = side.part.commandLine!.beforeCommand!(name);
    await side.stop();
    return sentences;
  };
  const none = `The database in ${directory} has no rows of the gateway "test" (schema main)`;
  assert.deepEqual(await before('audit'), [`${none} yet.`]);
  assert.deepEqual(await before('storage import'), []);
  mkdirSync(join(directory, 'journal', 'main'), { recursive: true });
  const journal = `although ${directory} has a journal of it: check storage.database (DATABASE_URL) and DATA_DIR.`;
  assert.deepEqual(await before('accounts list'), [`${none}, ${journal}`]);
  const filled = await open(directory);
  await filled.run('storage import', whole);
  await filled.stop();
  assert.deepEqual(await before('audit'), []);
});

test('nothing is exported or imported while a gateway runs on the database', async () => {
  const directory = await emptyDirectory();
  mkdirSync(directory, { recursive: true });
  const target = await open(directory);
  writeFileSync(join(directory, 'postgres.lock'), JSON.stringify({ pid: 1, gatewayPid: 1, address: '' }));
  await assert.rejects(target.run('storage export', file('x.gz')), isRefused(/in use by process 1/));
  await assert.rejects(target.run('storage import', whole), isRefused(/in use by process 1/));
  await target.stop();
});

if (databaseUrl !== undefined)
  test('rows move from the embedded database to a server and back; a start on the empty server is refused unless it is set', async () => {
    const admin = await open(temporaryDirectory('admin-'), { database: databaseUrl! });
    const name = `transfer_${process.pid}`;
    await admin.orm.execute(sql.raw(`create database ${name}`));
    const url = Object.assign(new URL(databaseUrl!), { pathname: `/${name}` }).href;
    const directory = await emptyDirectory();
    mkdirSync(join(directory, 'postgres'), { recursive: true });
    writeFileSync(join(directory, 'postgres', 'PG_VERSION'), '18');
    const serve = (section: object = {}) => open(directory, { database: url, ...section }, 'serve');
    try {
      await assert.rejects(serve(), /holds an embedded database.*storage export.*storage import.*start_empty/);
      await (await serve({ start_empty: true })).stop();
      const server = await open(directory, { database: url });
      const [sentence] = server.part.commandLine!.beforeCommand!('keys list');
      assert.match(sentence!, /has no rows .*; the embedded database in \S+ is not used, since storage.database/);
      await server.run('storage import', whole);
      assert.deepEqual(await rowsIn(server), await rowsIn(source));
      const back = file('back.gz');
      const serving = await serve();
      await assert.rejects(server.run('storage export', back), isRefused(/in use by the gateway/));
      await serving.stop();
      await server.run('storage export', back);
      await server.stop();
      const embedded = await open(await emptyDirectory());
      await embedded.run('storage import', back);
      assert.deepEqual(await rowsIn(embedded), await rowsIn(source));
      await embedded.stop();
    } finally {
      await admin.orm.execute(sql.raw(`drop database ${name} with (force)`));
      await admin.stop();
    }
  });
