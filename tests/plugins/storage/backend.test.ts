/** The embedded backend's upkeep: what a whole Postgres leaves to its checkpointer and autovacuum. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type EmbeddedBackend, openBackend } from '../../../plugins/storage/embedded/backend.ts';
import { query } from '../../../plugins/storage/embedded/wire.ts';
import { fillDirectory } from '../../helpers/template.ts';

async function openFresh(context: TestContext): Promise<{ backend: EmbeddedBackend; directory: string }> {
  const directory = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  context.after(() => rmSync(directory, { recursive: true, force: true }));
  await fillDirectory(directory);
  const backend = await openBackend(directory);
  context.after(() => backend.close());
  return { backend, directory };
}

async function send(backend: EmbeddedBackend, text: string): Promise<string> {
  let answer = '';
  await backend.run(query(text), (bytes) => {
    answer += Buffer.from(bytes).toString('latin1');
  });
  return answer;
}

test('columns without an index are analyzed again when half of the rows have changed', async (context) => {
  const { backend } = await openFresh(context);
  await send(backend, 'create table busy (id int primary key, "Kind" text, other text)');
  await send(backend, 'create index on busy ("Kind")');
  const add = (from: number, until: number) =>
    send(
      backend,
      `insert into busy select n, 'kind ' || n, 'other ' || n from generate_series(${from}, ${until}) as n`,
    );
  /** The planner's estimate of distinct values in each column. */
  const known = async () => {
    while (await backend.upkeep());
    const answer = await send(
      backend,
      `select attname || '=' || round(abs(case when n_distinct < 0 then n_distinct * reltuples else n_distinct end))
         from pg_stats join pg_class on relname = tablename where tablename = 'busy'`,
    );
    const counts = Object.fromEntries(Array.from(answer.matchAll(/(\w+)=(\d+)/g), ([, name, count]) => [name, count]));
    return [counts['id'], counts['Kind'], counts['other']].map(Number);
  };
  await add(1, 2_000);
  assert.deepEqual(await known(), [2_000, 2_000, 2_000]);
  await send(backend, "update busy set other = 'same' where id <= 300");
  assert.deepEqual(await known(), [2_000, 2_000, 2_000]);
  const analyses = async () =>
    Number(
      /(\d+) analyses/.exec(await send(backend, "select analyze_count || ' analyses' from pg_stat_user_tables"))![1],
    );
  const before = await analyses();
  await add(2_001, 2_100);
  assert.deepEqual([await backend.upkeep(), await analyses()], [false, before], 'too little has changed since');
  await add(2_101, 2_400);
  assert.equal(await backend.upkeep(), true);
  assert.equal(await analyses(), before + 1);
  await send(backend, "update busy set other = 'same' where id <= 1500");
  const [, , other] = await known();
  assert.ok(other! <= 901, `${other} values`);
});

test('upkeep checkpoints a long log, vacuums and analyzes each when due, and does nothing otherwise', async (context) => {
  const { backend, directory } = await openFresh(context);
  assert.equal(await backend.upkeep(), false);
  await send(backend, "create table busy as select n, repeat('x', 500) as filler from generate_series(1, 20000) as n");
  for (let round = 0; round < 7; round += 1) await send(backend, "update busy set filler = repeat('y', 500)");
  let steps = 0;
  while (await backend.upkeep()) steps += 1;
  assert.equal(steps, 3);
  const done = () =>
    send(
      backend,
      `select n_dead_tup || ' dead ' || vacuum_count || ' vacuums ' || analyze_count || ' analyses' from pg_stat_user_tables`,
    );
  assert.match(await done(), /0 dead 1 vacuums 1 analyses/);
  await send(backend, "insert into busy select n, 'new' from generate_series(1, 3000) as n");
  assert.equal(await backend.upkeep(), true);
  assert.equal(await backend.upkeep(), false);
  assert.match(await done(), /0 dead 1 vacuums 2 analyses/, 'a table that has grown a little is analyzed alone');
  const segments = () =>
    readdirSync(join(directory, 'postgres', 'pg_wal')).filter((name) => /^[0-9A-F]{24}$/.test(name)).length;
  const rewrite = async () => {
    for (let round = 0; round < 10; round += 1) {
      await send(backend, "update busy set filler = repeat('z', 500)");
      while (await backend.upkeep());
    }
  };
  // Some are kept on purpose, for the last copy of the directory: as many as that, and no more.
  await rewrite();
  const kept = segments();
  assert.ok(kept <= 14, `${kept} log files`);
  await rewrite();
  assert.ok(segments() <= kept + 1, `${segments()} log files after ${kept}`);
});
