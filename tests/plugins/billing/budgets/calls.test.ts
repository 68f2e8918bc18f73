/** Budgets of calls in one process: earlier spending counts, the narrowest refuses first, streams and orders keep within them. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { GatewayError } from '../../../../core/contract/errors.ts';
import { type Caller, caller } from '../../../../plugins/common/domain/accounts.ts';
import { authorization, authorizations } from '../../../../plugins/common/domain/ledger.ts';
import { type FakeExchange, okAnswer } from '../../../helpers/fakes.ts';
import { answer, enter, leaveWorlds, meterOf, newCall, newWorld, send, type World } from '../world.ts';

after(leaveWorlds);

const alice: Caller = { accountId: 'alice', keyId: 'key-1', plan: 'free', models: undefined };
const person = '00000000-0000-4000-8000-000000000001';
const [search, evaluation] = ['00000000-0000-4000-8000-00000000000a', '00000000-0000-4000-8000-00000000000b'];
const inSearch: Caller = { ...alice, project: 'search', attribution: { person, project: search } };
const inEvaluation: Caller = { ...alice, keyId: 'key-2', project: 'eval', attribution: { project: evaluation } };

/** The call of `newCall` (a hold of 0.003 USD) by this caller. */
function callBy(who: Caller, more: Parameters<typeof newCall>[0] = {}): FakeExchange {
  return newCall({ ...more, facts: [[caller, who], ...(more.facts ?? [])] });
}

const worldWith = (budgets: readonly object[], section: object = {}) =>
  newWorld({ credit: '10', section: { budgets, ...section } });

async function refusal(promise: Promise<unknown>): Promise<GatewayError> {
  return promise.then(
    () => assert.fail('nothing was refused'),
    (error: unknown) => error as GatewayError,
  );
}

async function spend(world: World, who: Caller): Promise<void> {
  const exchange = callBy(who);
  await enter(world, exchange);
  await answer(exchange, { input: 1_000, output: 100 });
}

test('a call beyond a budget is refused with 402 that names the budget, its rest and the end of its period', async () => {
  await using world = await worldWith([
    { of: 'project', name: 'eval', amount: 0.005, every: 'day', zone: 'Europe/Berlin' },
  ]);
  await spend(world, inEvaluation);
  const error = await refusal(enter(world, callBy(inEvaluation)));
  assert.deepEqual([error.status, error.code, error.shouldRetry], [402, 'budget_reached', false]);
  assert.match(
    error.message,
    /budget of the project eval, 0\.005 USD a day, has 0\.002 USD left.* frees at 20\d\d-\d\d-\d\dT23:00:00/,
  );
  await enter(world, callBy(inSearch));
  assert.deepEqual((await world.audit()).violations, []);
});

test('all scopes of a call are held together or none, and the narrowest says that it is used up', async () => {
  await using world = await worldWith([
    { of: 'account', amount: 0.0119, every: 'month' },
    { of: 'person', amount: 0.0065, every: 'week' },
  ]);
  await enter(world, callBy(inSearch));
  await enter(world, callBy(inSearch));
  assert.match((await refusal(enter(world, callBy(inSearch)))).message, /budget of this person/);
  // What the account has left was not taken by the call that its person could not make.
  await enter(world, callBy(inEvaluation));
  assert.match(
    (await refusal(enter(world, callBy(inEvaluation)))).message,
    /budget of this account.* 0\.0029 USD left/,
  );
  assert.match((await refusal(enter(world, callBy(inSearch)))).message, /budget of this person/);
});

test('a new budget counts earlier charges of its period, also by calls that a crash cut off', async () => {
  const world = await worldWith([]);
  await spend(world, inSearch);
  const cut = callBy(inSearch);
  await enter(world, cut);
  await send(cut);
  const crashed = await world.crash();
  await crashed.stop();
  await using next = await newWorld({
    ...{ directory: crashed.directory, schema: crashed.database.schema },
    section: { budgets: [{ of: 'project', amount: 0.011, every: 'month' }] },
  });
  await spend(next, inSearch);
  await enter(next, callBy(inSearch));
  assert.equal((await refusal(enter(next, callBy(inSearch)))).code, 'budget_reached');
});

test('a budget of models counts calls of these alone, and each person has one where it says so', async () => {
  await using world = await worldWith([
    { of: 'models', models: ['test-*'], by: 'person', amount: 0.003, every: 'ever' },
  ]);
  await enter(world, callBy(inSearch));
  assert.match((await refusal(enter(world, callBy(inSearch)))).message, /budget of test-\* for this person/);
  const other = { ...inSearch, keyId: 'key-3', attribution: { person: person.replace(/1$/, '2') } };
  await enter(world, callBy(other));
  await enter(world, callBy(inEvaluation));
  await enter(world, callBy(inEvaluation));
  await enter(world, callBy(inSearch, { model: { id: 'plain' } }));
});

const tagged = (tag: string, who = alice): Caller => {
  const [name = '', value = ''] = tag.split('=');
  return {
    ...who,
    tags: new Map([
      ['team', 'x'],
      [name, value],
    ]),
  };
};

test('a budget of a tag counts calls with it by any key, those before it and those of a crash too, and no others', async () => {
  const world = await worldWith([]);
  await spend(world, tagged('env=dev'));
  await spend(world, tagged('env=prod'));
  const cut = callBy(tagged('env=dev', inSearch));
  await enter(world, cut);
  await send(cut);
  const crashed = await world.crash();
  await crashed.stop();
  await using next = await newWorld({
    ...{ directory: crashed.directory, schema: crashed.database.schema },
    section: { budgets: [{ of: 'tag', tag: 'env=dev', amount: 0.011, every: 'month' }] },
  });
  await spend(next, tagged('env=dev', inEvaluation));
  await enter(next, callBy(tagged('env=dev')));
  const error = await refusal(enter(next, callBy(tagged('env=dev'))));
  assert.equal(error.code, 'budget_reached');
  assert.match(error.message, /budget of the tag env=dev, 0\.011 USD a month/);
  for (const tag of ['env=devel', 'env=prod', 'envs=dev']) await enter(next, callBy(tagged(tag)));
  await enter(next, callBy(alice));
});

test('a budget of a tag counts each of its calls in an hour with more tags than have sums of their own', async () => {
  const budgets = [{ of: 'tag', tag: 'env=dev', amount: 0.007, every: 'day' }];
  await using world = await worldWith(budgets);
  for (let value = 0; value <= 200; value += 1) await spend(world, tagged(`env=v${value}`));
  await spend(world, tagged('env=dev'));
  const crashed = await world.crash();
  // The first one is not in the ledger yet, and is read from there.
  assert.equal((await crashed.audit()).ok, true);
  await spend(crashed, tagged('env=dev'));
  assert.equal((await refusal(enter(crashed, callBy(tagged('env=dev'))))).code, 'budget_reached');
});

test('a running answer is extended up to the narrowest of its budgets and no further', async () => {
  const budgets = [
    { of: 'account', amount: 5, every: 'day' },
    { of: 'person', amount: 0.01, every: 'day' },
  ];
  await using world = await worldWith(budgets, { hold: { output_tokens: 100 } });
  const exchange = callBy(inSearch, { call: { stream: true, maxOutputTokens: 100_000 } });
  await enter(world, exchange);
  Object.assign(await send(exchange), { result: 'answered', status: 200 });
  let seen = 0;
  while (meterOf(exchange).observe(seen + 10)) seen += 10;
  // 0.002 for the prompt, 0.008 for 800 tokens of answer.
  assert.equal(seen, 800);
  await exchange.end();
});

test('an order counts in its budgets from its placing to its end', async () => {
  await using world = await worldWith([{ of: 'project', amount: 0.005, every: 'year' }]);
  const call = callBy(inSearch);
  const later = { ...call, endpoint: { ...call.endpoint, deferred: true } } as FakeExchange;
  await world.part.handle!(later, async () => okAnswer);
  const placed = later.get(authorization);
  await placed.place(async () => {});
  assert.equal((await refusal(enter(world, callBy(inSearch)))).code, 'budget_reached');
  const given = { report: undefined, reason: 'cancelled', attempts: [] };
  await world.host.get(authorizations).end('alice', placed.id, async () => given);
  world.host.advance(1_000);
  await enter(world, callBy(inSearch));
});
