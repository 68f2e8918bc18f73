/** A vendor's 4xx in any form of body: the client reads status and message in its protocol, and that a repetition does not help. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startVendor, type Vendor } from '../helpers/vendor.ts';
import { dialectNames } from './dialects.ts';
import { modelAt, secondGateway, speaks, startTestbed, type Testbed } from './testbed.ts';

let vendor: Vendor;
let testbed: Testbed;
let second: Testbed;
before(async () => {
  vendor = await startVendor();
  const only = (name: (typeof dialectNames)[number]) => ({ [name]: speaks(vendor.origin)[name] });
  const options = {
    providers: () => ({
      relayed: { keys: 'vendor-key-abcdef', speaks: speaks(vendor.origin) },
      ...Object.fromEntries(
        dialectNames.map((name) => [`only-${name}`, { keys: 'vendor-key-abcdef', speaks: only(name) }]),
      ),
    }),
    models: Object.fromEntries(
      ['relayed', ...dialectNames.map((name) => `only-${name}`)].map((name) => [name, modelAt(name)]),
    ),
  };
  testbed = await startTestbed(options);
  second = await startTestbed({ ...options, more: secondGateway });
});
after(async () => {
  await Promise.all([testbed.stop(), second.stop()]);
  await vendor.stop();
});

const google = { error: { code: 400, message: 'Invalid value at contents[0]', status: 'INVALID_ARGUMENT' } };
const forms: readonly [name: string, type: string, body: string, message: RegExp][] = [
  ['a list with an error', 'application/json', JSON.stringify([google]), /Invalid value at contents\[0\]/],
  ['a list of two', 'application/json', JSON.stringify([google, {}]), /Invalid value at contents\[0\]/],
  ['a list of strings', 'application/json', '["temperature is too high"]', /temperature is too high/],
  ['a string', 'application/json', '"temperature is too high"', /temperature is too high/],
  ['plain text', 'text/plain', 'temperature is too high\n', /temperature is too high/],
  ['a page', 'text/html', '<html><body><h1>Bad Request</h1><p>temperature is too high</p></body></html>', /too high/],
  [
    'the details of FastAPI',
    'application/json',
    '{"detail":[{"type":"missing","loc":["body","messages",0,"role"],"msg":"Field required"}]}',
    /Field required/,
  ],
];

for (const [name, type, body, message] of forms) {
  test(`a vendor's 4xx with ${name} keeps status and message, relayed and translated`, async () => {
    const customer = await testbed.customer();
    const statuses = [400, 404, 413, 422];
    let calls = 0;
    for (const model of ['relayed', ...dialectNames.map((dialect) => `only-${dialect}`)])
      for (const dialect of dialectNames) {
        const status = statuses[(calls + Math.floor(calls / 4)) % 4]!;
        const stream = calls % 2 === 0;
        calls += 1;
        vendor.play({ status, headers: { 'content-type': type }, body });
        const reply = await testbed.call(customer, dialect, { model, prompt: 'Hello', stream });
        const where = `${model} for ${dialect}, ${stream ? 'streamed' : 'whole'}: ${reply.text}`;
        assert.equal(reply.status, status, where);
        assert.equal(reply.headers.get('x-should-retry'), 'false', where);
        assert.match(reply.headers.get('content-type')!, /^application\/json/, where);
        assert.match(reply.text, message, where);
        const json = JSON.parse(reply.text) as object;
        assert.ok(!Array.isArray(json), where);
        if (name !== 'the details of FastAPI') assert.ok('error' in json, where);
      }
  });
}

test("the second gateway's own shape keeps the message of each form too", async () => {
  const customer = await second.customer();
  for (const [name, type, body, message] of forms) {
    vendor.play({ status: 422, headers: { 'content-type': type }, body });
    const reply = await second.call(customer, 'chat', { model: 'relayed', prompt: 'Hello' });
    assert.deepEqual([reply.status, reply.headers.get('x-should-retry')], [422, 'false'], name);
    assert.match((JSON.parse(reply.text) as { message: string }).message, message, name);
  }
});

test('a refusal with an HTML page or plain text shows no key, no address and only a short text', async () => {
  const customer = await testbed.customer();
  const secret = 'vendor-key-abcdef at https://inner.vendor.example/v1 and 10.1.2.3:8080';
  for (const body of [
    `refused ${secret}`,
    `<p>refused ${secret}</p><hr>server/1.2`,
    `refused ${'x'.repeat(200_000)}`,
  ]) {
    vendor.play({ status: 400, headers: { 'content-type': 'text/plain' }, body });
    const reply = await testbed.call(customer, 'messages', { model: 'relayed', prompt: 'Hello' });
    assert.equal(reply.status, 400);
    assert.match(reply.text, /refused/);
    assert.doesNotMatch(reply.text, /vendor-key-abcdef|inner\.vendor|10\.1\.2\.3|server\/1\.2/);
    assert.ok(reply.text.length < 2_000, String(reply.text.length));
  }
});

test('while every target is down, retry-after has the time until the next test', async () => {
  const waits: (string | null)[] = [];
  for (let calls = 0; calls < 7; calls += 1) {
    vendor.play({ status: 503, body: '{"error":{"message":"down"}}' });
    const reply = await testbed.call(await testbed.customer(), 'messages', {
      model: 'only-responses',
      prompt: 'Hello',
    });
    assert.equal(reply.status, 503);
    waits.push(reply.headers.get('retry-after'));
  }
  assert.equal(waits[0], null);
  for (const wait of waits.slice(-2)) assert.ok(Number(wait) >= 1, String(waits));
});

test('a RetryInfo inside a list sets the cooldown of the model', async () => {
  const limited = {
    error: {
      code: 429,
      message: 'Resource exhausted',
      status: 'RESOURCE_EXHAUSTED',
      details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '27.5s' }],
    },
  };
  vendor.play({ status: 429, body: JSON.stringify([limited]) });
  const reply = await testbed.call(await testbed.customer(), 'chat', { model: 'only-gemini', prompt: 'Hello' });
  assert.equal(reply.status, 429);
  assert.equal(reply.headers.get('retry-after'), '28');
  assert.notEqual(reply.headers.get('x-should-retry'), 'false');
});
