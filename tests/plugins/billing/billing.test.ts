/** Billing as a plugin: admission, settlement, money that comes in, and what stays when it stops. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import type { GatewayError } from '../../../core/contract/errors.ts';
import { attempts, type Call, usageReport } from '../../../plugins/common/domain/calls.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import type { Model } from '../../../plugins/common/domain/models.ts';
import { parseRatio, parseUsd } from '../../../plugins/common/domain/money.ts';
import { type PlanTerms, plan } from '../../../plugins/common/domain/plans.ts';
import { priceRatio } from '../../../plugins/common/domain/price-ratio.ts';
import { flatBook } from '../../../plugins/common/domain/prices.ts';
import { answer, enter, entered, leaveWorlds, modelOf, newCall, newWorld, report, send, usd } from './world.ts';

after(leaveWorlds);

/** The GatewayError that the promise rejects with. */
async function refusal(promise: Promise<unknown>): Promise<GatewayError> {
  return promise.then(
    () => assert.fail('nothing was refused'),
    (error: unknown) => error as GatewayError,
  );
}

test('a call is held and charged for its usage, and leaves a ledger row and a call row with its attempt', async () => {
  await using world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  assert.equal(await world.balance(), usd('0.997'));
  await answer(exchange, { input: 900, output: 50 });
  assert.equal(await world.balance(), usd('0.9977'));
  await world.tick('write the ledger');
  assert.equal(await world.balance(), usd('0.9977'));
  const rows = await world.rows(
    sql`select kind, amount::text, revenue::text, balance_after::text, request_id from ${world.table('movements')} order by seq`,
  );
  assert.deepEqual(rows, [
    { kind: 'CREDIT', amount: '1000000000', revenue: '0', balance_after: '1000000000', request_id: null },
    { kind: 'CHARGE', amount: '-2300000', revenue: '2300000', balance_after: '997700000', request_id: exchange.id },
  ]);
  const calls = await world.rows<{ attempts: unknown[] }>(
    sql`select id, account_id, key_id, model, settled, reason, classes, estimated_input::text, held::text, cost::text, absorbed::text,
          estimated, terminal, provider, target_model, price, price_version, ratio, ${world.table('attempts_of')}(attempts, provider, target_model) as attempts from ${world.table('calls')}`,
  );
  const { attempts: tried, ...kept } = calls[0]!;
  assert.deepEqual(kept, {
    ...{
      id: exchange.id,
      account_id: 'alice',
      key_id: 'key-1',
      model: 'test-model',
      settled: true,
      reason: 'answered',
    },
    ...{
      classes: { input: 900, output: 50 },
      estimated_input: '1000',
      held: '3000000',
      cost: '2300000',
      absorbed: '0',
    },
    ...{ estimated: false, terminal: true, provider: 'vendor', target_model: 'vendor-model' },
    ...{ price: { input: '2000000000', output: '10000000000' }, price_version: 'v1', ratio: '1/1' },
  });
  assert.deepEqual(tried, [
    {
      ...{ number: 1, provider: 'vendor', model: 'vendor-model', credential: 'vendor#1', protocol: 'chat' },
      ...{ result: 'answered', status: 200, durationMs: 5, startedAt: 1_800_000_000_000, bearer: 'client' },
    },
  ]);
  assert.equal(calls.length, 1);
  assert.deepEqual((await world.audit()).violations, []);
});

test('overdraft by race: of 2,000 parallel calls on a balance for 50, exactly 50 are admitted', async () => {
  const world = await newWorld({ credit: '0.15' });
  const calls = Array.from({ length: 2_000 }, () => newCall());
  const results = await Promise.allSettled(calls.map((exchange) => enter(world, exchange)));
  const admitted = calls.filter((_, index) => results[index]!.status === 'fulfilled');
  assert.equal(admitted.length, 50);
  const refused = results.find((result) => result.status === 'rejected')!.reason as GatewayError;
  assert.deepEqual([refused.status, refused.code, refused.shouldRetry], [402, 'insufficient_balance', false]);
  await Promise.all(admitted.map((exchange) => answer(exchange, { input: 1_000, output: 100 })));
  await world.stop();
  assert.equal(await world.balance(), 0n);
  assert.equal((await world.audit()).ok, true);
});

test('a call that cannot be paid leaves nothing behind', async () => {
  const world = await newWorld({ credit: '0.002999999' });
  const error = await refusal(enter(world, newCall()));
  assert.equal(error.status, 402);
  await world.stop();
  assert.equal(world.journalText(), '');
  const [row] = await world.rows<{ count: number }>(
    sql`select count(*)::int as count from ${world.table('movements')}`,
  );
  assert.equal(row!.count, 1);
});

test('trusted bypass: a large balance is held like any other', async () => {
  await using world = await newWorld({ credit: '1000000' });
  await enter(world, newCall());
  assert.equal(await world.balance(), usd('999999.997'));
});

test('price, version and ratio are those of the hold, whatever changes before the settlement', async () => {
  await using world = await newWorld({ credit: '1' });
  const exchange = await entered(world, { facts: [[priceRatio, parseRatio('2')]] });
  assert.equal(await world.balance(), usd('0.994'));
  exchange.set(priceRatio, parseRatio('9'));
  await answer(exchange, { input: 1_000, output: 100 });
  assert.equal(await world.balance(), usd('0.994'));
});

test('rows have the plan of their call, also when a crash cut it off', async () => {
  const world = await newWorld({ credit: '1' });
  const on = (name: string): [typeof plan, unknown][] => [
    [plan, { name, limits: {}, models: undefined, multiplier: undefined }],
  ];
  const finished = await entered(world, { facts: on('pro') });
  await answer(finished, { input: 1_000, output: 100 });
  const cut = await entered(world, { facts: on('free') });
  await send(cut);
  const none = await entered(world);
  await answer(none, { input: 1_000, output: 100 });
  await setImmediate();
  await using again = await world.crash();
  const rows = await again.rows<{ plan: string | null; charge: string }>(
    sql`select plan, kind as charge from ${again.table('calls')} as calls
        join ${again.table('movements')} as ledger on request_id = id order by plan`,
  );
  assert.deepEqual(
    rows.map(({ plan: on, charge }) => [on, charge]),
    [
      ['free', 'CHARGE'],
      ['pro', 'CHARGE'],
      [null, 'CHARGE'],
    ],
  );
});

test("the plan's multiplier applies where no ratio is set", async () => {
  await using world = await newWorld({ credit: '1' });
  const terms: PlanTerms = { name: 'saver', limits: {}, models: undefined, multiplier: parseRatio('1.6') };
  const exchange = await entered(world, { facts: [[plan, terms]] });
  await answer(exchange, { input: 1_000, output: 100 });
  assert.equal(await world.balance(), usd('0.9952'));
});

test('a model without a price is refused, and calls without inference pass without a hold', async () => {
  const world = await newWorld();
  const error = await refusal(enter(world, newCall({ model: { prices: undefined } })));
  assert.deepEqual([error.status, error.code], [422, 'model_not_priced']);
  await enter(world, newCall({ call: { billable: false }, model: { prices: undefined } }));
  await world.stop();
  assert.equal(world.journalText(), '');
});

test('a free model serves an empty account and still leaves its rows, at 0', async () => {
  const world = await newWorld();
  const exchange = await entered(world, { model: { prices: flatBook({}, 'free') } });
  await answer(exchange, { input: 900, output: 50 });
  await world.stop();
  const rows = await world.rows(sql`select cost::text, classes from ${world.table('calls')}`);
  assert.deepEqual(rows, [{ cost: '0', classes: { input: 900, output: 50 } }]);
  assert.equal((await world.audit()).ok, true);
});

test('while the database is away a free model is served on any balance within the bridge, and a paid one gets 503', async () => {
  const free = modelOf({ id: 'free-model', prices: flatBook({}, 'free') });
  const world = await newWorld({ bridgeMs: 120_000, entries: [free, modelOf()] });
  const call = async (accountId: string, isFree: boolean) => {
    const exchange = newCall({ accountId, model: isFree ? free : {} });
    await world.part.admit?.(exchange);
    await enter(world, exchange);
    await answer(exchange, { input: 1_000, output: 100 });
  };
  await call('alice', true);
  world.faults.down = true;
  await call('alice', true);
  for (let minute = 0; minute < 2; minute++) {
    await call('bob', true);
    for (const account of ['alice', 'bob', 'carol']) {
      const refused = await refusal(call(account, false));
      assert.deepEqual([refused.status, refused.code], [503, 'balance_unavailable']);
    }
    world.host.advance(59_000);
  }
  world.host.advance(63_000);
  for (const account of ['alice', 'carol']) assert.equal((await refusal(call(account, true))).status, 503);
  world.faults.down = false;
  await world.credit('1', 'bob');
  await world.tick('write the ledger');
  await call('bob', false);
  await world.stop();
  const rows = await world.rows(sql`select account_id as who, sum(cost)::text as cost, count(*)::int as calls
    from ${world.table('calls')} group by account_id order by who`);
  assert.deepEqual(rows, [
    { who: 'alice', cost: '0', calls: 2 },
    { who: 'bob', cost: '3000000', calls: 3 },
  ]);
  assert.equal((await world.audit()).ok, true);
});

test("the hold is bounded by the plugin's cap, and counts every choice", async () => {
  await using world = await newWorld({ credit: '1', section: { hold: { output_tokens: 50 } } });
  const stream = await entered(world, { call: { choices: 3, maxOutputTokens: 100_000, stream: true } });
  assert.equal(await world.balance(), usd('0.9965'));
  await stream.end();
  // All of them end at once: the others could each cost so much more than a step.
  await enter(world, newCall({ call: { choices: 3, maxOutputTokens: 1_000 } }));
  assert.equal(await world.balance(), usd('0.9775'));
});

test('where holds cover whole answers, none costs more than its hold, and no call that could is admitted', async () => {
  const section = { hold: { output_tokens: 4_096, non_streaming: 'max' } };
  const world = await newWorld({ credit: '0.112', section });
  // At 10 USD per million: 10,000 tokens are 0.1 USD; the prompt is 0.002.
  const long: Partial<Model> = { maxOutputTokens: 10_000 };
  const cases: [Partial<Call>, Partial<Model>, string][] = [
    [{ maxOutputTokens: undefined }, long, '0.01'],
    [{ maxOutputTokens: 6_000 }, long, '0.05'],
    [{ maxOutputTokens: 500_000 }, long, '0.01'],
    [{ maxOutputTokens: undefined }, { contextTokens: 9_000 }, '0.02'],
    [{ maxOutputTokens: undefined }, {}, '0.06904'],
    [{ maxOutputTokens: 4_000, choices: 2 }, long, '0.03'],
    // A stream is extended as it goes.
    [{ maxOutputTokens: undefined, stream: true }, long, '0.06904'],
  ];
  for (const [requested, entry, left] of cases) {
    const exchange = await entered(world, { call: requested, model: entry });
    assert.equal(await world.balance(), usd(left), JSON.stringify([requested, entry]));
    await exchange.end();
  }
  const longest = await entered(world, { call: { maxOutputTokens: undefined }, model: long });
  await refusal(enter(world, newCall({ call: { maxOutputTokens: undefined }, model: long })));
  await answer(longest, { input: 1_000, output: 10_000 });
  assert.equal(await world.balance(), usd('0.01'));
  await world.stop();
  assert.equal((await world.audit()).ok, true);
});

test('settle refused after the answer: a cost beyond hold and balance is posted in full, below zero', async () => {
  const world = await newWorld({ credit: '0.003' });
  const exchange = await entered(world);
  await answer(exchange, { input: 1_000, output: 350 });
  await world.stop();
  assert.equal(await world.balance(), parseUsd('-0.0025'));
  assert.equal((await world.audit()).ok, true);
});

test('double charge on retry: three attempts of one call are charged once, and each has its row', async () => {
  const world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  (await send(exchange)).result = 'refused';
  (await send(exchange)).result = 'unknown';
  await answer(exchange, { input: 1_000, output: 100 });
  await world.stop();
  assert.equal(await world.balance(), usd('0.997'));
  const tried = await world.rows(sql`select attempt->'number' as number, attempt->>'result' as result
      from ${world.table('calls')}, json_array_elements(${world.table('attempts_of')}(attempts, provider, target_model)) with ordinality as tried (attempt, place) order by place`);
  assert.deepEqual(
    tried,
    ['refused', 'unknown', 'answered'].map((result, index) => ({ number: index + 1, result })),
  );
});

test('a second end of the same exchange changes nothing', async () => {
  const world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  await answer(exchange, { input: 1_000, output: 100 });
  await exchange.end({ kind: 'client_left' });
  await world.stop();
  assert.equal(await world.balance(), usd('0.997'));
});

test('money that another process credits is available at the announcement, and at the latest for the next refused call', async () => {
  await using world = await newWorld({ credit: '0.001' });
  await refusal(enter(world, newCall()));
  const command = await newWorld({ credit: '1', schema: world.host.schema, directory: world.directory, idle: true });
  world.host.advance(1_000);
  await enter(world, newCall());
  await command.credit('1');
  await world.database.announce('account', 'alice');
  await world.tick('write the ledger');
  assert.equal(await world.balance(), usd('1.998'));
});

test('overdraft by race: of calls that wait for one read of the balance, as many are admitted as it covers', async () => {
  await using world = await newWorld({ credit: '0.001' });
  await refusal(enter(world, newCall()));
  const command = await newWorld({ schema: world.host.schema, directory: world.directory, idle: true });
  await command.credit('0.029');
  world.host.advance(1_000);
  const reply = await Promise.allSettled(Array.from({ length: 40 }, () => enter(world, newCall())));
  assert.equal(reply.filter(({ status }) => status === 'fulfilled').length, 10);
  assert.equal(await world.balance(), 0n);
});

test("cache overwrites balance: a batch keeps another process's credit, in the database and in memory", async () => {
  const world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  const command = await newWorld({ credit: '5', schema: world.host.schema, directory: world.directory, idle: true });
  await answer(exchange, { input: 1_000, output: 100 });
  await world.tick('write the ledger');
  assert.equal(await world.balance(), usd('5.997'));
  assert.equal(await command.balance(), usd('5.997'));
  await world.stop();
  assert.equal((await world.audit()).ok, true);
});

test('a credit whose announcement fails is valid all the same', async () => {
  await using world = await newWorld({ credit: '1' });
  await enter(world, newCall());
  await world.tick('write the ledger');
  world.database.announce = async () => assert.fail('nothing listens');
  assert.equal(await world.credit('1'), usd('1.997'));
  assert.equal(await world.balance(), usd('1.997'));
});

test('a reference credits once, ever; with another amount it is a conflict', async () => {
  const world = await newWorld();
  const book = world.host.get(ledger);
  const grant = { kind: 'payment', reason: 'invoice 7', reference: 'invoice-7' };
  const balances = await Promise.all([1, 2, 3].map(() => book.credit('alice', usd('2'), grant)));
  assert.deepEqual(balances, [usd('2'), usd('2'), usd('2')]);
  assert.equal((await refusal(book.credit('alice', usd('3'), grant))).status, 409);
  assert.equal((await refusal(book.credit('bob', usd('2'), grant))).status, 409);
  assert.equal((await refusal(book.credit('bob', parseUsd('-2'), { ...grant, reference: 'x' }))).status, 400);
  assert.equal(await world.balance(), usd('2'));
  await world.stop();
  assert.equal((await world.audit()).ok, true);
});

test('overflow to a credit: impossible counts never become money', async () => {
  const world = await newWorld({ credit: '1' });
  for (const output of [-5, Number.NaN, 1.5, Number.POSITIVE_INFINITY, 2 ** 60]) {
    const exchange = await entered(world);
    await answer(exchange, { input: 1_000, output });
  }
  await world.stop();
  assert.equal(await world.balance(), usd('0.99'));
  const rows = await world.rows(sql`select distinct cost::text, estimated from ${world.table('calls')}`);
  assert.deepEqual(rows, [{ cost: '2000000', estimated: true }]);
});

test('an absurd cost is charged as held, so that one answer cannot stop the ledger', async () => {
  const world = await newWorld({ credit: '20' });
  const facts = [[priceRatio, parseRatio('300')]] as [typeof priceRatio, unknown][];
  // Only so large a model makes so large a count possible.
  const exchange = await entered(world, {
    facts,
    call: { maxOutputTokens: undefined },
    model: { contextTokens: 10 ** 12 },
  });
  await answer(exchange, { input: 1_000, output: 900_000_000_000 });
  await world.stop();
  assert.equal(await world.balance(), usd('7.112'));
  const rows = await world.rows<{ reason: string }>(sql`select reason from ${world.table('calls')}`);
  assert.deepEqual(rows, [{ reason: 'absurd' }]);
  assert.equal((await world.audit()).ok, true);
});

test('zero usage replaced by an estimate: a reported 0 is charged as 0', async () => {
  await using world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  await answer(exchange, { input: 0, output: 0 });
  assert.equal(await world.balance(), usd('1'));
});

test('a call is refused before the plugin has started and after it has stopped', async () => {
  const world = await newWorld({ idle: true });
  assert.equal(world.part.health!.ready!(), false);
  assert.equal((await refusal(enter(world, newCall()))).status, 503);
  await world.part.lifecycle!.start!();
  assert.equal(world.part.health!.ready!(), true);
  await world.stop();
  assert.equal(world.part.health!.ready!(), false);
  assert.equal((await refusal(enter(world, newCall()))).status, 503);
});

test('idle accounts leave the memory, busy ones stay, and beyond the cap new ones are refused', async () => {
  const world = await newWorld({ section: { accounts: 2 } });
  for (const name of ['alice', 'bob', 'carol']) await world.credit('1', name);
  const held = await entered(world);
  const bob = await entered(world, { accountId: 'bob' });
  assert.equal((await refusal(enter(world, newCall({ accountId: 'carol' })))).status, 503);
  await answer(bob, { input: 1, output: 1 });
  await world.tick('write the ledger');
  world.host.advance(1);
  await enter(world, newCall({ accountId: 'carol' }));
  world.host.advance(600_000);
  await world.tick('forget idle accounts');
  await answer(held, { input: 1_000, output: 100 });
  await world.stop();
  assert.equal(await world.balance(), usd('0.997'));
  assert.equal(await world.balance('bob'), usd('0.999988'));
});

test('shutdown loses rows: the calls that ended last are in the database when stop returns', async () => {
  const world = await newWorld({ credit: '1' });
  const calls = Array.from({ length: 30 }, () => newCall());
  for (const exchange of calls) await enter(world, exchange);
  for (const exchange of calls) {
    exchange.set(attempts, []);
    await answer(exchange, { input: 1_000, output: 100 });
  }
  await world.stop();
  const [row] = await world.rows<{ count: number }>(sql`select count(*)::int as count from ${world.table('calls')}`);
  assert.equal(row!.count, 30);
  assert.equal(calls[0]!.find(usageReport)?.terminal, report({}).terminal);
  assert.equal(await world.balance(), usd('0.91'));
});
