/** A gateway that is stopped while twenty streams run: they end whole, or are ended truly, and all are settled. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { dialectNames, dialects } from './dialects.ts';
import { type Establishment, establish } from './process.ts';
import { type Customer, type Reply, readReply, until } from './testbed.ts';

const streamCount = 20;
const customers = { whole: 0, late: 1, broken: 2 };

let testbed: Establishment;
before(async () => {
  testbed = await establish({ server: { drain: { grace: '400ms', deadline: '4s' } } }, 3);
});
after(() => testbed.close());

async function send(customer: Customer, index: number, prompt: string): Promise<Response> {
  const dialect = dialects[dialectNames[index % dialectNames.length]!];
  const question = { model: 'sandbox', prompt, stream: true };
  const answer = await fetch(testbed.origin + dialect.path(question), {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...dialect.key(customer.key) },
    body: JSON.stringify(dialect.body(question)),
  });
  assert.equal(answer.status, 200);
  return answer;
}

/** Resolves when each of twenty streams, of all protocols, has begun. */
async function beginStreams(customer: Customer, prompt: string): Promise<{ answers: Promise<Reply[]> }> {
  const begun = await Promise.all(Array.from({ length: streamCount }, (_, index) => send(customer, index, prompt)));
  return { answers: Promise.all(begun.map(readReply)) };
}

const exitOf = async (child: ChildProcess): Promise<number | null> => (await once(child, 'exit'))[0];

function assertEnding(answers: readonly Reply[], isGood: boolean): void {
  answers.forEach(({ text, broken }, index) => {
    const name = dialectNames[index % dialectNames.length]!;
    const { terminal, streamError } = dialects[name];
    if (isGood) {
      assert.equal(broken, false, name);
      assert.match(text, terminal, name);
      assert.doesNotMatch(text, streamError, name);
    } else {
      assert.doesNotMatch(text, terminal, name);
      if (!broken) assert.match(text, streamError, name);
    }
  });
}

const isRefused = () =>
  fetch(`${testbed.origin}/healthz`, { headers: { connection: 'close' } }).then(
    () => false,
    () => true,
  );

test('SIGTERM: twenty streams end whole, no new request is accepted, and the process exits with 0', async () => {
  const child = await testbed.start();
  const { answers } = await beginStreams(
    testbed.customers[customers.whole]!,
    '[[sandbox: chunks=30 chunk_delay=30ms]]',
  );
  const exit = exitOf(child);
  assert.equal((await fetch(`${testbed.origin}/readyz`)).status, 200);
  child.kill('SIGTERM');
  await until('readiness fails', async () => (await fetch(`${testbed.origin}/readyz`)).status === 503);
  await until('new connections are refused', isRefused);
  assertEnding(await answers, true);
  assert.equal(await exit, 0);
});

test('past the deadline of the drain every stream gets an error of its protocol', async () => {
  const child = await testbed.start();
  const { answers } = await beginStreams(
    testbed.customers[customers.late]!,
    '[[sandbox: tokens=3000 chunk_delay=20ms]]',
  );
  const exit = exitOf(child);
  child.kill('SIGTERM');
  const all = await answers;
  assertEnding(all, false);
  assert.ok(all.every(({ broken, text }) => !broken && /shutting down/.test(text)));
  assert.equal(await exit, 0);
});

test('a second signal ends the process at once, and breaks its streams', async () => {
  const child = await testbed.start();
  const { answers } = await beginStreams(
    testbed.customers[customers.broken]!,
    '[[sandbox: tokens=3000 chunk_delay=50ms]]',
  );
  const exit = exitOf(child);
  child.kill('SIGTERM');
  await until('it drains', () =>
    fetch(`${testbed.origin}/readyz`).then(
      ({ status }) => status === 503,
      () => true,
    ),
  );
  const reportedAt = Date.now();
  child.kill('SIGTERM');
  assert.equal(await exit, 1);
  assert.ok(Date.now() - reportedAt < 4_000, `it took ${Date.now() - reportedAt} ms`);
  assertEnding(await answers, false);
});

test('the next start settles the broken streams, and the ledger passes its audit', async () => {
  const child = await testbed.start();
  const answer = await readReply(await send(testbed.customers[customers.broken]!, 0, 'Hello'));
  assertEnding([answer], true);
  const exit = exitOf(child);
  child.kill('SIGTERM');
  assert.equal(await exit, 0);
  await testbed.runAsCommand(async (gateway) => {
    const [whole, late] = await Promise.all([
      gateway.records(testbed.customers[customers.whole]!, streamCount),
      gateway.records(testbed.customers[customers.late]!, streamCount),
    ]);
    assert.deepEqual(new Set(whole.ends), new Set(['charged answered']));
    assert.ok(whole.charges.every(({ estimated, terminal }) => terminal && !estimated));
    assert.deepEqual(new Set(late.ends), new Set(['charged cut']));
    assert.equal(late.charges.length, streamCount);
    const broken = await gateway.records(testbed.customers[customers.broken]!, streamCount + 1);
    assert.deepEqual(new Set(broken.ends), new Set(['charged crash', 'charged answered']));
    const crashed = broken.charges.filter(({ terminal }) => !terminal);
    assert.equal(crashed.length, streamCount);
    assert.ok(crashed.every(({ estimated, cost }) => estimated && cost > 0n));
    await gateway.audit();
  });
});
