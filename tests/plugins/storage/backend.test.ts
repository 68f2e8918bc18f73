/** The embedded backend's upkeep: what a whole Postgres leaves to its checkpointer and autovacuum. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type EmbeddedBackend, openBackend } from '../../../plugins/storage/embedded/backend.ts';
import { query } from '../../../plugins/storage/embedded/wire.ts';
import { fillDirectory } from '../../helpers/template.ts';

async function ask(backend: EmbeddedBackend, text: string): Promise<string> {
  let answer = '';
  await backend.run(query(text), (bytes) => {
    answer += Buffer.from(bytes).toString('latin1');
  });
  return answer;
}

test('upkeep checkpoints a long log, vacuums and analyzes each when that is due, and does nothing otherwise', async (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  context.after(() => rmSync(directory, { recursive: true, force: true }));
  await fillDirectory(directory);
  const backend = await openBackend(directory);
  context.after(() => backend.close());
  assert.equal(await backend.upkeep(), false);
  await ask(backend, "create table busy as select n, repeat('x', 500) as filler from generate_series(1, 20000) as n");
  for (let round = 0; round < 7; round += 1) await ask(backend, "update busy set filler = repeat('y', 500)");
  let steps = 0;
  while (await backend.upkeep()) steps += 1;
  assert.equal(steps, 3);
  const done = () =>
    ask(
      backend,
      `select n_dead_tup || ' dead ' || vacuum_count || ' vacuums ' || analyze_count || ' analyses' from pg_stat_user_tables`,
    );
  assert.match(await done(), /0 dead 1 vacuums 1 analyses/);
  await ask(backend, "insert into busy select n, 'new' from generate_series(1, 3000) as n");
  assert.equal(await backend.upkeep(), true);
  assert.equal(await backend.upkeep(), false);
  assert.match(await done(), /0 dead 1 vacuums 2 analyses/, 'a table that has grown a little is analyzed alone');
  const segments = () =>
    readdirSync(join(directory, 'postgres', 'pg_wal')).filter((name) => /^[0-9A-F]{24}$/.test(name)).length;
  const rewrite = async () => {
    for (let round = 0; round < 10; round += 1) {
      await ask(backend, "update busy set filler = repeat('z', 500)");
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
