/** The models plugin: who may call what, prices, the catalogue service, what `check` reports. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PluginInstance } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { type Caller, caller } from '../../../plugins/common/domain/accounts.ts';
import { batchLine, type Call, call } from '../../../plugins/common/domain/calls.ts';
import { catalog, instead, model } from '../../../plugins/common/domain/models.ts';
import { formatRatio } from '../../../plugins/common/domain/money.ts';
import { type PlanTerms, plan } from '../../../plugins/common/domain/plans.ts';
import { priceFor } from '../../../plugins/common/domain/prices.ts';
import { fakeExchange, okAnswer } from '../../helpers/fakes.ts';
import { models, start } from './helpers.ts';

async function send(part: PluginInstance, wanted: Partial<Call>, who?: Partial<Caller>, terms?: Partial<PlanTerms>) {
  const exchange = fakeExchange({ facts: [[call, { protocol: 'chat', ...wanted }]] });
  if (who !== undefined) exchange.set(caller, who as Caller);
  if (terms !== undefined) exchange.set(plan, terms as PlanTerms);
  const answer = await part.handle!(exchange, async () => okAnswer);
  return { exchange, answer };
}

async function refusal(...request: Parameters<typeof send>): Promise<GatewayError> {
  try {
    await send(...request);
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    assert.equal(error.field, 'model');
    return error;
  }
  return assert.fail('the call went through');
}

async function refuses(section: unknown, pattern: RegExp): Promise<void> {
  await assert.rejects(start(section), pattern);
}

test('a model of the catalogue is set for the plugins below, by id and by alias', async () => {
  const { part } = await start();
  for (const name of ['acme/large:latest', 'best']) {
    const { exchange, answer } = await send(part, { model: name });
    assert.equal(answer, okAnswer);
    assert.equal(exchange.get(model).id, 'acme/large:latest');
    assert.deepEqual(exchange.get(model).targets, [
      { provider: 'idle', model: 'acme/large:latest', weight: 0 },
      { provider: 'acme', model: 'large-2', weight: 0 },
    ]);
  }
});

test('an unknown model is a 404 that names it, on one bounded line', async () => {
  const { part } = await start();
  const error = await refusal(part, { model: 'nothing' });
  assert.deepEqual([error.status, error.code], [404, 'model_not_found']);
  assert.match(error.message, /`nothing`/);
  const long = await refusal(part, { model: `a\r\nb${'x'.repeat(5_000)}` });
  assert.ok(long.message.length < 200);
  assert.doesNotMatch(long.message, /[\r\n]/);
  for (const name of ['orphan', '__proto__', 'constructor', '']) {
    assert.equal((await refusal(part, { model: name })).code, 'model_not_found');
  }
});

test('a model without a price is not sold', async () => {
  const { part } = await start();
  assert.equal((await refusal(part, { model: 'unpriced' })).code, 'model_not_priced');
});

test("a model of another kind than the endpoint's is refused", async () => {
  const { part } = await start();
  const error = await refusal(part, { model: 'painter' });
  assert.deepEqual([error.status, error.code], [400, 'model_kind']);
  assert.match(error.message, /`painter`.*"image".*"chat"/);
  assert.equal((await send(part, { model: 'painter', kind: 'image' })).answer, okAnswer);
  assert.equal((await refusal(part, { model: 'small', kind: 'video' })).code, 'model_kind');
});

test('a key or a plan that does not allow the model is a 403 that names it', async () => {
  const { part } = await start();
  const only = new Set(['acme/large:latest']);
  for (const error of [
    await refusal(part, { model: 'small' }, { models: only }),
    await refusal(part, { model: 'small' }, { models: undefined }, { models: only }),
    await refusal(part, { model: 'small' }, { models: undefined, project: 'eval', projectModels: only }),
    await refusal(part, { model: 'small' }, { models: new Set(['small']), project: 'eval', projectModels: only }),
  ]) {
    assert.deepEqual([error.status, error.code], [403, 'model_not_allowed']);
    assert.match(error.message, /`small`/);
  }
  const ofProject = await refusal(
    part,
    { model: 'small' },
    { models: undefined, project: 'eval', projectModels: only },
  );
  assert.match(ofProject.message, /^The project `eval` may not call/);
  for (const name of ['acme/large:latest', 'best']) {
    assert.equal((await send(part, { model: name }, { models: only }, { models: only })).answer, okAnswer);
  }
  assert.equal((await send(part, { model: 'best' }, { models: new Set(['best']) })).answer, okAnswer);
});

test('the catalogue has exact prices in whole nano-USD, with a version made of their content', async () => {
  const section = (price: unknown) => ({ m: { owned_by: 'acme', targets: ['acme'], price } });
  const priced = async (price: unknown) => {
    const { prices } = (await start(section(price))).host.get(catalog).find('m')!;
    return priceFor(prices!, 0, {})!;
  };
  const one = await priced({ input: 0.0028, output: '3.75', cache_read: 0.075 });
  assert.deepEqual(one.price, { input: 2_800_000n, output: 3_750_000_000n, cache_read: 75_000_000n });
  assert.equal(one.version, (await priced({ cache_read: 0.075, output: 3.75, input: 0.0028 })).version);
  assert.notEqual(one.version, (await priced({ input: 0.0028, output: '3.76', cache_read: 0.075 })).version);
  assert.match(one.version, /^[0-9a-f]{12}$/);
  const free = await priced('free');
  assert.deepEqual(free.price, { input: 0n, output: 0n, image: 0n, second: 0n, call: 0n });
});

test('a price without a class that the model always uses is refused', async () => {
  const section = (price: unknown, kind = 'chat') => ({ m: { owned_by: 'acme', targets: ['acme'], price, kind } });
  await refuses(section({ input: 1 }), /must name output/);
  await refuses(section({ output: 1 }), /must name input/);
  await refuses(section({}), /must name input/);
  await refuses(section({ input: 1 }, 'image'), /must name image/);
  await refuses(section({ image: 1 }, 'video'), /must name second/);
  await refuses(section({ input: -1, output: 1 }), /below zero/);
  await refuses(section({ input: 1, output: 1, outptu: 1 }), /outptu/);
  await refuses(section('gratis'), /free/);
});

test('impossible targets, dates and aliases are refused', async () => {
  const section = (changes: object) => ({ m: { owned_by: 'acme', targets: ['acme'], ...changes } });
  await refuses(section({ targets: [] }), /targets/);
  await refuses(section({ targets: ['acme/'] }), /provider\/upstream-model/);
  await refuses(section({ targets: ['/x'] }), /provider\/upstream-model/);
  await refuses(section({ targets: [{ provider: 'acme', wieght: 1 }] }), /wieght/);
  await refuses(section({ created: 'yesterday' }), /Unix seconds/);
  await refuses(section({ aliases: ['m'] }), /already/);
  await refuses({ ...section({ aliases: ['x'] }), n: { owned_by: 'a', targets: ['acme'], aliases: ['x'] } }, /already/);
  await refuses({ 'no space': { owned_by: 'acme', targets: ['acme'] } }, /model id|Invalid key/);
});

test('notices list models that are not sold, not served or not checked', async () => {
  const { part } = await start();
  assert.deepEqual(part.checks!.notices!(), [
    { level: 'warning', text: 'models without a price are not sold: unpriced', path: ['unpriced'] },
    { level: 'warning', text: 'models without any usable target are left out: orphan', path: ['orphan'] },
    {
      level: 'warning',
      text: 'models without `created`: clients see that they came out in 1970: orphan, unpriced, painter',
      path: ['orphan'],
    },
    { level: 'info', text: 'models with an example price; check it before you sell them: painter', path: ['painter'] },
  ]);
  assert.deepEqual((await start({ small: models.small })).part.checks!.notices!(), []);
});

const priced = { owned_by: 'acme', targets: ['acme'], created: 1, price: { input: 1, output: 2 } };

test('mistakes in `instead` are reported at the start: missing models, other kinds, circles for one reason', async () => {
  const { part } = await start({
    a: { ...priced, instead: { unavailable: ['b', 'gone'], context_length: 'c' } },
    b: { ...priced, instead: { unavailable: 'second-c' } },
    c: { ...priced, aliases: ['second-c'], instead: { unavailable: 'a', content_filter: 'c' } },
    d: { ...priced, instead: { context_length: 'e' } },
    e: { ...priced, kind: 'embedding', price: { input: 1 } },
    f: { ...priced, kind: 'image', price: { image: 1 }, instead: { unavailable: 'a' } },
  });
  assert.deepEqual(
    part.checks!.problems!().map((fault) => `${fault.path.join('.')}: ${'message' in fault ? fault.message : ''}`),
    [
      'a.instead.unavailable: comes back to the model itself: a → b → c → a',
      'a.instead.unavailable: there is no model "gone"',
      'b.instead.unavailable: comes back to the model itself: b → c → a → b',
      'c.instead.unavailable: comes back to the model itself: c → a → b → c',
      'c.instead.content_filter: comes back to the model itself: c → c',
      'd.instead.context_length: "e" is of the kind "embedding", and this model of the kind "chat"',
      'f.instead.unavailable: no other model can stand in for one of the kind "image"',
    ],
  );
});

test('a dearer or unpriced model of `instead` gets a warning', async () => {
  const { part } = await start({
    a: { ...priced, instead: { context_length: ['b', 'c', 'd'] } },
    b: { ...priced, price: { input: 1, output: 3, reasoning: 4 } },
    c: priced,
    d: { ...priced, price: undefined },
  });
  const reported = part.checks!.notices!().flatMap(({ level, text }) =>
    text.includes('.instead.') ? [`${level}: ${text}`] : [],
  );
  assert.deepEqual(reported, [
    'warning: a.instead.context_length names b, which is dearer by its price of output, reasoning',
    'warning: a.instead.context_length names d, which has no price and is never asked',
  ]);
});

test('a call is offered the models of `instead` that its key and plan allow and that are sold, for lines at their ratio', async () => {
  const { part } = await start({
    a: { ...priced, instead: { context_length: ['b', 'c'], unavailable: 'c' } },
    b: { ...priced, batch: 0.5 },
    c: { ...priced, price: undefined },
  });
  const idsFor = async (...how: Parameters<typeof send>) => {
    const { exchange } = await send(...how);
    return exchange
      .find(instead)
      ?.models('context_length')
      .map(({ id }) => id);
  };
  assert.deepEqual(await idsFor(part, { model: 'a' }), ['b']);
  assert.deepEqual(await idsFor(part, { model: 'a' }, { models: new Set(['a']) }), undefined);
  assert.deepEqual(await idsFor(part, { model: 'a' }, {}, { models: new Set(['a']) }), undefined);
  assert.deepEqual(await idsFor(part, { model: 'a' }, {}, { models: new Set(['a', 'b']) }), ['b']);
  assert.deepEqual(await idsFor(part, { model: 'b' }), undefined);
  const line = fakeExchange({
    facts: [
      [call, { protocol: 'chat', model: 'a' } as Call],
      [batchLine, true],
    ],
  });
  await part.handle!(line, async () => okAnswer);
  const [other] = line.get(instead).all();
  assert.equal(formatRatio(other!.multiplier!), '0.5');
  line.get(instead).serve(other!);
  assert.deepEqual([line.get(model), line.get(instead).all()], [other, []]);
});

test('the plugin applies to endpoints that set a call; its own need no body', async () => {
  const { part } = await start();
  const endpoint = { method: 'POST', path: '/x', operation: 'x' } as const;
  assert.equal(part.applies!({ ...endpoint, setsOnOpen: [call] }), true);
  assert.equal(part.applies!(endpoint), false);
  for (const own of part.endpoints!) {
    assert.deepEqual([own.method, own.operation, own.body], ['GET', 'models', 'none']);
    assert.equal(part.applies!(own), false);
  }
});
