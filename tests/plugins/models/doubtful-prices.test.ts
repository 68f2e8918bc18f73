/** Prices, ratios and keys that are valid and probably not meant: the whole sentence that `check` prints of each. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import { doubtfulPrices, shippedPrices } from '../../../plugins/models/checks/doubtful-prices.ts';
import { modelsSchema } from '../../../plugins/models/config.ts';
import { testMistakes } from '../../helpers/operator-mistakes.ts';

/** Where models are added. */
const slow = '  slow:\n';
const sold = (name: string, price: string, more = '') =>
  `  ${name}:\n    owned_by: acme\n    created: 2026-01-01\n    targets: [acme]\n    price: ${price}\n${more}${slow}`;
const shipped = 'the public price that the gateway is shipped with';

testMistakes([
  [
    'a price per thousand tokens',
    slow,
    sold('gpt-5.4', '{ input: 0.0025, output: 0.015 }'),
    `warning: gateway.yaml:30: models.gpt-5.4.price: input is 0.0025 USD, 1000 times less than 2.50, ${shipped}: it is priced per million tokens`,
  ],
  [
    'a price per token',
    slow,
    sold('gpt-5.4', '{ input: 0.0000025, output: 15 }'),
    `warning: gateway.yaml:30: models.gpt-5.4.price: input is 0.0000025 USD, 1000000 times less than 2.50, ${shipped}: it is priced per million tokens`,
  ],
  [
    'a price in cents',
    slow,
    sold('gpt-5.4', '{ input: 250, output: 1500 }'),
    `warning: gateway.yaml:30: models.gpt-5.4.price: input is 250.00 USD, 100 times more than 2.50, ${shipped}: it is priced per million tokens`,
  ],
  [
    'a price per thousand tokens for long prompts alone',
    slow,
    sold('gpt-5.4', '{ input: 2.5, output: 15, above: { 272k: { input: 0.005, output: 22.5 } } }'),
    `warning: gateway.yaml:30: models.gpt-5.4.price: input is 0.005 USD, 1000 times less than 5.00, ${shipped}: it is priced per million tokens`,
  ],
  [
    'a price per thousand tokens from a day on',
    slow,
    sold('gpt-5.4', '[{ input: 2.5, output: 15 }, { input: 2.5, output: 0.015, valid_from: 2099-01-01 }]'),
    `warning: gateway.yaml:30: models.gpt-5.4.price: output is 0.015 USD, 1000 times less than 15.00, ${shipped}: it is priced per million tokens`,
  ],
  [
    'a price per thousand tokens of a model with a name of its own',
    slow,
    sold('best', '{ input: 0.0025, output: 0.015 }').replace('[acme]', '[acme/openai/gpt-5.4]'),
    `warning: gateway.yaml:30: models.best.price: input is 0.0025 USD, 1000 times less than 2.50, ${shipped}: it is priced per million tokens`,
  ],
  [
    'a cost per thousand tokens',
    slow,
    sold('gpt-5.4', '{ input: 2.5, output: 15 }', '    cost: { input: 0.0025, output: 0.015 }\n'),
    `warning: gateway.yaml:31: models.gpt-5.4.cost: input is 0.0025 USD, 1000 times less than 2.50, ${shipped}: it is priced per million tokens`,
  ],
  [
    'a price that is far above the cost of a model that no list has',
    slow,
    sold('own', '{ input: 1000, output: 2 }', '    cost: { input: 1, output: 1 }\n'),
    'warning: gateway.yaml:30: models.own.price: input is 1000.00 USD, 1000 times more than 1.00, models.own.cost: it is priced per million tokens',
  ],
  [
    'a price that is far below the cost of a target, where that is allowed',
    slow,
    sold('own', '{ input: 0.001, output: 0.002 }').replace(
      '[acme]',
      '[{ provider: acme, cost: { input: 1, output: 2 }, below_cost: true }]',
    ),
    'warning: gateway.yaml:30: models.own.price: input is 0.001 USD, 1000 times less than 1.00, models.own.targets.0.cost: it is priced per million tokens',
  ],
  [
    'an output that costs nothing',
    slow,
    sold('gpt-5.4', '{ input: 2.5, output: 0 }'),
    `warning: gateway.yaml:30: models.gpt-5.4.price: output costs nothing, and 15.00 USD is ${shipped}`,
  ],
  [
    'a price of nothing that is not called free',
    '    price: { input: 1, output: 2 }\n    created: 2026-01-01\n  slow',
    '    price: { input: 0, output: 0 }\n    created: 2026-01-01\n  slow',
    'warning: gateway.yaml:24: models.fast.price is 0 for everything: write "price: free" if that is meant',
  ],
  [
    'a ratio of a model in per cent',
    '    targets: [acme/acme-fast]\n',
    '    targets: [acme/acme-fast]\n    multiplier: 120\n',
    'warning: gateway.yaml:24: models.fast.multiplier is 120: it is a factor, no percentage; 1.2 is a fifth more',
  ],
  [
    'a ratio of a plan in per cent',
    '{ price: 0, limits',
    '{ price: 0, multiplier: 120, limits',
    'warning: gateway.yaml:9: plans.offers.free.multiplier is 120: it is a factor, no percentage; 1.2 is a fifth more',
  ],
  [
    "the placeholder of a vendor's page as a key",
    '"${ACME_KEY}"',
    'your-api-key',
    'warning: gateway.yaml:15: providers.acme.keys is the placeholder of an example: write the key itself',
  ],
  [
    'two keys in one text',
    '"${ACME_KEY}"',
    'first-key-1,second-key-2',
    'warning: gateway.yaml:15: providers.acme.keys has a comma inside: write several keys as a list',
  ],
  [
    'a key with the name of its variable',
    '"${ACME_KEY}"',
    '[right-key-1, ACME_KEY=other-key-1]',
    'warning: gateway.yaml:15: providers.acme.keys.1 begins with the name of a variable: write what stands behind "="',
  ],
]);

test('no price of the shipped catalogue, of a free model, or up to ten times off is doubtful', () => {
  const { models } = parse(readFileSync('config/models.yaml', 'utf8')) as { models: Record<string, object> };
  const at = Date.parse('2026-12-09');
  const list = shippedPrices();
  assert.ok(list.size >= Object.keys(models).length - 1);
  assert.deepEqual(doubtfulPrices(modelsSchema.parse(models), list, at), []);
  const priced = (price: unknown) => modelsSchema.parse({ 'gpt-5.4': { ...models['gpt-5.4'], price } });
  for (const price of ['free', { input: 0.25, output: 150 }, { request: 0.0001, input: 0, output: 0 }])
    assert.deepEqual(doubtfulPrices(priced(price), list, at), [], JSON.stringify(price));
  assert.equal(doubtfulPrices(priced({ input: 0.249, output: 15 }), list, at).length, 1);
});
