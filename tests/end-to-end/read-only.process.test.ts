/** A data directory that can no longer be written while the gateway runs, journal and embedded database alike, and then can again. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { readOwner } from '../../plugins/storage/embedded/lock.ts';
import { databaseUrl } from '../helpers/database.ts';
import { allowWrites, canForbidWrites } from '../helpers/file-writes.ts';
import { type DialectName, dialectNames, dialects } from './dialects.ts';
import { type Establishment, establish } from './process.ts';
import { type Reply, readReply, until } from './testbed.ts';

/** Changes the limits of the gateway and of its embedded database, if it has one. */
function setWritable(isWritable: boolean, testbed: Establishment, pid: number): void {
  const embedded = databaseUrl === undefined ? readOwner(testbed.directory)?.pid : undefined;
  for (const each of new Set([pid, embedded ?? pid])) {
    try {
      allowWrites(each, isWritable);
    } catch (error) {
      // The database ends when it cannot write, and is started again.
      if (each === pid) throw error;
    }
  }
}

async function call(
  { origin, customers }: Establishment,
  turn: number,
  prompt: string,
  stream = false,
): Promise<Reply> {
  const { path, body, key } = dialects[dialectOf(turn)];
  const question = { model: 'sandbox', prompt, stream };
  const { key: secret } = customers[turn % customers.length]!;
  const headers = { 'content-type': 'application/json', ...key(secret) };
  return readReply(
    await fetch(origin + path(question), { method: 'POST', headers, body: JSON.stringify(body(question)) }),
  );
}

async function stop(serving: ChildProcess): Promise<void> {
  serving.kill('SIGTERM');
  if (serving.exitCode === null) await once(serving, 'exit');
  assert.equal(serving.exitCode, 0);
}

const dialectOf = (turn: number): DialectName => dialectNames[turn % dialectNames.length]!;

if (canForbidWrites)
  test('calls on a read-only disk are refused in one sentence, without loss or charge, and the gateway recovers by itself', async (context) => {
    const testbed = await establish({}, 4);
    const serving = await testbed.start();
    context.after(() => testbed.close());
    const ready = () => fetch(`${testbed.origin}/readyz`);
    const answers: Reply[] = [];
    for (let turn = 0; turn < 8; turn++) answers.push(await call(testbed, turn, 'before'));
    const running = call(testbed, 0, '[[sandbox: tokens=200 chunk_delay=30ms]]', true);
    await until('it runs', () => testbed.sandbox.bill().open === 1);

    setWritable(false, testbed, serving.pid!);
    await until('it is noticed', async () => (await call(testbed, 1, 'is it noticed?').then(keep)).status !== 200);
    const served = testbed.sandbox.bill().requests + testbed.sandbox.bill().open;
    for (let turn = 0; turn < 12; turn++) {
      const refused = await call(testbed, turn, 'refused', turn % 2 === 0);
      assert.equal(refused.status, 503, refused.text);
      assert.match(refused.text, /Calls cannot be recorded at the moment; please try again soon\./);
      assert.equal(refused.headers.get('retry-after'), '1');
    }
    const bill = testbed.sandbox.bill();
    assert.equal(bill.requests + bill.open, served, 'nothing refused reached the vendor');
    await until('it is said', async () => (await ready()).status === 503);
    assert.match(await (await ready()).text(), /billing/);
    answers.push(await running);
    assert.match(answers.at(-1)!.text, dialects[dialectOf(0)].terminal, 'what ran is answered to its end');

    setWritable(true, testbed, serving.pid!);
    await until('it is ready by itself', async () => (await ready()).status === 200);
    for (let turn = 0; turn < 8; turn++) answers.push(await call(testbed, turn, 'after'));
    await stop(serving);
    // What the journal has and the database has not yet is applied by the next start.
    await stop(await testbed.start());
    await assertLedger(testbed, answers);

    function keep(answer: Reply): Reply {
      if (answer.status === 200) answers.push(answer);
      return answer;
    }
  });

/** One charge for each answer, in all exactly what the vendor billed. */
async function assertLedger(testbed: Establishment, answers: readonly Reply[]): Promise<void> {
  for (const { status, text } of answers) assert.equal(status, 200, text);
  await testbed.runAsCommand(async (gateway) => {
    await gateway.audit();
    const charges = (await gateway.calls()).filter(({ settled }) => settled);
    assert.deepEqual(new Set(charges.map(({ id }) => id)), new Set(answers.map(({ id }) => id)));
    assert.equal(charges.length, answers.length);
    assert.ok(charges.every(({ estimated }) => !estimated));
    const charged: Record<string, number> = {};
    for (const { classes } of charges)
      for (const [name, count] of Object.entries(classes)) if (count > 0) charged[name] = (charged[name] ?? 0) + count;
    const { totals, requests } = testbed.sandbox.bill();
    assert.deepEqual(charged, { ...totals['sandbox'] });
    assert.equal(requests, answers.length);
  });
}
