/** Clients that leave a vendor whose answers are read on: what is charged is what the vendor counted, within bounds. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { BillEntry } from '../../plugins/sandbox/bill.ts';
import { type DialectName, dialectNames } from './dialects.ts';
import { type AccountRecords, type Customer, modelAt, speaks, startTestbed, type Testbed, until } from './testbed.ts';

let testbed: Testbed;
before(async () => {
  const key = 'vendor-key-of-the-sandbox';
  const reading = { keys: key, client_left: 'drain' };
  testbed = await startTestbed({
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
after(() => testbed.stop());

interface Left {
  readonly customer: Customer;
  readonly records: AccountRecords;
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
  const customer = await testbed.customer({ plan: 'single' });
  const { open } = testbed.sandbox.bill();
  const leaving = new AbortController();
  const pending = testbed.call(customer, name, { model, prompt, stream, more }, { signal: leaving.signal });
  pending.catch(() => {});
  await until('the vendor has the request', () => testbed.sandbox.bill().open > open);
  await new Promise((resolve) => setTimeout(resolve, 60));
  const leftAt = Date.now();
  leaving.abort();
  await until('the vendor is free again', () => testbed.sandbox.bill().open === open, 8_000);
  const records = await testbed.records(customer);
  return { customer, records, tookMs: Date.now() - leftAt, entry: testbed.sandbox.bill().recent.at(-1)! };
}

function sumOf(classes: Readonly<Record<string, number | undefined>>): number {
  return Object.values(classes).reduce<number>((sum, count) => sum + (count ?? 0), 0);
}

for (const name of dialectNames) {
  for (const model of ['patient', 'chat-only', 'messages-only']) {
    test(`lost usage on disconnect: a stream is read to its end and charged as the vendor counted (${name}, ${model})`, async () => {
      const { customer, records, entry } = await leave(
        name,
        model,
        '[[sandbox: tokens=120 chunks=40 chunk_delay=5ms]]',
        true,
      );
      assert.deepEqual([entry.outcome, records.ends], ['complete', ['charged client_left']]);
      const [row] = records.charges;
      assert.deepEqual([row!.estimated, row!.terminal, row!.classes.output], [false, true, 120]);
      assert.equal(sumOf(row!.classes), sumOf(entry.usage));
      assert.equal((await testbed.call(customer, name, { model: 'sandbox', prompt: 'Again' })).status, 200);
    });
  }

  test(`a whole answer whose client disconnected before its head is charged as the vendor counted (${name})`, async () => {
    const { records, entry } = await leave(name, 'patient', '[[sandbox: tokens=30 delay=300ms]]', false);
    assert.deepEqual([entry.outcome, records.ends], ['complete', ['charged client_left']]);
    assert.deepEqual([records.charges[0]!.estimated, records.charges[0]!.classes.output], [false, 30]);
  });
}

test('a stream whose client disconnected before the head is read to its end too', async () => {
  const { records } = await leave('chat', 'patient', '[[sandbox: tokens=40 delay=300ms]]', true);
  assert.deepEqual(
    [records.ends, records.charges[0]!.estimated, records.charges[0]!.classes.output],
    [['charged client_left'], false, 40],
  );
});

test('reading without a client ends at its time limit, and the received part is charged', async () => {
  for (const stream of [true, false]) {
    const prompt = stream ? '[[sandbox: tokens=3000 chunk_delay=20ms]]' : '[[sandbox: delay=9s]]';
    const { records, tookMs, entry } = await leave('chat', 'hurried', prompt, stream);
    assert.ok(tookMs > 900 && tookMs < 8_000, `${tookMs} ms`);
    assert.equal(entry.outcome, 'cut');
    assert.deepEqual(
      [records.ends, records.charges[0]!.estimated, records.charges[0]!.terminal],
      [['charged client_left'], true, false],
    );
  }
});

test('reading without a client ends at its byte limit', async () => {
  const { records, tookMs, entry } = await leave('chat', 'thrifty', '[[sandbox: tokens=3000 chunk_delay=5ms]]', true);
  assert.ok(tookMs < 10_000, `${tookMs} ms`);
  assert.deepEqual([entry.outcome, records.charges[0]!.estimated], ['cut', true]);
});

test('an answer that breaks after its client disconnected is settled as a cut one', async () => {
  const { records } = await leave('chat', 'patient', '[[sandbox: chunks=30 chunk_delay=10ms cut_after=20]]', true);
  assert.deepEqual([records.ends, records.charges[0]!.estimated], [['charged cut'], true]);
});

test('an answer that never began costs a disconnected client nothing, and no other vendor is called', async () => {
  for (const [status, end] of [
    [500, 'free unknown'],
    [503, 'free refused'],
  ] as const) {
    testbed.replay.play({ status, headDelayMs: 200 });
    const before = testbed.replay.requests.length;
    const customer = await testbed.customer();
    const leaving = new AbortController();
    const pending = testbed.call(customer, 'chat', { model: 'replayed', prompt: 'Hello' }, { signal: leaving.signal });
    pending.catch(() => {});
    await until('the vendor has the request', () => testbed.replay.requests.length > before);
    leaving.abort();
    assert.deepEqual((await testbed.records(customer)).ends, [end]);
    assert.equal(testbed.replay.requests.length - before, 1);
  }
});

test('the ledger passes its audit and nothing is left in flight', async () => {
  assert.equal(testbed.gateway.gateway.inFlight, 0);
  await testbed.audit();
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
    if (reportsLast) assert.equal(short.records.charges[0]!.estimated, false);
    const long = await leave(name, 'usual', prompt, true, limitOf(4_000)[name]);
    assert.equal(long.entry.outcome, 'cut');
    if (reportsLast) assert.equal(long.records.charges[0]!.estimated, true);
  });
}
