/** New models and tiers of the forms: faults are named by field, and what is entered is what the gateway reads. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { modelKinds } from '../../../../plugins/common/domain/models.ts';
import { cost, one, parseUsd } from '../../../../plugins/common/domain/money.ts';
import { priceFor } from '../../../../plugins/common/domain/prices.ts';
import { type Usage, usageClasses } from '../../../../plugins/common/domain/usage.ts';
import { withMember } from '../../../../plugins/console/web/src/pages/operator/config/forms/edit-yaml.ts';
import {
  limitsOf,
  sizesOf,
  unitOf,
  usualClasses,
} from '../../../../plugins/console/web/src/pages/operator/config/forms/models/model-kinds.ts';
import {
  entryOf,
  faultsOf,
  type NewModel,
} from '../../../../plugins/console/web/src/pages/operator/config/forms/models/new-model-entry.ts';
import {
  tierFaults,
  tierValue,
} from '../../../../plugins/console/web/src/pages/operator/config/forms/models/tier-entry.ts';
import { modelsSchema } from '../../../../plugins/models/config.ts';
import { fc } from '../../../helpers/properties.ts';

const target = { provider: 'acme', model: '', protocols: [], cost: new Map<string, string>() };
const model: NewModel = {
  name: 'new',
  kind: 'chat',
  displayName: '',
  owner: '',
  targets: [target],
  sizes: new Map(),
  limits: new Map(),
  price: new Map([
    ['input', '2.50'],
    ['output', '10'],
  ]),
};

test('the classes of the forms are those of the gateway', () => {
  for (const kind of modelKinds)
    for (const name of usualClasses[kind]) assert.ok(usageClasses.includes(name as never), name);
  assert.deepEqual(['input', 'image', 'second', 'character', 'audio', 'web_search', 'search'].map(unitOf), [
    'million',
    'image',
    'second',
    'characters',
    'hour',
    'call',
    'search',
  ]);
});

test('each fault is named by its field', () => {
  const faults = (changed: Partial<NewModel>) =>
    Object.fromEntries(faultsOf({ ...model, ...changed }, new Set(['old'])));
  assert.deepEqual(faults({}), {});
  assert.deepEqual(faults({ name: 'old' }), { name: 'nameTaken' });
  assert.deepEqual(faults({ name: 'a b' }), { name: 'nameMissing' });
  assert.deepEqual(
    faults({
      targets: [target, { ...target, provider: '', cost: new Map([['input', '1,5']]) }],
      price: new Map([['output', '-1']]),
      sizes: new Map([['context', 'many']]),
      limits: new Map([
        ['images', '0'],
        ['size', 'large'],
      ]),
    }),
    {
      'targets.1.provider': 'vendorMissing',
      'targets.1.cost.input': 'amountWrong',
      'price.output': 'amountWrong',
      'sizes.context': 'countWrong',
      'limits.images': 'countWrong',
      'limits.size': 'sizeWrong',
    },
  );
});

const amount = fc
  .integer({ min: 0, max: 99_999_999 })
  .map((micro) => `${Math.trunc(micro / 1e6)}.${String(micro % 1e6).padStart(6, '0')}`);
const names = fc.stringMatching(/^[a-z][a-z0-9-]{0,8}$/);
const newModels = fc.constantFrom(...modelKinds).chain((kind) => {
  const amounts = fc
    .tuple(...usualClasses[kind].map(() => amount))
    .map((all) => new Map(all.map((text, index) => [usualClasses[kind][index]!, text])));
  return fc.record({
    kind: fc.constant(kind),
    name: fc.stringMatching(/^[a-z][a-z0-9.:/-]{0,20}$/),
    displayName: fc.constantFrom('', 'A new one', 'a: b'),
    owner: fc.constantFrom('', 'them'),
    targets: fc.array(
      fc.record({
        provider: names,
        model: fc.constantFrom('', 'there/it:1'),
        protocols: fc.subarray(['chat', 'messages']),
        cost: fc.oneof(amounts, fc.constant(new Map<string, string>())),
      }),
      { minLength: 1, maxLength: 3 },
    ),
    sizes: fc.constant(new Map(sizesOf(kind).map((one) => [one, '200k']))),
    limits: fc.constant(new Map(limitsOf(kind).map((one) => [one, one === 'size' ? '10x10' : '7']))),
    price: fc.oneof(amounts, fc.constant(new Map<string, string>())),
  });
});

test('a model entered without a fault is read by the gateway, and costs the entered prices', () => {
  fc.assert(
    fc.property(newModels, (entered) => {
      assert.deepEqual([...faultsOf(entered, new Set())], []);
      const text = withMember(
        '# head\nmodels:\n  old: { owned_by: a, targets: [b] } # kept\n',
        ['models', entered.name],
        entryOf(entered),
      )!;
      assert.ok(text.startsWith('# head\nmodels:\n  old: { owned_by: a, targets: [b] } # kept\n'), text);
      const read = modelsSchema.parse(parse(text).models)[entered.name]!;
      assert.equal(read.kind, entered.kind);
      assert.equal(read.owned_by, entered.owner || entered.targets[0]!.provider);
      assert.deepEqual(
        read.targets.map(({ provider, model: there, speaks }) => [provider, there ?? '', speaks ?? []]),
        entered.targets.map(({ provider, model: there, protocols }) => [provider, there, protocols]),
      );
      assert.equal(read.context, entered.sizes.has('context') ? 200_000 : undefined);
      assert.equal(read.limits?.size, entered.limits.get('size'));
      const charged = (book: typeof read.price, name: string) =>
        cost({ [name]: 1_000_000_000 } as Usage, priceFor(book!, 0, {})!.price, one);
      const same = (book: typeof read.price, amounts: ReadonlyMap<string, string>) => {
        if (amounts.size === 0) assert.equal(book, undefined);
        for (const [name, text] of amounts) {
          const units = { million: 1_000n, characters: 1_000n, other: 1_000_000_000n };
          const unit = unitOf(name);
          if (unit === 'hour') continue;
          const times = unit === 'million' || unit === 'characters' ? units[unit] : units.other;
          assert.equal(charged(book, name), parseUsd(text) * times, name);
        }
      };
      same(read.price, entered.price);
      if (entered.targets.length === 1) same(read.cost, entered.targets[0]!.cost);
      else for (const [index, { cost: own }] of entered.targets.entries()) same(read.targets[index]!.cost, own);
    }),
    { numRuns: 100 },
  );
});

test('a tier has a name of its own, and only the differing prices', () => {
  const base = new Map([
    ['input', '2'],
    ['output', '8'],
  ]);
  const tier = { name: '200k', ratio: '', amounts: new Map([...base, ['input', ' 4 ']]) };
  assert.deepEqual([...tierFaults('level', tier, base, new Set())], []);
  assert.deepEqual(tierValue('level', tier, base), new Map([['input', '4']]));
  assert.equal(tierValue('service', { ...tier, ratio: ' 0.5 ' }, base), '0.5');
  const faults = (sort: Parameters<typeof tierFaults>[0], changed: Partial<typeof tier>) =>
    Object.fromEntries(tierFaults(sort, { ...tier, ...changed }, base, new Set(['1m'])));
  assert.deepEqual(faults('level', { name: 'long' }), { name: 'thresholdWrong' });
  assert.deepEqual(faults('level', { name: '1m' }), { name: 'nameTaken' });
  assert.deepEqual(faults('servicePrices', { name: '', amounts: new Map([['input', 'x']]) }), {
    name: 'nameMissing',
    'amounts.input': 'amountWrong',
  });
  assert.deepEqual(faults('level', { amounts: base }), { 'amounts.input': 'differs', 'amounts.output': 'differs' });
  assert.deepEqual(faults('hours', { name: 'mon 01:00-02:00', ratio: '0' }), { ratio: 'ratioWrong' });
});
