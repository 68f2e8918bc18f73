/** A catalogue that changes while the gateway serves, by its own section and by the providers'. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Call, call } from '../../../plugins/common/domain/calls.ts';
import { catalog, model, priceFloor } from '../../../plugins/common/domain/models.ts';
import modelsPlugin from '../../../plugins/models/index.ts';
import providersPlugin from '../../../plugins/providers/index.ts';
import { fakeExchange, fakeHost, okAnswer, orderEndpoints, prepare, setUp } from '../../helpers/fakes.ts';
import { models, send, vendors } from './helpers.ts';

const chatCall: Call = {
  protocol: 'chat',
  model: 'small',
  stream: false,
  billable: true,
  inputTokens: 1,
  maxOutputTokens: undefined,
  choices: 1,
};

async function open() {
  const host = fakeHost({ endpoints: () => orderEndpoints });
  const providers = await setUp(providersPlugin, host, vendors);
  const part = await setUp(modelsPlugin, host, models);
  return { host, providers, part, offered: host.get(catalog) };
}

test('models, prices and the list change together; the catalogue stays the same object', async () => {
  const { host, part, offered } = await open();
  assert.match((await send(part, '/v1/models/small')).body as string, /small/);
  const old = part.handle!;
  const commit = await prepare(modelsPlugin, part, {
    small: { ...models.small, price: { input: 3, output: 4 } },
    fresh: { ...models.small, price: { input: 1, output: 1 }, cost: { input: 1, output: 1 } },
  });
  assert.equal(offered.find('fresh'), undefined);
  commit();
  assert.equal(host.get(catalog), offered);
  assert.deepEqual(
    offered.list().map(({ id }) => id),
    ['small', 'fresh'],
  );
  assert.equal((await send(part, '/v1/models/painter')).status, 404);
  assert.equal((await send(part, '/v1/models/fresh')).status, 200);
  assert.equal(host.get(priceFloor).losses({ numerator: 1n, denominator: 2n }).length, 1);
  const charged = [];
  for (const handle of [old, part.handle!]) {
    const exchange = fakeExchange({ facts: [[call, chatCall]] });
    await handle(exchange, async () => okAnswer);
    charged.push(exchange.get(model).prices);
  }
  assert.notEqual(charged[0], charged[1]);
  assert.equal(charged[1], offered.find('small')!.prices);
});

test('adding or removing a vendor adds or removes its models, with the same section of models', async () => {
  const { providers, part, offered } = await open();
  assert.equal(offered.find('orphan'), undefined);
  const changed = { idle: { ...vendors.idle, keys: 'one' } };
  const commits = [await prepare(providersPlugin, providers, changed), await prepare(modelsPlugin, part, models)];
  for (const commit of commits) commit();
  assert.deepEqual(
    offered.list().map(({ id }) => id),
    ['acme/large:latest', 'orphan'],
  );
  assert(
    part.checks!.notices!().some(({ text }) => text.includes('without any usable target') && text.includes('small')),
  );
});

test('a duplicate alias is refused and changes nothing', async () => {
  const { part, offered } = await open();
  const twice = { small: models.small, other: { ...models.small, aliases: ['small'] } };
  await assert.rejects(prepare(modelsPlugin, part, twice), /already/);
  assert.notEqual(offered.find('best'), undefined);
});
