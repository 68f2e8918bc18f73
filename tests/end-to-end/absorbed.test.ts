/** Attempts that may have run are tried elsewhere, if the operator says so: the client pays for one, the operator for the rest. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Script } from '../helpers/vendor.ts';
import { type DialectName, dialectNames, dialects } from './dialects.ts';
import { attemptsByNumber, type Customer, modelAt, type Reply, speaks, startTestbed, type Testbed } from './testbed.ts';

let testbed: Testbed;
before(async () => {
  testbed = await startTestbed({
    providers: ({ replay }) => ({
      first: { keys: ['one', 'two'], speaks: speaks(replay) },
      second: { keys: 'three', speaks: speaks(replay) },
      // A vendor that only streams: whole answers are gathered, and nothing has gone out when it breaks.
      streaming: { keys: 'four', speaks: { chat: `${replay}/v1` }, dialect: { chat: { streams: 'only' } } },
    }),
    models: {
      pair: modelAt('first', 'sandbox'),
      gathered: modelAt('streaming', 'sandbox'),
      both: modelAt('first', 'second'),
    },
    // The first vendor fails all the time, and is asked first all the same.
    more: {
      route: { retry_ambiguous: 'always', attempts: 2, cooldown: { rate_limited: '1s' }, breaker: { failures: 32 } },
    },
  });
});
after(() => testbed.stop());

async function send(model: string, name: DialectName, stream: boolean, ...scripts: Script[]) {
  testbed.replay.play(...scripts);
  const before = testbed.replay.requests.length;
  const customer = await testbed.customer();
  const reply = await testbed.call(customer, name, { model, prompt: 'Hello [[sandbox: tokens=20]]', stream });
  return { customer, reply, replayed: testbed.replay.requests.length - before };
}

const borneOf = async (customer: Customer) => attemptsByNumber(await testbed.calls(customer));

/** One charge of the client's, by the second vendor; what the first cost is the operator's, and no other account's. */
async function checkShares(customer: Customer, reply: Reply, absorbed: bigint | 'estimated'): Promise<void> {
  assert.equal(reply.status, 200, reply.text);
  const before = 100n * 1_000_000_000n;
  const { ends, charges } = await testbed.records(customer);
  assert.deepEqual([ends, charges.length, charges[0]!.provider], [['charged answered'], 1, 'sandbox']);
  assert.deepEqual([charges[0]!.classes.output, charges[0]!.estimated], [20, false]);
  assert.equal(before - (await testbed.balance(customer)), charges[0]!.cost);
  const [first, last] = await borneOf(customer);
  assert.deepEqual([first!.result, first!.bearer, last!.bearer], ['unknown', 'operator', 'client']);
  if (absorbed === 'estimated') assert.ok(first!.estimated && first!.absorbed > 0n);
  else assert.deepEqual([first!.absorbed, first!.estimated], [absorbed, false]);
  assert.equal(charges[0]!.absorbed, first!.absorbed);
}

const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };
const failures: Record<string, { script: Script; absorbed: bigint | 'estimated' }> = {
  'a 500': { script: { status: 500, body: '{"error":{"message":"oops"}}' }, absorbed: 'estimated' },
  'a 502': { script: { status: 502 }, absorbed: 'estimated' },
  'a reset before the head': { script: { dieAtOnce: true }, absorbed: 'estimated' },
  'a whole answer that breaks': { script: { body: '{"id":"c1","choices":', dieAfter: 10 }, absorbed: 'estimated' },
  // 7 input tokens at 1,000 nano-USD and 3 output tokens at 2,000.
  'a refusal with usage': { script: { status: 503, body: JSON.stringify({ error: {}, usage }) }, absorbed: 13_000n },
};

for (const [what, { script, absorbed }] of Object.entries(failures)) {
  test(`double charge on retry: ${what}, then an answer elsewhere: one charge, the rest is absorbed`, async () => {
    const { customer, reply, replayed } = await send('pair', 'chat', false, script);
    assert.equal(replayed, 1);
    await checkShares(customer, reply, absorbed);
  });
}

test('a stream that fails before its first event goes to another target, in all protocols', async () => {
  for (const name of dialectNames) {
    const { customer, reply } = await send('pair', name, true, { status: 500 });
    assert.match(reply.text, dialects[name].terminal);
    await checkShares(customer, reply, 'estimated');
  }
});

test('the output of an attempt that broke after another target answered is written off', async () => {
  const chunk = (delta: object, more: object = {}) =>
    `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: null }], ...more })}\n\n`;
  const body = chunk({ role: 'assistant', content: 'Once upon a time' }) + chunk({ content: ' there was' }, { usage });
  const script = { headers: { 'content-type': 'text/event-stream' }, body, dieAfter: body.length };
  const { customer, reply } = await send('gathered', 'chat', false, script);
  const { charges: rows } = await testbed.records(customer);
  assert.equal(rows.length, 1);
  const [first] = await borneOf(customer);
  await checkShares(customer, reply, first!.estimated ? 'estimated' : 13_000n);
  assert.ok(first!.absorbed >= 13_000n);
});

test('when every attempt may have run, the client pays nothing and may try again', async () => {
  const { customer, reply, replayed } = await send('both', 'chat', false, { status: 500 }, { dieAtOnce: true });
  assert.deepEqual([reply.status, reply.headers.get('x-should-retry'), replayed], [502, 'true', 2]);
  assert.deepEqual((await testbed.records(customer)).ends, ['free unknown']);
  const borne = await borneOf(customer);
  assert.deepEqual(
    borne.map(({ bearer: who }) => who),
    ['operator', 'operator'],
  );
});

test('one attempt may have run and the other was refused: the answer advises to wait, and nothing is charged', async () => {
  const { customer, reply } = await send('both', 'chat', false, { status: 500 }, { status: 429 });
  assert.deepEqual([reply.status, reply.headers.get('x-should-retry')], [429, 'true']);
  assert.notEqual(reply.headers.get('retry-after'), null);
  assert.deepEqual((await testbed.records(customer)).ends, ['free unknown']);
  assert.deepEqual(
    (await borneOf(customer)).map(({ result, bearer: who }) => [result, who]),
    [
      ['unknown', 'operator'],
      ['refused', null],
    ],
  );
});

test("a client's own fault is not tried at another target", async () => {
  const { reply, replayed } = await send('pair', 'chat', false, { status: 400, body: '{"error":{"message":"no"}}' });
  assert.deepEqual([reply.status, replayed], [400, 1]);
});

test('a refusal with usage, without another vendor, is charged by that usage', async () => {
  testbed.replay.play({ status: 400, body: JSON.stringify({ error: { message: 'no' }, usage }) });
  const customer = await testbed.customer();
  const reply = await testbed.call(customer, 'chat', { model: 'replay', prompt: 'Hello' });
  assert.equal(reply.status, 400);
  const records = await testbed.records(customer);
  assert.deepEqual([records.ends, records.charges[0]!.cost], [['charged answered'], 13_000n]);
});

test('the ledger passes its audit at the end', () => testbed.audit());
