/** A gateway that is told to stop while twenty streams run: they end whole, or are ended truly, and all are settled. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { dialectNames, dialects } from './dialects.ts';
import { told as readTold, type Told, until } from './house.ts';
import { type Establishment, establish } from './process.ts';

const streamCount = 20;

interface Running {
  /** Each stream's answer, once it has ended or broken. */
  readonly answers: Promise<Told[]>;
}

/** Resolves when each of twenty streams, of all protocols, has begun. */
async function beginStreams({ origin, customer }: Establishment, prompt: string): Promise<Running> {
  const begun = await Promise.all(
    Array.from({ length: streamCount }, async (_, index) => {
      const dialect = dialects[dialectNames[index % dialectNames.length]!];
      const question = { model: 'sandbox', prompt, stream: true };
      const answer = await fetch(origin + dialect.path(question), {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...dialect.key(customer.key) },
        body: JSON.stringify(dialect.body(question)),
      });
      assert.equal(answer.status, 200);
      return answer;
    }),
  );
  return { answers: Promise.all(begun.map(readTold)) };
}

const exitOf = async (child: ChildProcess): Promise<number | null> => (await once(child, 'exit'))[0];

function assertEnding(answers: readonly Told[], isGood: boolean): void {
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

test('SIGTERM: twenty streams end whole, nobody new comes in, the process ends with 0 and clean books', async (context) => {
  const house = await establish({ server: { drain: { grace: '400ms', deadline: '30s' } } });
  context.after(() => house.close());
  const child = await house.start();
  const { answers } = await beginStreams(house, '[[sandbox: chunks=60 chunk_delay=30ms]]');
  const exit = exitOf(child);
  const ready = await fetch(`${house.origin}/readyz`);
  assert.equal(ready.status, 200);
  child.kill('SIGTERM');
  await until('readiness fails', async () => (await fetch(`${house.origin}/readyz`)).status === 503);
  await until('new connections are refused', () =>
    fetch(`${house.origin}/healthz`, { headers: { connection: 'close' } }).then(
      () => false,
      () => true,
    ),
  );
  assertEnding(await answers, true);
  assert.equal(await exit, 0);
  await house.atTheDesk(async (desk) => {
    const books = await desk.books(house.customer, streamCount);
    assert.deepEqual(new Set(books.ends), new Set(['SETTLE answered']));
    assert.ok(books.usage.every(({ estimated, terminal }) => terminal && !estimated));
    await desk.audit();
  });
});

test('past the deadline of the drain every stream is told so in its protocol, and is settled', async (context) => {
  const house = await establish({ server: { drain: { grace: '0s', deadline: '300ms' } } });
  context.after(() => house.close());
  const child = await house.start();
  const { answers } = await beginStreams(house, '[[sandbox: tokens=3000 chunk_delay=20ms]]');
  const exit = exitOf(child);
  child.kill('SIGTERM');
  const all = await answers;
  assertEnding(all, false);
  assert.ok(all.every(({ broken, text }) => !broken && /shutting down/.test(text)));
  assert.equal(await exit, 0);
  await house.atTheDesk(async (desk) => {
    const books = await desk.books(house.customer, streamCount);
    assert.deepEqual(new Set(books.ends), new Set(['SETTLE cut']));
    assert.equal(books.usage.length, streamCount);
    await desk.audit();
  });
});

test('a second signal ends the process at once; its streams break, and are settled at the next start', async (context) => {
  const house = await establish({ server: { drain: { grace: '0s', deadline: '60s' } } });
  context.after(() => house.close());
  const child = await house.start();
  const { answers } = await beginStreams(house, '[[sandbox: tokens=3000 chunk_delay=50ms]]');
  const exit = exitOf(child);
  child.kill('SIGTERM');
  await until('it drains', () =>
    fetch(`${house.origin}/readyz`).then(
      ({ status }) => status === 503,
      () => true,
    ),
  );
  const toldAt = Date.now();
  child.kill('SIGTERM');
  assert.equal(await exit, 1);
  assert.ok(Date.now() - toldAt < 2_000, `it took ${Date.now() - toldAt} ms`);
  assertEnding(await answers, false);
  const again = await house.start();
  const question = { model: 'sandbox', prompt: 'Hello' };
  const { path, body, key } = dialects.chat;
  const answer = await fetch(house.origin + path(question), {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...key(house.customer.key) },
    body: JSON.stringify(body(question)),
  });
  assert.equal(answer.status, 200);
  const over = exitOf(again);
  again.kill('SIGTERM');
  assert.equal(await over, 0);
  await house.atTheDesk(async (desk) => {
    const books = await desk.books(house.customer, streamCount + 1);
    assert.deepEqual(new Set(books.ends), new Set(['SETTLE crash', 'SETTLE answered']));
    const crashed = books.usage.filter(({ terminal }) => !terminal);
    assert.equal(crashed.length, streamCount);
    assert.ok(crashed.every(({ estimated, cost }) => estimated && cost > 0n));
    await desk.audit();
  });
});
