/** Refusals that the same request meets again: each says so to official clients, in every protocol and in the second gateway. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type DialectName, dialectNames } from './dialects.ts';
import { type Customer, type House, secondGateway, startHouse, type Told, usdInNano } from './house.ts';

const houses = new Map<string, House>();
before(async () => {
  const offers = { once: { price: 0, limits: { rpm: 1 } } };
  houses.set('main', await startHouse({ offers, more: { server: { body_limit: '100kB' } } }));
  houses.set('second', await startHouse({ offers, more: { ...secondGateway, server: { body_limit: '100kB' } } }));
});
after(async () => {
  for (const house of houses.values()) await house.stop();
});

const question = { model: 'sandbox', prompt: 'Hello' };
type Case = (house: House, dialect: DialectName) => Promise<Told>;

const unlimited = (house: House, models?: readonly string[]): Promise<Customer> =>
  house.customer({ nanoUsd: usdInNano, ...(models === undefined ? {} : { models }) });

const cases: readonly [status: number, why: string, call: Case][] = [
  [
    400,
    'a body that is no JSON',
    async (house, dialect) => house.call(await unlimited(house), dialect, question, { body: '{"model":' }),
  ],
  [
    401,
    'a key that is unknown',
    async (house, dialect) =>
      house.call({ ...(await unlimited(house)), key: `sk-gw-${'x'.repeat(48)}` }, dialect, question),
  ],
  [401, 'no key', async (house, dialect) => house.call(undefined, dialect, question)],
  [
    402,
    'an empty balance',
    async (house, dialect) => house.call(await house.customer({ nanoUsd: 0n }), dialect, question),
  ],
  [
    403,
    'a model that the key may not use',
    async (house, dialect) => house.call(await unlimited(house, ['replay']), dialect, question),
  ],
  [
    404,
    'a model that is not there',
    async (house, dialect) => house.call(await unlimited(house), dialect, { ...question, model: 'no-such-model' }),
  ],
  [
    413,
    'a body that is too large',
    async (house, dialect) => house.call(await unlimited(house), dialect, { ...question, prompt: 'x'.repeat(200_000) }),
  ],
];

for (const name of ['main', 'second'])
  for (const dialect of dialectNames)
    for (const [status, why, call] of cases)
      test(`${name} gateway, ${dialect}: ${why} is ${status} and need not be tried again`, async () => {
        const told = await call(houses.get(name)!, dialect);
        assert.equal(told.status, status, told.text);
        assert.equal(told.headers.get('x-should-retry'), 'false');
      });

test('an address that is not there and a wrong method say it too', async () => {
  for (const house of houses.values())
    for (const [method, path, status] of [
      ['POST', '/v1/chat/nothing', 404],
      ['GET', '/v1/messages', 405],
    ] as const) {
      const answer = await fetch(house.origin + path, { method });
      assert.equal(answer.status, status, await answer.text());
      assert.equal(answer.headers.get('x-should-retry'), 'false');
    }
});

test('a limit that passes does not say it', async () => {
  for (const house of houses.values())
    for (const dialect of dialectNames) {
      const customer = await house.customer({ plan: 'once' });
      assert.equal((await house.call(customer, dialect, question)).status, 200);
      const told = await house.call(customer, dialect, question);
      assert.equal(told.status, 429);
      assert.equal(told.headers.get('x-should-retry'), null);
      assert.ok(Number(told.headers.get('retry-after')) > 0);
    }
});
