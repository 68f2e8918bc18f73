/** Turns of clients over WebSocket at vendors that take them so: what is sent, what is charged, and what happens without. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { type Message, type Talk, talk } from './sockets.ts';
import { modelAt, startTestbed, type Testbed, until } from './testbed.ts';
import { type Fate, startTurnVendor, type TurnVendor } from './turn-vendor.ts';

const key = 'vendor-key-of-the-turns';
let vendor: TurnVendor;
let testbed: Testbed;
before(async () => {
  vendor = await startTurnVendor(key);
  const speaks = { responses: `${vendor.origin}/v1` };
  const dialect = { responses: { websocket: true } };
  testbed = await startTestbed({
    providers: ({ sandbox }) => ({
      turns: { keys: key, speaks, dialect, timeouts: { first_byte: '1s', idle: '1s' } },
      wrong: { keys: 'another', speaks, dialect },
      living: { keys: 'vendor-key-of-the-sandbox', speaks: { responses: `${sandbox}/v1` }, dialect },
      plain: { keys: 'vendor-key-of-the-sandbox', speaks: { responses: `${sandbox}/v1` } },
    }),
    models: {
      turns: modelAt('turns'),
      wrong: modelAt('wrong', 'plain'),
      second: modelAt('turns', 'plain'),
      living: modelAt('living'),
      hedged: { ...modelAt('turns', 'plain'), hedge: '200ms' },
    },
    offers: { single: { price: 0, limits: { concurrency: 1 } } },
    more: {
      route: {
        hedge: { share: 1 },
        cooldown: { rate_limited: '1s', unauthorized: '1s' },
        breaker: { failures: 32, share: 1 },
      },
    },
  });
});
after(async () => {
  await testbed.stop();
  await vendor.stop();
});
beforeEach(() => {
  vendor.turns.length = 0;
  vendor.fates.length = 0;
  vendor.upgrades = 0;
  vendor.refuses = 0;
});

const base = { model: 'turns', store: false };
const user = (text: string) => ({ type: 'message', role: 'user', content: text });
const last = (messages: readonly Message[]) => messages.at(-1);
const textOf = ({ response }: Message): string => response.output.at(-1).content[0].text;
const sent = () => vendor.turns.map(({ over, connection, body }) => [over, connection, body.input?.length]);

/** Sends turns that continue one another, and returns their last messages. */
async function chain(client: Talk, texts: readonly string[], more: object = {}): Promise<Message[]> {
  const ends: Message[] = [];
  for (const text of texts) {
    const previous_response_id = ends.at(-1)?.response.id;
    ends.push(last(await client.turn({ ...base, ...more, input: [user(text)], previous_response_id })));
  }
  return ends;
}

test('turns of a chain share a connection, send only new items, and are charged as the vendor counted', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key);
  const ends = await chain(client, ['one', 'two', 'three']);
  await client.close();
  assert.deepEqual(sent(), [
    ['socket', 1, 1],
    ['socket', 1, 1],
    ['socket', 1, 1],
  ]);
  const [first, second] = vendor.turns.map(({ body }) => body);
  assert.deepEqual(Object.keys(first), ['model', 'store', 'input', 'type']);
  assert.equal(second.previous_response_id, ends[0].response.id);
  assert.deepEqual(second.input, [user('two')]);
  assert.equal(ends[1].response.previous_response_id, ends[0].response.id);
  const { charges } = await testbed.records(customer, 3);
  assert.deepEqual(
    charges.map(({ classes: { input, output } }) => ({ input, output })),
    [
      { input: 10, output: 5 },
      { input: 10, output: 5 },
      { input: 10, output: 5 },
    ],
  );
  await until('the connection to the vendor is closed', () => vendor.sockets.size === 0);
  await testbed.audit();
});

test('the events and the charge are those of the same POST, at a vendor that supports both', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key);
  const question = { model: 'living', input: 'Hello [[sandbox: tokens=20]]', store: false };
  const messages = await client.turn(question);
  const posted = await testbed.call(customer, 'responses', { model: 'living', prompt: question.input, stream: true });
  const events = [...posted.text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!));
  const shape = ({ type, sequence_number }: Message) => [type, sequence_number];
  assert.deepEqual(messages.map(shape), events.map(shape));
  const next = { ...question, input: [user('And now?')], previous_response_id: last(messages).response.id };
  const second = last(await client.turn(next));
  // The vendor counts the whole conversation although it was sent what is new alone.
  assert.ok(second.response.usage.input_tokens > last(messages).response.usage.input_tokens);
  await client.close();
  const { charges } = await testbed.records(customer, 3);
  assert.equal(charges[0]!.cost, charges[1]!.cost);
  const billed = testbed.sandbox.bill().recent.map(({ usage }) => usage);
  assert.deepEqual(
    charges.map(({ classes }) => classes.input),
    billed.map(({ input }) => input),
  );
  await testbed.audit();
});

test('another conversation on the same connection is sent whole', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key);
  await chain(client, ['one', 'two']);
  assert.equal(textOf(last(await client.turn({ ...base, input: [user('x'), user('y')] }))), '2 items');
  // The client repeats the conversation itself, as coding clients do after an error.
  const own = last(await client.turn({ ...base, input: [user('a')] })).response;
  const repeated = [user('a'), ...own.output.filter(({ type }: Message) => type !== 'reasoning'), user('b')];
  assert.match(textOf(last(await client.turn({ ...base, input: repeated }))), /^1 items after/);
  await client.close();
  assert.equal(vendor.upgrades, 1);
});

test('a vendor that lost the response gets the whole conversation, once', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key);
  const [first] = await chain(client, ['one']);
  vendor.forget();
  const second = last(await client.turn({ ...base, input: [user('two')], previous_response_id: first.response.id }));
  assert.equal(textOf(second), '3 items');
  assert.equal(second.response.previous_response_id, first.response.id);
  await client.close();
  assert.deepEqual(sent().slice(1), [
    ['socket', 1, 1],
    ['socket', 1, 3],
  ]);
  assert.equal((await testbed.records(customer, 2)).charges.length, 2);
});

test('a connection at its maximum age is replaced, and so is one that broke between turns', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key);
  const [first] = await chain(client, ['one']);
  vendor.fates.push({
    kind: 'refuse',
    status: 400,
    error: { code: 'websocket_connection_limit_reached', message: 'Too long.' },
    close: 1001,
  });
  const second = last(await client.turn({ ...base, input: [user('two')], previous_response_id: first.response.id }));
  assert.equal(textOf(second), '3 items');
  for (const socket of vendor.sockets) socket.terminate();
  await until('it is gone', () => vendor.sockets.size === 0);
  const third = last(await client.turn({ ...base, input: [user('3')], previous_response_id: second.response.id }));
  assert.equal(textOf(third), '5 items');
  await client.close();
  assert.equal(vendor.upgrades, 3);
  assert.equal((await testbed.records(customer, 3)).charges.length, 3);
  await testbed.audit();
});

test('a refused turn has the errors of a POST', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key);
  const refuse = (status: number, error: object): Fate => ({ kind: 'refuse', status, error });
  vendor.fates.push(refuse(400, { code: 'invalid_value', message: 'Bad value.', param: 'input' }));
  const bad = last(await client.turn({ ...base, input: 'x' }));
  assert.deepEqual([bad.status, bad.error.code, bad.error.message], [400, 'invalid_value', 'Bad value.']);
  vendor.fates.push(refuse(503, { code: 'server_is_overloaded', message: `Busy with ${key}.` }));
  const elsewhere = last(await client.turn({ ...base, model: 'second', input: 'x' }));
  assert.equal(elsewhere.type, 'response.completed');
  vendor.fates.push(refuse(429, { code: 'rate_limit_exceeded', message: 'Slower.' }));
  const limited = last(await client.turn({ ...base, input: 'x' }));
  assert.deepEqual([limited.status, limited.error.code], [429, 'rate_limit_exceeded']);
  await client.close();
  const { charges } = await testbed.records(customer, 3);
  assert.deepEqual(
    charges.map(({ provider }) => provider),
    ['plain'],
  );
  await new Promise((resolve) => void setTimeout(resolve, 1_100));
});

test('after a wrong key HTTP is not tried: the next target answers', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key);
  assert.equal(last(await client.turn({ ...base, model: 'wrong', input: 'x' })).type, 'response.completed');
  await client.close();
  assert.deepEqual(vendor.turns, []);
  assert.equal((await testbed.records(customer)).charges[0]!.provider, 'plain');
});

test('a vendor that breaks off is charged for the received part, and the next turn gets the whole conversation', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key);
  for (const kind of ['die', 'silent', 'error'] as const) {
    const [first] = await chain(client, ['one']);
    vendor.fates.push({ kind, after: 3 });
    const broken = await client.turn({ ...base, input: [user('two')], previous_response_id: first.response.id });
    assert.ok(['response.failed', 'error'].includes(last(broken).type), kind);
    assert.ok(!JSON.stringify(broken).includes(key));
    const gone = last(await client.turn({ ...base, input: [user('2')], previous_response_id: first.response.id }));
    assert.equal(gone.error.code, 'previous_response_not_found');
  }
  assert.equal((await chain(client, ['again', 'and again']))[1].type, 'response.completed');
  await client.close();
  const { charges } = await testbed.records(customer, 8);
  assert.equal(charges.length, 8);
  assert.equal(charges.filter(({ terminal }) => !terminal).length, 3);
  await testbed.audit();
});

test('a turn stored at a vendor that is silent from the start, or dies at once, may have run, and is tried nowhere else', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key);
  for (const kind of ['silent', 'die'] as const) {
    vendor.fates.push({ kind, after: 0 });
    const failed = last(await client.turn({ ...base, model: 'second', input: 'x', store: true }));
    assert.equal(failed.type, 'error');
    // It was not charged.
    assert.equal(failed.headers['x-should-retry'], 'true');
  }
  await client.close();
  assert.deepEqual(sent(), [
    ['socket', 1, 1],
    ['socket', 2, 1],
  ]);
  await testbed.audit();
});

test('a hedge beside a silent turn uses HTTP; the loser is cancelled, and the next turn connects again', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key);
  vendor.fates.push({ kind: 'silent', after: 0 });
  const answer = last(await client.turn({ ...base, model: 'hedged', input: 'Hello' }));
  assert.equal(answer.type, 'response.completed');
  await until('the silent connection is broken off', () => vendor.sockets.size === 0);
  assert.equal(textOf(last(await client.turn({ ...base, input: 'Hello' }))), '1 items');
  await client.close();
  assert.equal(vendor.upgrades, 2);
  const { charges } = await testbed.records(customer, 2);
  assert.deepEqual(
    charges.map(({ provider }) => provider),
    ['plain', 'turns'],
  );
  await testbed.audit();
});

test('a client that disconnects in the middle ends the turn at the vendor, and is charged for the received part', async () => {
  const customer = await testbed.customer({ plan: 'single' });
  const client = await talk(testbed.origin, customer.key);
  const input = 'Slowly [[sandbox: tokens=2000 chunk_delay=20ms]]';
  client.send({ type: 'response.create', model: 'living', store: false, input });
  await until('it has begun', () => client.messages.length > 4);
  const { cut } = testbed.sandbox.bill();
  client.socket.terminate();
  const { charges } = await testbed.records(customer);
  assert.equal(charges[0]!.reason, 'client_left');
  await until('the vendor has noticed', () => testbed.sandbox.bill().cut > cut);
  assert.equal(testbed.sandbox.bill().recent.at(-1)!.outcome, 'cut');
  await testbed.audit();
});

test('a client that does not read makes the vendor wait, and gets all when it reads', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key);
  client.socket.pause();
  const input = 'Much [[sandbox: tokens=60000]]';
  client.send({ type: 'response.create', model: 'living', input, max_output_tokens: 60_000 });
  await new Promise((resolve) => void setTimeout(resolve, 1_500));
  assert.equal((await testbed.calls(customer)).length, 0);
  client.socket.resume();
  assert.equal(last(await client.next()).response.usage.output_tokens, 60_000);
  await client.close();
  assert.equal((await testbed.records(customer)).charges[0]!.classes.output, 60_000);
});

test('a vendor that refuses the upgrade gets each turn over HTTP, whole, and no further upgrade', async () => {
  const customer = await testbed.customer();
  vendor.refuses = 426;
  const client = await talk(testbed.origin, customer.key);
  const ends = await chain(client, ['one', 'two']);
  await client.close();
  assert.deepEqual(ends.map(textOf), ['1 items', '3 items']);
  assert.equal(vendor.upgrades, 1);
  assert.deepEqual(sent(), [
    ['http', 0, 1],
    ['http', 0, 3],
  ]);
  assert.equal(vendor.turns[0]!.body.stream, true);
  assert.equal((await testbed.records(customer, 2)).charges.length, 2);
  await testbed.audit();
});
