/** What is charged by which price, and what is not charged at all. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { promptTokens, totalTokens } from '../../plugins/common/domain/usage.ts';
import { startGateway } from '../helpers/gateway.ts';
import { dialectNames, dialects } from './dialects.ts';
import { modelAt, readReply, startTestbed, type Testbed, yamlOf } from './testbed.ts';

let testbed: Testbed;
before(async () => {
  testbed = await startTestbed({
    offers: { double: { price: 0, multiplier: '2' } },
    models: {
      free: { owned_by: 'test', targets: ['sandbox'], price: 'free' },
      unpriced: { owned_by: 'test', targets: ['sandbox'] },
      cheap: { ...modelAt('sandbox'), price: { input: 0.000001, output: 0 } },
      tiered: {
        ...modelAt('sandbox'),
        price: {
          input: 1,
          output: 2,
          request: 0.001,
          above: { 200: { input: 10, output: 20 } },
          service: { flex: 0.5 },
        },
        cost: { input: 0.5, output: 1 },
        below_cost: true,
      },
    },
  });
});
after(() => testbed.stop());

test('a key that may not call a model is refused before anything is held', async () => {
  const customer = await testbed.customer({ models: ['free'] });
  for (const name of dialectNames) {
    const reply = await testbed.call(customer, name, { model: 'sandbox', prompt: 'Hello' });
    assert.equal(reply.status, 403, name);
    assert.ok(dialects[name].errorType(JSON.parse(reply.text)), name);
  }
  const records = await testbed.records(customer, 0);
  assert.deepEqual(
    records.ledger.map(({ kind }) => kind),
    ['CREDIT'],
  );
});

test('a free model serves an empty account and is booked at 0', async () => {
  const customer = await testbed.customer({ nanoUsd: 0n });
  for (const name of dialectNames) {
    const reply = await testbed.call(customer, name, { model: 'free', prompt: 'Hello', stream: name === 'chat' });
    assert.equal(reply.status, 200, name);
  }
  const records = await testbed.records(customer, 4);
  assert.deepEqual(
    records.charges.map(({ cost }) => cost),
    [0n, 0n, 0n, 0n],
  );
  assert.equal(await testbed.balance(customer), 0n);
});

test('counting tokens is neither held nor charged', async () => {
  const customer = await testbed.customer({ nanoUsd: 0n });
  const messages = [{ role: 'user', content: 'Hello' }];
  for (const [path, body] of [
    ['/v1/messages/count_tokens', { model: 'sandbox', messages }],
    ['/v1beta/models/sandbox:countTokens', { contents: [{ parts: [{ text: 'Hello' }] }] }],
  ] as const) {
    const headers = { ...dialects.messages.key(customer.key), 'content-type': 'application/json' };
    const answer = await fetch(testbed.origin + path, { method: 'POST', headers, body: JSON.stringify(body) });
    assert.equal(answer.status, 200, path);
  }
  const records = await testbed.records(customer, 0);
  assert.deepEqual([records.ledger, records.calls, records.attempts], [[], [], []]);
});

test("a plan's multiplier is on the bill, and a price below a nano is rounded once", async () => {
  const plain = await testbed.customer();
  const double = await testbed.customer({ plan: 'double' });
  for (const model of ['sandbox', 'cheap']) {
    for (const customer of [plain, double]) await testbed.call(customer, 'chat', { model, prompt: 'Hello' });
  }
  const [once, twice] = [(await testbed.records(plain, 2)).charges, (await testbed.records(double, 2)).charges];
  assert.equal(twice[0]!.cost, once[0]!.cost * 2n);
  for (const { classes, cost } of [once[1]!]) {
    const { input = 0 } = classes;
    assert.equal(cost, (BigInt(input) * 1_000n + 500_000n) / 1_000_000n);
  }
});

test('a model without a price is not sold', async () => {
  const customer = await testbed.customer();
  for (const name of dialectNames) {
    const answer = await testbed.call(customer, name, { model: 'unpriced', prompt: 'Hello' });
    assert.equal(answer.status, 404, answer.text);
    assert.match(answer.text, /no price/);
  }
  assert.equal((await testbed.records(customer, 0)).ledger.length, 1);
});

test('a compaction is charged like an answer', async () => {
  const customer = await testbed.customer();
  const headers = { authorization: `Bearer ${customer.key}`, 'content-type': 'application/json' };
  const input = [{ role: 'user', content: [{ type: 'input_text', text: 'Hello' }] }];
  const body = JSON.stringify({ model: 'sandbox', input });
  const answer = await readReply(
    await fetch(`${testbed.origin}/v1/responses/compact`, { method: 'POST', headers, body }),
  );
  assert.equal(answer.status, 200, answer.text);
  const records = await testbed.records(customer);
  assert.deepEqual([records.ends, records.charges[0]!.estimated], [['charged answered'], false]);
  assert.ok(records.charges[0]!.cost > 0n);
});

test('a long prompt is charged by its tier, a short one is not, and the rows have the tier and our cost', async () => {
  const customer = await testbed.customer();
  for (const prompt of ['Hello', 'Hello '.repeat(2_000)])
    await testbed.call(customer, 'chat', { model: 'tiered', prompt });
  const { charges } = await testbed.records(customer, 2);
  assert.deepEqual(charges.map(({ tier }) => tier).sort(), ['>200', null]);
  for (const { classes, tier, cost, own_cost: ownCost } of charges) {
    const [input, output] = [promptTokens(classes), totalTokens(classes) - promptTokens(classes)];
    assert.equal(classes.request, 1);
    const scale = tier === null ? 1n : 10n;
    const tokens = (BigInt(input) * 1_000n + BigInt(output) * 2_000n) * scale;
    assert.equal(cost, tokens + 1_000_000n);
    assert.equal(ownCost, BigInt(input) * 500n + BigInt(output) * 1_000n);
  }
});

test('a service that the vendor did not grant is charged at the standard price, and one without a price is refused', async () => {
  const customer = await testbed.customer();
  const headers = { authorization: `Bearer ${customer.key}`, 'content-type': 'application/json' };
  const send = async (model: string) => {
    const messages = [{ role: 'user', content: 'Hello' }];
    const body = JSON.stringify({ model, messages, service_tier: 'flex' });
    return readReply(await fetch(`${testbed.origin}/v1/chat/completions`, { method: 'POST', headers, body }));
  };
  const granted = await send('tiered');
  assert.equal(granted.status, 200, granted.text);
  assert.equal(JSON.parse(granted.text).service_tier, 'default');
  const refused = await send('sandbox');
  assert.deepEqual([refused.status, JSON.parse(refused.text).error.code], [400, 'service_not_priced']);
  const { charges } = await testbed.records(customer, 1);
  const { input = 0, output = 0 } = charges[0]!.classes;
  assert.equal(charges[0]!.cost, BigInt(input * 1_000 + output * 2_000) + 1_000_000n);
});

test('a gateway that would sell below its cost does not start, and names the model', async () => {
  const models = {
    m: { owned_by: 'test', targets: ['sandbox'], price: { input: 1, output: 2 }, cost: { input: 3, output: 2 } },
  };
  const yaml = yamlOf({ gateway: 'loss', schema: 'loss', listen: '127.0.0.1:0', models });
  await assert.rejects(startGateway(yaml), (error: Error) => {
    assert.equal(error.name, 'ConfigError');
    assert.match(error.message, /gateway\.yaml:\d+: models\.m\.price: input is sold at 1\.00, below its cost of 3\.00/);
    return true;
  });
});

test('the ledger passes its audit at the end', () => testbed.audit());
