/** Clients that leave a vendor whose answers are read on: what is charged is what the vendor counted, within bounds. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { BillEntry } from '../../plugins/sandbox/bill.ts';
import { type DialectName, dialectNames } from './dialects.ts';
import { type Books, type Customer, type House, modelAt, speaks, startHouse, until } from './house.ts';

let house: House;
before(async () => {
  const key = 'vendor-key-of-the-sandbox';
  const reading = { keys: key, client_left: 'drain' };
  house = await startHouse({
    providers: ({ sandbox, replay }) => ({
      replayed: { ...reading, speaks: speaks(replay) },
      patient: { ...reading, speaks: speaks(sandbox) },
      hurried: { ...reading, speaks: speaks(sandbox), drain: { longest: '1s' } },
      thrifty: { ...reading, speaks: speaks(sandbox), drain: { bytes: '4KB' } },
      usual: { keys: key, speaks: speaks(sandbox) },
      'chat-only': { ...reading, speaks: { chat: `${sandbox}/v1` } },
      'messages-only': { ...reading, speaks: { messages: sandbox } },
    }),
    models: Object.fromEntries(
      ['replayed', 'patient', 'hurried', 'thrifty', 'usual', 'chat-only', 'messages-only'].map((name) => [
        name,
        modelAt(name),
      ]),
    ),
    offers: { single: { price: 0, limits: { concurrency: 1 } } },
  });
});
after(() => house.stop());

interface Left {
  readonly customer: Customer;
  readonly books: Books;
  /** How long it took from the leaving to the end. */
  readonly tookMs: number;
  /** What the vendor has billed for it. */
  readonly entry: BillEntry;
}

/** Calls, leaves after a moment, and waits for the end. */
async function leave(
  name: DialectName,
  model: string,
  prompt: string,
  stream: boolean,
  more: object = {},
): Promise<Left> {
  const customer = await house.customer({ plan: 'single' });
  const { open } = house.sandbox.bill();
  const leaving = new AbortController();
  const asked = house.call(customer, name, { model, prompt, stream, more }, { signal: leaving.signal });
  asked.catch(() => {});
  await until('the vendor has the request', () => house.sandbox.bill().open > open);
  await new Promise((resolve) => setTimeout(resolve, 60));
  const leftAt = Date.now();
  leaving.abort();
  await until('the vendor is free again', () => house.sandbox.bill().open === open, 8_000);
  const books = await house.books(customer);
  return { customer, books, tookMs: Date.now() - leftAt, entry: house.sandbox.bill().recent.at(-1)! };
}

function sumOf(classes: Readonly<Record<string, number | undefined>>): number {
  return Object.values(classes).reduce<number>((sum, count) => sum + (count ?? 0), 0);
}

for (const name of dialectNames) {
  for (const model of ['patient', 'chat-only', 'messages-only']) {
    test(`lost usage on disconnect: a stream is read to its end and charged as the vendor counted (${name}, ${model})`, async () => {
      const { customer, books, entry } = await leave(
        name,
        model,
        '[[sandbox: tokens=120 chunks=40 chunk_delay=5ms]]',
        true,
      );
      assert.deepEqual([entry.outcome, books.ends], ['complete', ['charged client_left']]);
      const [row] = books.charges;
      assert.deepEqual([row!.estimated, row!.terminal, row!.classes.output], [false, true, 120]);
      assert.equal(sumOf(row!.classes), sumOf(entry.usage));
      assert.equal((await house.call(customer, name, { model: 'sandbox', prompt: 'Again' })).status, 200);
    });
  }

  test(`a whole answer whose client left before its head is charged as the vendor counted (${name})`, async () => {
    const { books, entry } = await leave(name, 'patient', '[[sandbox: tokens=30 delay=300ms]]', false);
    assert.deepEqual([entry.outcome, books.ends], ['complete', ['charged client_left']]);
    assert.deepEqual([books.charges[0]!.estimated, books.charges[0]!.classes.output], [false, 30]);
  });
}

test('a stream whose client left before the head is read on too', async () => {
  const { books } = await leave('chat', 'patient', '[[sandbox: tokens=40 delay=300ms]]', true);
  assert.deepEqual(
    [books.ends, books.charges[0]!.estimated, books.charges[0]!.classes.output],
    [['charged client_left'], false, 40],
  );
});

test('reading on ends with its time, and what was seen is charged', async () => {
  for (const stream of [true, false]) {
    const prompt = stream ? '[[sandbox: tokens=3000 chunk_delay=20ms]]' : '[[sandbox: delay=9s]]';
    const { books, tookMs, entry } = await leave('chat', 'hurried', prompt, stream);
    assert.ok(tookMs > 900 && tookMs < 3_500, `${tookMs} ms`);
    assert.equal(entry.outcome, 'cut');
    assert.deepEqual(
      [books.ends, books.charges[0]!.estimated, books.charges[0]!.terminal],
      [['charged client_left'], true, false],
    );
  }
});

test('reading on ends with its bytes', async () => {
  const { books, tookMs, entry } = await leave('chat', 'thrifty', '[[sandbox: tokens=3000 chunk_delay=5ms]]', true);
  assert.ok(tookMs < 10_000, `${tookMs} ms`);
  assert.deepEqual([entry.outcome, books.charges[0]!.estimated], ['cut', true]);
});

test('an answer that breaks after its client left is settled as a cut one', async () => {
  const { books } = await leave('chat', 'patient', '[[sandbox: chunks=30 chunk_delay=10ms cut_after=20]]', true);
  assert.deepEqual([books.ends, books.charges[0]!.estimated], [['charged cut'], true]);
});

test('an answer that never began costs a client nothing that has left, and nobody else is asked', async () => {
  for (const [status, end] of [
    [500, 'free unknown'],
    [503, 'free refused'],
  ] as const) {
    house.replay.play({ status, headDelayMs: 200 });
    const before = house.replay.requests.length;
    const customer = await house.customer();
    const leaving = new AbortController();
    const asked = house.call(customer, 'chat', { model: 'replayed', prompt: 'Hello' }, { signal: leaving.signal });
    asked.catch(() => {});
    await until('the vendor has the request', () => house.replay.requests.length > before);
    leaving.abort();
    assert.deepEqual((await house.books(customer)).ends, [end]);
    assert.equal(house.replay.requests.length - before, 1);
  }
});

test('the books are in order after all that, and nothing is left in flight', async () => {
  assert.equal(house.gateway.gateway.inFlight, 0);
  await house.audit();
});

const limitOf = (tokens: number): Record<DialectName, object> => ({
  chat: { max_completion_tokens: tokens },
  responses: { max_output_tokens: tokens },
  messages: { max_tokens: tokens },
  gemini: { generationConfig: { maxOutputTokens: tokens } },
});

for (const name of dialectNames) {
  const reportsLast = name === 'chat' || name === 'responses';
  test(`without a setting a stream is ${reportsLast ? 'read on if it can cost little beside' : 'aborted whatever it can cost beside'} its prompt (${name})`, async () => {
    const prompt = `[[sandbox: tokens=60 chunks=30 chunk_delay=10ms]] ${'word '.repeat(6_000)}`;
    const short = await leave(name, 'usual', prompt, true, limitOf(100)[name]);
    assert.equal(short.entry.outcome, reportsLast ? 'complete' : 'cut');
    if (reportsLast) assert.equal(short.books.charges[0]!.estimated, false);
    const long = await leave(name, 'usual', prompt, true, limitOf(4_000)[name]);
    assert.equal(long.entry.outcome, 'cut');
    if (reportsLast) assert.equal(long.books.charges[0]!.estimated, true);
  });
}
