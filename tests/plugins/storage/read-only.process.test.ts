/** A disk that refuses writes while the embedded database runs: statements fail soon, whatever they write, and it comes back. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../plugins/storage/database.ts';
import { readOwner } from '../../../plugins/storage/embedded/lock.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { allowWrites, canForbidWrites } from '../../helpers/file-writes.ts';
import { fillDirectory } from '../../helpers/template.ts';

const statements = {
  'a row': sql`insert into test.kept values (2)`,
  'a checkpoint': sql`checkpoint`,
  'more rows than are kept in memory': sql`insert into test.kept select 2 from generate_series(1, 1000000)`,
  'a new table': sql`create table test.other as select 2 as id`,
};

const failed = (work: Promise<unknown>) =>
  work.then(
    () => false,
    () => true,
  );

if (canForbidWrites)
  test('a write to a read-only disk fails and leaves no row, and the database recovers by itself', async (context) => {
    const directory = mkdtempSync(join(tmpdir(), 'gateway-test-'));
    context.after(() => rmSync(directory, { recursive: true, force: true }));
    await fillDirectory(directory);
    const database = await openDatabase(fakeHost({ directory }), { database: 'embedded', maxConnections: 3 });
    context.after(() => database.close());
    const { orm } = database;
    await orm.execute(sql`create table test.kept (id int)`);
    await orm.execute(sql`insert into test.kept values (1)`);
    for (const [name, statement] of Object.entries(statements)) {
      await orm.execute(sql`select 1`);
      const { pid } = readOwner(directory)!;
      allowWrites(pid, false);
      const outcomes = await Promise.race([
        // Two at once: the second comes upon what the first has left.
        Promise.all([failed(orm.execute(statement)), failed(orm.execute(sql`insert into test.kept values (3)`))]),
        pause(60_000, undefined, { ref: false }),
      ]);
      assert.deepEqual(outcomes, [true, true], name);
      if (isAlive(pid)) allowWrites(pid, true);
      const deadline = performance.now() + 60_000;
      while (await failed(orm.execute(sql`select 1`))) {
        assert.ok(performance.now() < deadline, `it is not back after ${name}`);
        await pause(50);
      }
      const rows = await orm.execute(sql`select id from test.kept`);
      assert.deepEqual(
        Array.from(rows as Iterable<object>, (row) => ({ ...row })),
        [{ id: 1 }],
        name,
      );
    }
  });

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
