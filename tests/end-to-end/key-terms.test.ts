/** Keys with terms of their own at the whole gateway: in the words of each protocol, in force at once, and shown afterwards. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accountAdmin, type KeyTerms } from '../../plugins/common/domain/admin/accounts.ts';
import { type RequestView, requestQueries } from '../../plugins/common/domain/admin/requests.ts';
import { parseUsd } from '../../plugins/common/domain/money.ts';
import { dialectNames, dialects } from './dialects.ts';
import { type Customer, modelAt, type Reply, startTestbed, type Testbed, until } from './testbed.ts';

let testbed: Testbed;

const withMultiplier =
  'storage request-log files auth plans rate-limit providers models multiplier idempotency billing shop route protocol-convert'.split(
    ' ',
  );

before(async () => {
  testbed = await startTestbed({
    providers: ({ sandbox }) => ({ foreign: { keys: 'vendor-key-of-the-sandbox', speaks: { chat: `${sandbox}/v1` } } }),
    models: { foreign: modelAt('foreign') },
    more: { multiplier: { default: '1.5' }, plugins: withMultiplier },
  });
});
after(() => testbed.stop());

const admin = () => testbed.gateway.gateway.find(accountAdmin)!;

async function customerWith(terms: Omit<KeyTerms, 'name'>): Promise<Customer & { readonly keyId: string }> {
  const { accountId } = await testbed.customer();
  const { key, id } = await admin().createKey(accountId, { name: 'test', ...terms });
  return { accountId, key, keyId: id };
}

const question = { model: 'sandbox', prompt: 'hello' };

async function rowOf({ id }: Reply): Promise<RequestView> {
  let row: RequestView | undefined;
  await until('its row is there', async () => {
    row = await testbed.gateway.gateway.find(requestQueries)!.find(id, undefined);
    return row !== undefined;
  });
  return row!;
}

test("another address is refused in each protocol's form until the key may be used from there", async () => {
  const customer = await customerWith({ addresses: ['192.0.2.0/24', '2001:db8::/32'] });
  for (const name of dialectNames) {
    const reply = await testbed.call(customer, name, question);
    assert.equal(reply.status, 403, name);
    const error = JSON.parse(reply.text);
    assert.ok(dialects[name].errorType(error) !== undefined, name);
    assert.match(reply.text, /may not be used from this address/);
    assert.doesNotMatch(reply.text, /192\.0\.2|db8|127\.0/);
  }
  const { accountId, keyId } = customer;
  await admin().updateKey(accountId, keyId, { name: 'test', addresses: ['127.0.0.0/8', '::1'] });
  assert.equal((await testbed.call(customer, 'chat', question)).status, 200);
  await admin().revokeKey(accountId, keyId);
  assert.equal((await testbed.call(customer, 'chat', question)).status, 401);
});

test("a key's own rate is refused with 429 while other keys of the account are served", async () => {
  const customer = await customerWith({ limits: { rpm: 2 } });
  const other = await admin().createKey(customer.accountId, { name: 'other' });
  for (const name of ['chat', 'messages'] as const)
    assert.equal((await testbed.call(customer, name, question)).status, 200);
  const reply = await testbed.call(customer, 'gemini', question);
  assert.equal(reply.status, 429);
  assert.match(reply.text, /this key allows 2 requests per minute/);
  assert.equal((await testbed.call({ ...customer, key: other.key }, 'chat', question)).status, 200);
});

test("a key's spend cap is a 402 in each protocol, and other keys of the account are served", async () => {
  const customer = await customerWith({ cap: { amount: parseUsd('0.000001'), every: 'week' } });
  const other = await admin().createKey(customer.accountId, { name: 'other' });
  for (const name of dialectNames) {
    const reply = await testbed.call(customer, name, question);
    assert.equal(reply.status, 402, name);
    assert.match(reply.text, /this key's spend cap, 0\.000001 USD a week/);
  }
  assert.equal((await testbed.call({ ...customer, key: other.key }, 'chat', question)).status, 200);
  const terms: KeyTerms = { name: 'test', cap: { amount: parseUsd('1'), every: 'week' } };
  await admin().updateKey(customer.accountId, customer.keyId, terms);
  assert.equal((await testbed.call(customer, 'messages', { ...question, stream: true })).status, 200);
  await testbed.audit();
});

test('a translated call shows its timeline: limits, plan, price, path, attempts and charge, with providers only for operators', async () => {
  const customer = await customerWith({ limits: { rpm: 60 } });
  const reply = await testbed.call(customer, 'messages', { ...question, model: 'foreign', more: { top_k: 5 } });
  assert.equal(reply.status, 200);
  const row = await rowOf(reply);
  assert.deepEqual(row.dropped, ['top_k']);
  const lines = row.story.map(({ by, text }) => `${by}: ${text}`);
  const expected = [
    /^plans: on the plan "open"$/,
    /^rate-limit: left of the key: 59 of 60 requests per minute$/,
    /^multiplier: sold at the official price × 1\.5$/,
    /^billing: 0\.\d+ USD set aside for about \d+ tokens of prompt and up to \d+ of answer, at the official price × 1\.5$/,
    /^route: targets in this order: foreign\/foreign \(chat\)$/,
    /^route: attempt 1 goes to foreign\/foreign by foreign#1$/,
    /^route: attempt 1 was answered with 200 after \d+ ms$/,
    /^protocol-convert: translated from messages to chat; left out: top_k$/,
    /^billing: 0\.\d+ USD charged$/,
  ];
  assert.equal(lines.length, expected.length, lines.join('\n'));
  for (const [index, line] of lines.entries()) assert.match(line, expected[index]!);
  const forClients = row.story.filter(({ operator }) => operator !== true).map(({ text }) => text);
  assert.equal(forClients.length, lines.length - 2);
  assert.doesNotMatch(forClients.join('\n'), /foreign/);
  assert.ok(row.story.every(({ atMs }, index) => index === 0 || atMs >= row.story[index - 1]!.atMs));
});

test('a failed call shows its attempts, and that nothing was charged', async () => {
  const customer = await customerWith({});
  testbed.replay.play({ status: 429, headers: { 'retry-after': '1' }, body: '{"error":{"message":"slow down"}}' });
  const reply = await testbed.call(customer, 'chat', { ...question, model: 'replay' });
  assert.equal(reply.status, 429);
  const lines = (await rowOf(reply)).story.map(({ by, text }) => `${by}: ${text}`);
  assert.ok(
    lines.some((line) => /^route: attempt 1 was refused with 429/.test(line)),
    lines.join('\n'),
  );
  assert.ok(lines.includes('billing: nothing charged: refused'), lines.join('\n'));
});
