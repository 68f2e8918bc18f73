/** The cache below the real billing, on its ledger and journal: what equal calls come to, and what the audit says of it. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { ContextKey } from '../../../core/contract/contract.ts';
import type { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import plugin from '../../../plugins/cache/index.ts';
import { caller } from '../../../plugins/common/domain/accounts.ts';
import { type Call, call, usageReport } from '../../../plugins/common/domain/calls.ts';
import { servedBy } from '../../../plugins/common/domain/ledger.ts';
import { model } from '../../../plugins/common/domain/models.ts';
import { formatUsd } from '../../../plugins/common/domain/money.ts';
import { type PlanTerms, plan } from '../../../plugins/common/domain/plans.ts';
import type { Usage } from '../../../plugins/common/domain/usage.ts';
import { type FakeExchange, fakeHost, setUp } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';
import { leaveWorlds, modelOf, newCall, newWorld, report, send, usd, type World } from '../billing/world.ts';

after(leaveWorlds);

/** One object, as the catalogue has it. */
const entry = modelOf();
/** At 2 and 10 USD a million: 44,000 nano-USD. */
const usage = { input: 7, output: 3 };
const whole = 44_000n;

function equalCall(
  text: string,
  requested: Partial<Call> = {},
  facts: readonly [ContextKey<unknown>, unknown][] = [],
): FakeExchange {
  const exchange = newCall({ call: requested, facts: [[model, entry], ...facts] });
  const body = Buffer.from(JSON.stringify({ model: 'test-model', input: text }));
  Object.assign(exchange.request, { body, bodyBytes: body.length });
  Object.assign(exchange.endpoint, { setsOnOpen: [call], body: 'json' });
  return exchange;
}

async function upstream(exchange: FakeExchange, counts: Usage): Promise<Answer> {
  Object.assign(await send(exchange), { result: 'answered', status: 200 });
  exchange.set(usageReport, report(counts));
  return { status: 200, headers: { 'content-type': 'application/json' }, body: '{"data":[]}' };
}

/** All of these calls at once, through billing and the cache. Resolves with how each was answered. */
async function answerAll(
  world: World,
  price: string,
  exchanges: readonly FakeExchange[],
  { breaksOff = (_: number): boolean => false, counts = usage as Usage, isOneByOne = false } = {},
) {
  const cache = await setUp(plugin, fakeHost(), { of: [{ keep: '1h', price }] });
  const gate = Promise.withResolvers<void>();
  const answerOne = async (exchange: FakeExchange, index: number) => {
    let answer: Answer;
    try {
      answer = await world.part.handle!(exchange, () =>
        cache.handle!(exchange, () => gate.promise.then(() => upstream(exchange, counts))),
      );
    } catch (error) {
      await exchange.end({ status: (error as GatewayError).status });
      return (error as GatewayError).code;
    }
    // The head and the body, as they are written to the client's socket.
    const isBroken = exchange.find(servedBy) !== undefined && breaksOff(index);
    if (!isBroken) exchange.watcher?.head(answer.status, {});
    if (!isBroken) exchange.watcher?.chunk(Buffer.from('x'));
    await exchange.end(isBroken ? { kind: 'failed' } : {});
    return isBroken ? 'broken' : answer.headers['x-cache'];
  };
  if (!isOneByOne) {
    const answers = exchanges.map(answerOne);
    gate.resolve();
    return Promise.all(answers);
  }
  gate.resolve();
  const ends: (string | undefined)[] = [];
  for (const [index, exchange] of exchanges.entries()) ends.push(await answerOne(exchange, index));
  return ends;
}

/** Until so many at least are in the ledger, and nothing waits for it. */
async function writeAll(world: World, calls: number): Promise<void> {
  for (let round = 1; round < 100; round++) {
    await world.tick('write the ledger');
    const [row] = await world.rows<{ n: number }>(sql`select count(*)::int as n from ${world.table('calls')}`);
    if (row!.n >= calls && round > 2) return;
  }
  assert.fail('the ledger lacks calls');
}

test('10,000 equal calls at once: one is made, and the bill is one whole price and 9,999 shares, each rounded once', async () => {
  await using world = await newWorld({ credit: '100' });
  const all = await answerAll(
    world,
    '0.33333',
    Array.from({ length: 10_000 }, () => equalCall('same')),
  );
  assert.equal(all.filter((how) => how === 'miss').length, 1);
  assert.equal(all.filter((how) => how === 'hit').length, 9_999);
  // 14,666.52 nano-USD a hit.
  assert.equal(formatUsd(await world.balance()), formatUsd(100_000_000_000n - whole - 9_999n * 14_667n));
});

test('any shares, questions and answers that break off: the balance is exact, and the audit finds nothing', async () => {
  const calls = fc.array(fc.record({ text: fc.constantFrom('a', 'b', 'c'), breaks: fc.boolean() }), {
    minLength: 1,
    maxLength: 12,
  });
  await fc.assert(
    fc.asyncProperty(calls, fc.integer({ min: 0, max: 100_000 }), async (list, millionths) => {
      await using world = await newWorld({ credit: '1' });
      const price = (millionths / 100_000).toFixed(5);
      const exchanges = list.map(({ text }) => equalCall(text));
      const all = await answerAll(world, price, exchanges, { breaksOff: (index) => list[index]!.breaks });
      const made = new Set(list.map(({ text }) => text)).size;
      const count = (what: string) => all.filter((how) => how === what).length;
      assert.equal(count('miss'), made);
      const share = (2n * whole * BigInt(millionths) + 100_000n) / 200_000n;
      const spent = BigInt(made) * whole + BigInt(count('hit')) * share;
      assert.equal(await world.balance(), 1_000_000_000n - spent);
      await writeAll(world, made);
      assert.deepEqual((await world.audit()).violations, []);
    }),
    { numRuns: 12 },
  );
});

/** All of what a call here holds: 0.003 USD, of which a hit costs a half. */
const all = { input: 1_000, output: 100 };

test("a hit counts against its key's cap with its own price, and a call that the rest does not cover is refused", async () => {
  await using world = await newWorld({ credit: '1' });
  const cap = { amount: usd('0.01'), every: 'day' as const };
  const who = { accountId: 'alice', keyId: 'key-1', plan: 'free', models: undefined, cap };
  const calls = Array.from({ length: 6 }, () => equalCall('same', {}, [[caller, who]]));
  const ends = await answerAll(world, '0.5', calls, { counts: all, isOneByOne: true });
  // 0.0075 are spent by then, and the next hold is 0.003.
  assert.deepEqual(ends, ['miss', 'hit', 'hit', 'hit', 'key_cap_reached', 'key_cap_reached']);
  assert.equal(await world.balance(), usd('0.9925'));
});

test("a hit counts in its plan's window with its own price, and a call that the rest does not cover is refused", async () => {
  await using world = await newWorld();
  const pro: PlanTerms = {
    name: 'pro',
    limits: {},
    models: undefined,
    multiplier: undefined,
    grant: { amount: usd('1'), every: 'month' },
    windows: { '5h': usd('0.01') },
  };
  const calls = Array.from({ length: 6 }, () => equalCall('same', {}, [[plan, pro]]));
  const ends = await answerAll(world, '0.5', calls, { counts: all, isOneByOne: true });
  assert.deepEqual(ends, ['miss', 'hit', 'hit', 'hit', 'plan_window_used_up', 'plan_window_used_up']);
  assert.equal(await world.balance(), usd('0.9925'));
  await writeAll(world, 4);
  assert.deepEqual((await world.audit()).violations, []);
});

test('equal calls at once whose hits cost more than is held: as many are answered as the balance pays, and others cost nothing', async () => {
  await using world = await newWorld({ credit: '1' });
  // 0.200014 USD, of which the hold of a call without a limit covers a part.
  const counts = { input: 7, output: 20_000 };
  const exchanges = Array.from({ length: 8 }, () => equalCall('same', { maxOutputTokens: undefined }));
  const all = await answerAll(world, '1', exchanges, { counts });
  assert.deepEqual(all.toSorted(), ['hit', 'hit', 'hit', ...Array(4).fill('insufficient_balance'), 'miss']);
  assert.equal(await world.balance(), 1_000_000_000n - 4n * 200_014_000n);
});
