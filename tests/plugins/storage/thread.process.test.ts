/** The thread of the database drivers: what runs fails when it dies, what comes after runs in a new one, and it keeps no process alive. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import { test } from 'node:test';
import { promisify } from 'node:util';
import type { Worker } from 'node:worker_threads';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import { setTypes } from '../../../plugins/storage/driver.ts';
import { openDatabase } from '../../helpers/database.ts';

const run = promisify(execFile);
const workers: Worker[] = [];
subscribe('worker_threads', (message) => {
  const { worker } = message as { worker: Worker };
  workers.push(worker);
});

async function seven(orm: { execute(query: ReturnType<typeof sql>): PromiseLike<unknown> }): Promise<unknown> {
  return ((await orm.execute(sql`select ${7}::int8 as value`)) as { value: unknown }[])[0]!.value;
}

test('a thread that dies fails its running statements, and the next statement has a new one', async () => {
  const { orm, close } = await openDatabase();
  const thread = workers.at(-1)!;
  const running = assert.rejects(Promise.resolve(orm.execute(sql`select pg_sleep(1)`)), (error: { cause?: Error }) =>
    /ended|lost/.test(error.cause?.message ?? ''),
  );
  await new Promise((resolve) => setTimeout(resolve, 100));
  await thread.terminate();
  await running;
  assert.equal(await seven(orm), 7n);
  assert.notEqual(workers.at(-1), thread);
  await close();
});

test('databases share one thread, and the next one uses it again', async () => {
  const one = await openDatabase();
  const thread = workers.at(-1)!;
  const other = await openDatabase();
  await one.close();
  assert.equal(await seven(other.orm), 7n);
  await other.close();
  const next = await openDatabase();
  assert.equal(await seven(next.orm), 7n);
  await next.close();
  assert.equal(workers.at(-1), thread);
});

test('a process with closed databases exits by itself', async () => {
  const script = `
    const { openDatabase } = await import(process.argv[1]);
    const { close } = await openDatabase();
    await close();
    process.stdout.write('closed');
    process.on('exit', (code) => process.stdout.write(' and ended with ' + code));
  `;
  const helper = new URL('../../helpers/database.ts', import.meta.url).href;
  const options = { timeout: 60_000 };
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', script, helper], options);
  assert.equal(stdout, 'closed and ended with 0');
});

test('a database error arrives with its code, and rows with exact whole numbers', async () => {
  const { orm, close } = await openDatabase();
  await assert.rejects(
    Promise.resolve(orm.execute(sql`select * from no_such_table`)),
    (error: { code?: string; cause?: { code?: string } }) => {
      assert.equal(error.cause?.code ?? error.code, '42P01');
      return true;
    },
  );
  const rows = (await orm.execute(sql`select 9007199254740993::int8 as value`)) as unknown as { value: bigint }[];
  assert.equal(rows[0]!.value, 9007199254740993n);
  await close();
});

test('a driver leaves to drizzle the types that drizzle parses itself', () => {
  const text = (type: number) => `value of ${type}`;
  const theirs = { parsers: {}, serializers: {} } as Parameters<typeof setTypes>[0];
  drizzle({ options: theirs } as never);
  const ours = { parsers: {}, serializers: {} } as typeof theirs;
  setTypes(ours);
  for (const side of ['parsers', 'serializers'] as const) {
    const types = Object.keys(theirs[side]).map(Number);
    assert(types.length > 7);
    for (const type of types)
      assert.equal(
        ours[side][type]?.(text(type) as never),
        theirs[side][type]?.(text(type) as never),
        `${side} ${type}`,
      );
  }
});
