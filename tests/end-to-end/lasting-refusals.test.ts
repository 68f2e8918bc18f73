/** Refusals that the same request meets again: each says so to official clients, in every protocol and in the second gateway. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type DialectName, dialectNames } from './dialects.ts';
import { type Customer, type Reply, secondGateway, startTestbed, type Testbed, usdInNano } from './testbed.ts';

const testbeds = new Map<string, Testbed>();
before(async () => {
  const offers = { once: { price: 0, limits: { rpm: 1 } } };
  testbeds.set('main', await startTestbed({ offers, more: { server: { body_limit: '100kB' } } }));
  testbeds.set('second', await startTestbed({ offers, more: { ...secondGateway, server: { body_limit: '100kB' } } }));
});
after(async () => {
  for (const testbed of testbeds.values()) await testbed.stop();
});

const question = { model: 'sandbox', prompt: 'Hello' };
type Case = (testbed: Testbed, dialect: DialectName) => Promise<Reply>;

const unlimited = (testbed: Testbed, models?: readonly string[]): Promise<Customer> =>
  testbed.customer({ nanoUsd: usdInNano, ...(models === undefined ? {} : { models }) });

const cases: readonly [status: number, why: string, call: Case][] = [
  [
    400,
    'a body that is no JSON',
    async (testbed, dialect) => testbed.call(await unlimited(testbed), dialect, question, { body: '{"model":' }),
  ],
  [
    401,
    'a key that is unknown',
    async (testbed, dialect) =>
      testbed.call({ ...(await unlimited(testbed)), key: `sk-gw-${'x'.repeat(48)}` }, dialect, question),
  ],
  [401, 'no key', async (testbed, dialect) => testbed.call(undefined, dialect, question)],
  [
    402,
    'an empty balance',
    async (testbed, dialect) => testbed.call(await testbed.customer({ nanoUsd: 0n }), dialect, question),
  ],
  [
    403,
    'a model that the key may not use',
    async (testbed, dialect) => testbed.call(await unlimited(testbed, ['replay']), dialect, question),
  ],
  [
    404,
    'a model that is not there',
    async (testbed, dialect) =>
      testbed.call(await unlimited(testbed), dialect, { ...question, model: 'no-such-model' }),
  ],
  [
    413,
    'a body that is too large',
    async (testbed, dialect) =>
      testbed.call(await unlimited(testbed), dialect, { ...question, prompt: 'x'.repeat(200_000) }),
  ],
];

for (const name of ['main', 'second'])
  for (const dialect of dialectNames)
    for (const [status, why, call] of cases)
      test(`${name} gateway, ${dialect}: ${why} is ${status} and need not be tried again`, async () => {
        const reply = await call(testbeds.get(name)!, dialect);
        assert.equal(reply.status, status, reply.text);
        assert.equal(reply.headers.get('x-should-retry'), 'false');
      });

test('an unknown address and a wrong method need not be tried again either', async () => {
  for (const testbed of testbeds.values())
    for (const [method, path, status] of [
      ['POST', '/v1/chat/nothing', 404],
      ['GET', '/v1/messages', 405],
    ] as const) {
      const answer = await fetch(testbed.origin + path, { method });
      assert.equal(answer.status, status, await answer.text());
      assert.equal(answer.headers.get('x-should-retry'), 'false');
    }
});

test('a refusal by a passing limit may be tried again', async () => {
  for (const testbed of testbeds.values())
    for (const dialect of dialectNames) {
      const customer = await testbed.customer({ plan: 'once' });
      assert.equal((await testbed.call(customer, dialect, question)).status, 200);
      const reply = await testbed.call(customer, dialect, question);
      assert.equal(reply.status, 429);
      assert.equal(reply.headers.get('x-should-retry'), null);
      assert.ok(Number(reply.headers.get('retry-after')) > 0);
    }
});
