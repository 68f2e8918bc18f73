/** What a whole answer costs is in the journal before the client has its last byte, by no more writes than before. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type DialectName, dialectNames, dialects } from './dialects.ts';
import { type Customer, journalLines, modelAt, speaks, startTestbed, type Testbed, until } from './testbed.ts';

let testbed: Testbed;
before(async () => {
  testbed = await startTestbed({
    providers: ({ sandbox }) => ({
      'only-chat': { keys: 'vendor-key-of-the-sandbox', speaks: { chat: speaks(sandbox).chat } },
    }),
    models: { 'only-chat': modelAt('only-chat') },
  });
});
after(() => testbed.stop());

const linesOf = (id: string) =>
  journalLines(testbed.gateway).flatMap((records) => {
    const own = records.filter((record) => record.id === id);
    return own.length === 0 ? [] : [own];
  });

/** Reads until the bytes that end the answer for a client of its protocol, and looks at the journal in the same turn. */
async function send(customer: Customer, name: DialectName, model: string, stream: boolean) {
  const dialect = dialects[name];
  const question = { model, prompt: '[[sandbox: tokens=20 chunks=4 chunk_delay=2ms]]', stream };
  const answer = await fetch(testbed.origin + dialect.path(question), {
    method: 'POST',
    body: JSON.stringify(dialect.body(question)),
    headers: { 'content-type': 'application/json', ...dialect.key(customer.key) },
  });
  assert.equal(answer.status, 200);
  const id = answer.headers.get('x-request-id')!.replace(/^req_/, '');
  let text = '';
  const decoder = new TextDecoder();
  const isWhole = () => (stream ? dialect.terminal.test(text) : isJson(text));
  // A stream of generate-content has no event that ends it: more may follow a finish reason, and its end is the body's.
  const endsByEvent = !(stream && name === 'gemini');
  for await (const chunk of answer.body!) {
    text += decoder.decode(chunk, { stream: true });
    if (endsByEvent && isWhole()) break;
  }
  assert.ok(isWhole(), text);
  return { id, lines: linesOf(id) };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

for (const stream of [false, true])
  for (const model of ['sandbox', 'only-chat'])
    test(`the settlement is on disk before the client has the end (${stream ? 'streamed' : 'whole'}, ${model})`, async () => {
      for (const name of dialectNames) {
        const { lines } = await send(await testbed.customer(), name, model, stream);
        const settled = lines.flat().filter(({ kind }) => kind === 'SETTLE');
        assert.equal(settled.length, 1, name);
        const { reason, estimated, usage } = settled[0]!;
        assert.deepEqual([reason, estimated, usage!['output']], ['answered', false, 20], name);
      }
    });

test('a call makes two writes: a hold with its sent attempt, and the settlement', async () => {
  for (const stream of [false, true]) {
    const { lines } = await send(await testbed.customer(), 'chat', 'sandbox', stream);
    const kinds = lines.map((records) => records.map(({ kind }) => kind));
    assert.deepEqual(kinds, [['HOLD'], ['SETTLE']]);
  }
});

test('calls that end in one turn share a write', async () => {
  const before = journalLines(testbed.gateway).length;
  const customer = await testbed.customer();
  const calls = 40;
  await Promise.all(Array.from({ length: calls }, () => send(customer, 'chat', 'sandbox', false)));
  assert.ok(journalLines(testbed.gateway).length - before <= 2 * calls);
});

test('a refusal is recorded before the client has it', async () => {
  testbed.replay.play({ status: 400, body: '{"error":{"message":"no"}}' });
  const customer = await testbed.customer();
  const reply = await testbed.call(customer, 'chat', { model: 'replay', prompt: 'Hello' });
  const records = linesOf(reply.id).flat();
  assert.deepEqual(
    records.filter(({ kind }) => kind !== 'HOLD' && kind !== 'SENT').map(({ kind, reason }) => `${kind} ${reason}`),
    ['VOID refused'],
  );
});

test('each call is charged once, and the ledger passes its audit', async () => {
  const customer = await testbed.customer();
  for (const stream of [false, true]) await send(customer, 'messages', 'sandbox', stream);
  const { ends } = await testbed.records(customer, 2);
  assert.deepEqual(ends, ['charged answered', 'charged answered']);
  await until('all is quiet', () => testbed.gateway.gateway.inFlight === 0);
  await testbed.audit();
});
