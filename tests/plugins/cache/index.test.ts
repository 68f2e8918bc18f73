/** What is answered again and what never is, to whom, for how long and at what price; and equal calls at once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer } from '../../../core/contract/message.ts';
import { membersIn } from '../../../core/json/members.ts';
import plugin from '../../../plugins/cache/index.ts';
import { canonicalText } from '../../../plugins/cache/key.ts';
import { wishIn } from '../../../plugins/cache/wish.ts';
import { cacheReport } from '../../../plugins/common/domain/admin/cache.ts';
import {
  answerPolicies,
  call,
  pinned,
  spendGuard,
  usageReport,
  vendorBatch,
} from '../../../plugins/common/domain/calls.ts';
import { model } from '../../../plugins/common/domain/models.ts';
import { money } from '../../../plugins/common/domain/money.ts';
import { timeline } from '../../../plugins/common/domain/timeline.ts';
import { type FakeExchange, fakeHost, prepare, setUp, wordsIn } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';
import { answered, exchangeOf, type Requested, rule, servedOf, startNode } from './world.ts';

test('an equal request is a hit with its age, whatever its spaces and the order of its members, until it has ended', async () => {
  const { host, send, made } = await startNode();
  assert.equal(await send(exchangeOf({ body: '{"model":"m","input":"x","dimensions":8}' })), 'miss');
  host.advance(5_000);
  const again = exchangeOf({ body: '{ "dimensions": 8, "input":"x",\n "model":"m" }' });
  assert.equal(await send(again), 'hit');
  assert.deepEqual(servedOf(again)!.price, { ratio: { numerator: 1n, denominator: 10n } });
  assert.deepEqual(servedOf(again)!.usage, { input: 7 });
  assert.equal(await send(exchangeOf({ body: '{"model":"m","input":"x","dimensions":9}' })), 'miss');
  host.advance(3_600_000);
  assert.equal(await send(exchangeOf({ body: '{"model":"m","input":"x","dimensions":8}' })), 'miss');
  assert.equal(made(), 3);
});

const whose = fc.record({
  account: fc.constantFrom('ada', 'bob'),
  project: fc.option(fc.constantFrom('search', 'shop'), { nil: undefined }),
  key: fc.constantFrom('k1', 'k2'),
  policies: fc.option(fc.constantFrom('strict', 'mild'), { nil: undefined }),
  price: fc.constantFrom(1_000n, 2_000n),
  version: fc.constantFrom('v1', 'v2'),
  target: fc.constantFrom('vendor', 'other'),
});

test('another account, project or key as the scope says, policy, price, price version or target is never a hit', async () => {
  const scopes = fc.constantFrom('account' as const, 'project' as const, 'key' as const);
  await fc.assert(
    fc.asyncProperty(scopes, whose, whose, async (scope, one, other) => {
      const { send } = await startNode({ scope });
      const withBody = (by: typeof one) => exchangeOf({ ...by, body: { model: 'm', input: 'x' } } as Requested);
      await send(withBody(one));
      const names = [
        'account',
        'policies',
        'price',
        'version',
        'target',
        ...(scope === 'account' ? [] : [scope]),
      ] as const;
      const isSame = names.every((name) => one[name] === other[name]);
      assert.equal(await send(withBody(other)), isSame ? 'hit' : 'miss');
    }),
    { numRuns: 200 },
  );
});

test('two different requests never have the same text, and members that stand twice are counted twice', () => {
  const requests = fc.json({ maxDepth: 4 }).map((text) => ({ model: 'm', input: JSON.parse(text) as unknown }));
  fc.assert(
    fc.property(requests, requests, (one, other) => {
      const [left, right] = [one, other].map((json) => canonicalText(json, true));
      if (left === undefined || right === undefined) return;
      assert.equal(left.text === right.text, isSame(one, other));
      assert.equal(left.members, membersIn(Buffer.from(JSON.stringify(one, null, 1))));
    }),
  );
  assert.equal(membersIn(Buffer.from('{"a":":","a":{"b\\"":1}}')), 3);
  assert.equal(canonicalText({ seed: 2 ** 53 }, true), undefined);
});

function isSame(left: unknown, right: unknown): boolean {
  try {
    assert.deepEqual(left, right);
    return true;
  } catch {
    return false;
  }
}

const never: Record<string, [Requested, ((exchange: FakeExchange) => void)?]> = {
  'one that is to be stored': [{ body: { model: 'm', input: 'x', store: true } }],
  'one that runs in the background': [{ body: { model: 'm', input: 'x', background: true } }],
  'several choices by chance': [{ body: { model: 'm', input: 'x', n: 2 }, call: { choices: 2 } }],
  'one that is not charged': [{ call: { billable: false } }],
  'an account of which nothing is kept': [{ caller: { retention: 'none' } }],
  'a member that stands twice': [{ body: '{"model":"m","input":"x","input":"y"}' }],
  'a number that cannot be read exactly': [{ body: '{"model":"m","input":"x","seed":9007199254740993}' }],
  'one that goes where its answer is stored': [
    {},
    (exchange) => exchange.set(pinned, { provider: 'v', credential: 'c', protocol: undefined }),
  ],
  'one whose answer is for it alone': [{}, (exchange) => exchange.set(answerPolicies, { digest: () => undefined })],
  'bytes that are no text': [
    {},
    ({ request }) => Object.assign(request, { body: Buffer.from('{"model":"m","input":"\xff"}', 'latin1') }),
  ],
  "a line of a vendor's batch": [{}, (exchange) => exchange.set(vendorBatch, 'answer')],
};
for (const [what, [requested, more]] of Object.entries(never))
  test(`${what} is never answered from the cache`, async () => {
    const { send, made } = await startNode();
    for (let times = 0; times < 2; times++) {
      const exchange = exchangeOf(requested);
      more?.(exchange);
      assert.equal(await send(exchange), undefined);
    }
    assert.equal(made(), 2);
  });

test('several choices are answered again where a seed or the temperature 0 makes them the same', async () => {
  const { send } = await startNode();
  for (const settled of [{ seed: 1 }, { temperature: 0 }]) {
    const requested = { body: { model: 'm', input: 'x', n: 2, ...settled }, call: { choices: 2 } };
    assert.equal(await send(exchangeOf(requested)), 'miss');
    assert.equal(await send(exchangeOf(requested)), 'hit');
  }
});

const bad: Record<string, (exchange: FakeExchange) => Answer> = {
  refused: () => ({ status: 400, headers: {}, body: '{"error":{}}' }),
  'an error with the status 200': (exchange) => answered(exchange, '{"error":{"message":"no"}}'),
  'no JSON': (exchange) => answered(exchange, '<html>'),
  'a question that a vendor refuses': (exchange) => answered(exchange, '{"answers":[{"type":"refusal"}]}'),
  'without its end': (exchange) => {
    const answer = answered(exchange);
    exchange.set(usageReport, { ...exchange.get(usageReport), terminal: false });
    return answer;
  },
  'refused by a policy': (exchange) => {
    exchange.set(answerPolicies, { digest: () => undefined });
    return answered(exchange);
  },
  'with counts that the call cannot have consumed': (exchange) => {
    const answer = answered(exchange);
    exchange.set(usageReport, { ...exchange.get(usageReport), usage: { input: 10 ** 12 } });
    return answer;
  },
  'with a count that is none': (exchange) => {
    const answer = answered(exchange);
    exchange.set(usageReport, { ...exchange.get(usageReport), usage: { input: -1 } });
    return answer;
  },
  'encoded still': (exchange) => ({
    ...answered(exchange),
    headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
  }),
  'of another model': (exchange) => {
    exchange.set(model, { ...exchange.get(model), id: 'other' });
    return answered(exchange);
  },
  'in a service that was not granted': (exchange) => {
    exchange.set(call, { ...exchange.get(call), services: { tier: 'priority' } });
    const answer = answered(exchange);
    exchange.set(usageReport, { ...exchange.get(usageReport), services: { tier: 'default' } });
    return answer;
  },
};
for (const [what, answerOf] of Object.entries(bad))
  test(`an answer that is ${what} is not kept`, async () => {
    const { send, made } = await startNode();
    for (let times = 0; times < 2; times++) {
      const exchange = exchangeOf();
      assert.equal(await send(exchange, async () => answerOf(exchange)), 'miss');
    }
    assert.equal(made(), 2);
  });

test('an answer that breaks off, and one that fails, are not kept, and those that wait make their own', async () => {
  const { send, made } = await startNode();
  const gate = Promise.withResolvers<void>();
  const failing = async () => {
    await gate.promise;
    throw new Error('the model has failed');
  };
  const calls = Array.from({ length: 5 }, (_, index) => {
    const exchange = exchangeOf();
    return send(exchange, index === 0 ? failing : undefined);
  });
  gate.resolve();
  const ends = await Promise.allSettled(calls);
  assert.deepEqual(
    ends.map((end) => (end.status === 'fulfilled' ? end.value : end.status)),
    ['rejected', 'miss', 'miss', 'miss', 'miss'],
  );
  assert.equal(made(), 5);
});

test('10,000 equal calls at once: one reaches the model, and all others are served at the price of a hit', async () => {
  const { host, send, made } = await startNode({ of: [{ ...rule, price: 0.25 }] });
  const gate = Promise.withResolvers<void>();
  const exchanges = Array.from({ length: 10_000 }, () => exchangeOf());
  const calls = exchanges.map((exchange) =>
    send(exchange, async () => {
      await gate.promise;
      return answered(exchange);
    }),
  );
  gate.resolve();
  const all = await Promise.all(calls);
  assert.equal(made(), 1);
  assert.equal(all.filter((how) => how === 'hit').length, 9_999);
  const prices = exchanges.flatMap((exchange) => servedOf(exchange)?.price ?? []);
  assert.equal(prices.length, 9_999);
  for (const price of prices) assert.deepEqual(price, { ratio: { numerator: 25n, denominator: 100n } });
  const [sums] = await host.get(cacheReport).sums({ from: 0, until: host.clock.now() });
  assert.deepEqual([sums!.hits, sums!.misses], [9_999, 1]);
});

test('when the client of the call that is made leaves, one of those that wait makes it', async () => {
  const { send, made } = await startNode();
  const first = exchangeOf();
  const gate = Promise.withResolvers<Answer>();
  const left = send(first, () => gate.promise);
  const waiting = Array.from({ length: 4 }, () => send(exchangeOf()));
  first.abort();
  gate.reject(new Error('gone'));
  await assert.rejects(left);
  assert.deepEqual((await Promise.all(waiting)).toSorted(), ['hit', 'hit', 'hit', 'miss']);
  assert.equal(made(), 2);
});

test('cache-control: no-store keeps and reads nothing, no-cache makes it again, max-age sets the oldest that is wanted', async () => {
  const { host, send, made } = await startNode();
  const by = (control: string) => send(exchangeOf({ headers: { 'cache-control': control } }));
  assert.equal(await by('no-store'), 'miss');
  assert.equal(await by(''), 'miss');
  assert.equal(await by('No-Store'), 'miss');
  assert.equal(await by(''), 'hit');
  host.advance(10_000);
  assert.equal(await by('max-age=10'), 'hit');
  host.advance(1_000);
  assert.equal(await by('max-age=10'), 'miss');
  assert.equal(await by('max-age=10'), 'hit');
  assert.equal(await by('no-cache'), 'miss');
  assert.equal(await by('max-age=0'), 'miss');
  assert.equal(made(), 6);
  const deaf = await startNode({ honour: [] });
  await deaf.send(exchangeOf());
  assert.equal(await deaf.send(exchangeOf({ headers: { 'cache-control': 'no-store' } })), 'hit');
});

const wishes: Record<string, [reads: boolean, writes: boolean, maxAgeS?: number]> = {
  '': [true, true],
  'max-age="5", x': [true, true, 5],
  'max-age = 7 , MAX-AGE=9': [true, true, 7],
  'max-age=99999999999999999999': [true, true],
  'max-age=soon': [false, true, 0],
  'max-age=-1': [false, true, 0],
  'max-age': [false, true, 0],
  'NO-CACHE="x"': [false, true],
  ',, no-store ,no-cache': [false, false],
  'x="no-store"': [true, true],
  'no-stored, only-if-cached, max-stale': [true, true],
};
test('odd forms of cache-control ask for what they say, and never for an older answer than they mean', () => {
  for (const [header, [reads, writes, maxAgeS]] of Object.entries(wishes)) {
    const { maxAgeMs, ...wish } = wishIn(header);
    assert.deepEqual(wish, { reads, writes }, header);
    if (maxAgeS === undefined) assert.ok(maxAgeMs > 10 ** 15, header);
    else assert.equal(maxAgeMs, maxAgeS * 1_000, header);
  }
});

test('answers that are on their way take no more room than the store has, and an account no more than its part', async () => {
  const { send, made } = await startNode({ bytes: '1MB', account: '64KB' });
  const body = `{"data":"${'x'.repeat(40_000)}"}`;
  const ask = (input: string, account = 'ada') => {
    const exchange = exchangeOf({ account, body: { model: 'm', input } });
    return send(exchange, async () => answered(exchange, body));
  };
  assert.deepEqual(await Promise.all([ask('a'), ask('b'), ask('a', 'bob')]), ['miss', 'miss', 'miss']);
  assert.deepEqual([await ask('a'), await ask('b'), await ask('a', 'bob')], ['hit', 'miss', 'hit']);
  assert.equal(made(), 4);
});

test('the first rule that fits decides: operations, models by name with *, requests without tools', async () => {
  const { send } = await startNode({
    of: [
      { operations: ['chat'], ...rule },
      { models: ['n*'], ...rule },
      { models: ['*m*'], without: 'tools', keep: '1m', price: 0 },
    ],
  });
  const plain = exchangeOf();
  await send(exchangeOf());
  assert.equal(await send(plain), 'hit');
  assert.equal(servedOf(plain)!.price, 'free');
  assert.equal(await send(exchangeOf({ body: { model: 'm', input: 'x', tools: [{ type: 'function' }] } })), undefined);
});

test('a hit is in the story of its request and in the sums, with what it has saved', async () => {
  const { host, send } = await startNode();
  await send(exchangeOf());
  host.advance(3_000);
  const exchange = exchangeOf();
  exchange.set(timeline, []);
  exchange.set(spendGuard, { observe: () => true, saving: (_usage, { numerator }) => money(90n * numerator) });
  await send(exchange);
  assert.deepEqual(wordsIn(exchange.get(timeline)), [
    'answered from the cache: the answer to an equal request, 3 s old',
  ]);
  assert.deepEqual(await host.get(cacheReport).sums({ from: 0, until: host.clock.now(), accountId: 'ada' }), [
    { model: 'm', operation: 'embeddings', hits: 1, similar: 0, misses: 1, saved: 90n },
  ]);
});

test('without rules no endpoint has it in its chain, and rules that come by a reload are taken up', async () => {
  const host = fakeHost();
  const instance = await setUp(plugin, host, {});
  const { endpoint } = exchangeOf();
  assert.equal(instance.applies!(endpoint), false);
  (await prepare(plugin, instance, { of: [rule] }))();
  assert.equal(instance.applies!(endpoint), true);
  assert.equal(instance.applies!({ ...endpoint, handle: () => answered(exchangeOf()) }), false);
  assert.equal(instance.applies!({ ...endpoint, body: 'stream' }), false);
});

test('the store redis without its address is a fault where calls are served, and none for commands and checks', async () => {
  for (const mode of ['serve', 'command', 'check'] as const) {
    const instance = await setUp(plugin, fakeHost({ mode }), { store: 'redis', of: [rule] });
    const paths = instance.checks!.problems!().map(({ path }) => path.join('.'));
    assert.deepEqual(paths, mode === 'serve' ? ['store'] : [], mode);
  }
});
