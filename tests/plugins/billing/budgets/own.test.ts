/** Budgets of single accounts: set, changed and ended while calls run, and changed settings without a restart. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import type { GatewayError } from '../../../../core/contract/errors.ts';
import { periodOf } from '../../../../plugins/billing/budgets/calendar.ts';
import { budgetsSchema } from '../../../../plugins/billing/budgets/settings.ts';
import { type Caller, caller } from '../../../../plugins/common/domain/accounts.ts';
import { parseUsd } from '../../../../plugins/common/domain/money.ts';
import { type BudgetTerms, budgetAdmin } from '../../../../plugins/common/domain/organizations/budgets.ts';
import { answer, enter, leaveWorlds, meterOf, newCall, newWorld, send, type World } from '../world.ts';

after(leaveWorlds);

const person = '00000000-0000-4000-8000-000000000001';
const project = '00000000-0000-4000-8000-00000000000a';
const alice: Caller = { accountId: 'alice', keyId: 'key-1', plan: 'free', models: undefined };
const inSearch: Caller = { ...alice, project: 'search', attribution: { person, project } };
const ofAccount = (usd: string): BudgetTerms => ({ of: 'account', amount: parseUsd(usd), every: 'day' });

/** A call that holds 0.003 USD. */
const callBy = (who: Caller) => newCall({ facts: [[caller, who]] });

const worldWith = (section: object = {}) => newWorld({ credit: '10', section });
const adminOf = (world: World) => world.host.get(budgetAdmin);

/** undefined: it was admitted. */
async function refusalOf(world: World, who = inSearch): Promise<GatewayError | undefined> {
  return enter(world, callBy(who)).then(
    () => undefined,
    (error: unknown) => error as GatewayError,
  );
}

/** The process has read what was announced: no statement runs any more, and none has begun for some turns. */
async function heard({ faults }: World): Promise<void> {
  for (let turns = 0; turns < 20; turns += 1) {
    await turn();
    if ((faults.running ?? 0) > 0) turns = 0;
  }
}

test('a budget that is set while the process serves refuses the next call beyond it, and lets calls in again once it is raised or ended', async () => {
  await using world = await worldWith();
  const call = callBy(inSearch);
  await enter(world, call);
  await answer(call, { input: 1_000, output: 100 });
  const set = await adminOf(world).set('alice', 'owner', ofAccount('0.005'));
  await heard(world);
  const refused = await refusalOf(world);
  assert.equal(refused?.code, 'budget_reached');
  assert.match(refused.message, /budget of this account, 0\.005 USD a day, has 0\.002 USD left/);
  const raised = await adminOf(world).set('alice', 'owner', ofAccount('0.006'));
  assert.equal(raised.id, set.id);
  await heard(world);
  assert.equal(await refusalOf(world), undefined);
  assert.equal((await refusalOf(world))?.code, 'budget_reached');
  await adminOf(world).end('alice', 'owner', set.id!);
  await heard(world);
  assert.equal(await refusalOf(world), undefined);
  await assert.rejects(adminOf(world).end('alice', 'owner', set.id!), { kind: 'not_found' });
});

test('a call that runs when a budget is set counts in it from its end on, for its scopes alone', async () => {
  await using world = await worldWith();
  const running = callBy(inSearch);
  await enter(world, running);
  const set = (terms: BudgetTerms) => adminOf(world).set('alice', 'owner', terms);
  await set(ofAccount('0.0089'));
  await set({ of: 'person', subject: project, amount: parseUsd('0.0031'), every: 'day' });
  await heard(world);
  const other = { ...inSearch, attribution: { person: project } };
  // Both have read what was spent before the first one ends.
  assert.equal(await refusalOf(world, other), undefined);
  await answer(running, { input: 1_000, output: 100 });
  assert.match((await refusalOf(world))!.message, /budget of this account, 0\.0089 USD a day, has 0\.0029 USD left/);
  await adminOf(world).set('alice', 'owner', ofAccount('1'));
  await heard(world);
  assert.match((await refusalOf(world, other))!.message, /budget of this person.* 0\.0001 USD left/);
});

test('a budget of a project, lowered below its spending, ends a running answer at its hold and refuses calls of this project alone', async () => {
  await using world = await worldWith({ hold: { output_tokens: 100 } });
  const terms: BudgetTerms = { of: 'project', subject: project, amount: parseUsd('1'), every: 'month' };
  await adminOf(world).set('alice', 'operator', terms);
  const call = newCall({ facts: [[caller, inSearch]], call: { stream: true, maxOutputTokens: 100_000 } });
  await enter(world, call);
  Object.assign(await send(call), { result: 'answered', status: 200 });
  assert.equal(meterOf(call).observe(200), true);
  await adminOf(world).set('alice', 'operator', { ...terms, amount: parseUsd('0.001') });
  await heard(world);
  assert.equal(meterOf(call).observe(400), false);
  await call.end();
  assert.match((await refusalOf(world))!.message, /budget of the project search, 0\.001 USD a month/);
  assert.equal(await refusalOf(world, { ...inSearch, attribution: { person, project: person } }), undefined);
});

test("an operator's budget of an account stands before the settings' for the same calls, and an owner's is held beside both", async () => {
  await using world = await worldWith({ budgets: [{ of: 'account', amount: 0.003, every: 'day' }] });
  await adminOf(world).set('alice', 'operator', ofAccount('0.009'));
  await adminOf(world).set('alice', 'owner', ofAccount('1'));
  assert.equal(await refusalOf(world), undefined);
  assert.equal(await refusalOf(world), undefined);
  await adminOf(world).set('alice', 'owner', ofAccount('0.006'));
  await heard(world);
  assert.match((await refusalOf(world))!.message, /0\.006 USD a day/);
  await adminOf(world).set('alice', 'owner', ofAccount('1'));
  await heard(world);
  assert.equal(await refusalOf(world), undefined);
  assert.match((await refusalOf(world))!.message, /0\.009 USD a day/);
  await world.credit('10', 'bob');
  const bob = { ...alice, accountId: 'bob', keyId: 'key-2' };
  assert.equal(await refusalOf(world, bob), undefined);
  assert.match((await refusalOf(world, bob))!.message, /0\.003 USD a day/);
});

test('changed settings are in force for the next call, and a budget that they no longer have refuses nothing', async () => {
  await using world = await worldWith({ budgets: [{ of: 'person', amount: 0.003, every: 'week' }] });
  assert.equal(await refusalOf(world), undefined);
  assert.equal((await refusalOf(world))?.code, 'budget_reached');
  const reload = (budgets: readonly object[]) => {
    const parsed = budgetsSchema.parse(budgets);
    const { hold } = { hold: { output_tokens: 4096, non_streaming: 'estimate' } };
    return world.part.reload!.prepare!({ hold, budgets: parsed, accounts: 100 } as never);
  };
  for (const [amount, expected] of [
    [0.006, undefined],
    [0.004, 'budget_reached'],
  ] as const) {
    const commit = await reload([{ of: 'person', amount, every: 'week' }]);
    commit();
    assert.equal((await refusalOf(world))?.code, expected);
  }
  (await reload([]))();
  assert.equal(await refusalOf(world), undefined);
});

test('budgets in force are listed with their spending, and terms that count nothing are refused by field', async () => {
  await using world = await worldWith({ budgets: [{ of: 'person', amount: 2, every: 'month' }] });
  const call = callBy(inSearch);
  await enter(world, call);
  await answer(call, { input: 1_000, output: 100 });
  await world.tick('write the ledger');
  await adminOf(world).set('alice', 'owner', { of: 'key', subject: 'key-1', amount: parseUsd('1'), every: 'ever' });
  const listed = await adminOf(world).list('alice');
  assert.deepEqual(
    listed.map(({ of, authority, states }) => [of, authority, ...states.map(({ subject, spent }) => [subject, spent])]),
    [
      ['person', undefined, [person, parseUsd('0.003')]],
      ['key', 'owner', ['key-1', parseUsd('0.003')]],
    ],
  );
  const refused = async (terms: object) =>
    adminOf(world)
      .set('alice', 'owner', { ...ofAccount('1'), ...terms })
      .then(
        () => undefined,
        (error: unknown) => (error as GatewayError).field,
      );
  assert.equal(await refused({ zone: 'Mars/Olympus' }), 'zone');
  assert.equal(await refused({ of: 'models' }), 'models');
  assert.equal(await refused({ of: 'key' }), 'subject');
  assert.equal(await refused({ subject: project }), 'subject');
  assert.equal(await refused({ first: '2026-02-30' }), 'first');
  await world.rows(
    sql`insert into ${world.table('budgets')} (account_id, id, authority, counts, digest, amount)
        select 'alice', gen_random_uuid(), 'owner', '{}', number::text, 1 from generate_series(1, 99) as number`,
  );
  assert.equal(await refused({}), 'of');
});

test('an account of which the budgets cannot be read is asked to wait, and lost announcements are caught up', async () => {
  await using world = await worldWith();
  await adminOf(world).set('alice', 'owner', ofAccount('0.003'));
  world.faults.down = true;
  assert.equal((await refusalOf(world))?.code, 'budget_unavailable');
  world.faults.down = false;
  assert.equal(await refusalOf(world), undefined);
  await world.rows(sql`update ${world.table('budgets')} set amount = 6000000, changed_at = clock_timestamp()`);
  for (let second = 0; second < 30; second += 1) await world.tick('read changed budgets');
  await heard(world);
  assert.equal(await refusalOf(world), undefined);
});

test('an addition to a budget counts at once in this period and not in the next one', async () => {
  await using world = await worldWith({ budgets: [{ of: 'account', amount: 0.003, every: 'day' }] });
  assert.equal(await refusalOf(world), undefined);
  assert.equal((await refusalOf(world))?.code, 'budget_reached');
  const [listed] = await adminOf(world).list('alice');
  const { scope } = listed!.states[0]!;
  const addition = { scope, amount: parseUsd('0.003'), reason: 'a demonstration' };
  await assert.rejects(adminOf(world).add('alice', 'owner', addition), { kind: 'not_found' });
  await assert.rejects(adminOf(world).add('alice', 'operator', { ...addition, reason: ' ' }), { field: 'reason' });
  const added = await adminOf(world).add('alice', 'operator', addition);
  assert.equal(added.states[0]!.ceiling, parseUsd('0.006'));
  await heard(world);
  assert.equal(await refusalOf(world), undefined);
  assert.match((await refusalOf(world))!.message, /budget of this account, 0\.006 USD a day/);
  // Both calls still run, and hold in the next day what is all of its ceiling and more.
  world.host.jump(86_400_000);
  assert.match((await refusalOf(world))!.message, /budget of this account, 0\.003 USD a day, has 0\.00 USD left/);
});

test('a budget that is not hard refuses nothing, and is found with each share that is passed', async () => {
  await using world = await worldWith({
    budgets: [
      { of: 'account', amount: 0.002, every: 'day', hard: false },
      { of: 'person', amount: 0.006, every: 'day', warn: [0.5, 0.8] },
    ],
  });
  assert.deepEqual((await adminOf(world).warnings(['alice'])).get('alice'), []);
  const call = callBy(inSearch);
  await enter(world, call);
  await answer(call, { input: 1_000, output: 100 });
  await world.tick('write the ledger');
  const warned = (await adminOf(world).warnings(['alice'])).get('alice')!;
  const shown = ({ rule, share, subject }: (typeof warned)[number]) => [rule.of, share, subject];
  assert.deepEqual(warned.map(shown).sort(), [
    ['account', 1, undefined],
    ['person', 0.5, person],
  ]);
  assert.equal(await refusalOf(world), undefined);
});

/** A zone in which it is midnight so many hours from now. */
function zoneWithMidnightIn(world: World, hours: number): string {
  const ahead = (24 - new Date(world.host.clock.now() + hours * 3_600_000).getUTCHours()) % 24;
  return ahead <= 12 ? `Etc/GMT-${ahead}` : `Etc/GMT+${24 - ahead}`;
}

test('another time zone of an account moves the days of its budgets and caps at once, with their spending and additions, and back again', async () => {
  const cap = { amount: parseUsd('0.0061'), every: 'day' } as const;
  await using world = await worldWith({
    budgets: [
      { of: 'account', amount: 0.003, every: 'day' },
      { of: 'person', amount: 0.0062, every: 'day', zone: 'UTC' },
    ],
  });
  const capped = { ...inSearch, keyId: 'key-5', cap };
  const spend = async (who: Caller) => {
    const call = callBy(who);
    await enter(world, call);
    await answer(call, { input: 1_000, output: 100 });
  };
  const stateOf = async () => (await adminOf(world).list('alice')).find(({ of }) => of === 'account')!.states[0]!;
  const add = async () =>
    adminOf(world).add('alice', 'operator', {
      scope: (await stateOf()).scope,
      amount: parseUsd('0.003'),
      reason: 'more',
    });
  // The day of UTC has long begun, and does not end soon.
  world.host.jump(86_400_000 - (world.host.clock.now() % 86_400_000) + 8 * 3_600_000);
  await spend(capped);
  await add();
  await heard(world);
  await spend(capped);
  assert.match((await refusalOf(world, alice))!.message, /budget of this account, 0\.006 USD a day/);
  world.host.jump(3 * 3_600_000);
  const before = (await stateOf()).scope;
  const zone = zoneWithMidnightIn(world, -2);
  await adminOf(world).setZone('alice', zone);
  await heard(world);
  const state = await stateOf();
  const { start, end } = periodOf({ every: 'day', zone }, world.host.clock.now());
  assert.deepEqual([state.scope, state.from, state.until, state.spent], [before, start, end, 0n]);
  // A day that began two hours ago has nothing of what was spent and added before; that of the person is the one of UTC.
  assert.equal(state.ceiling, parseUsd('0.003'));
  assert.match((await refusalOf(world))!.message, /budget of this person, 0\.0062 USD a day, has 0\.0002 USD left/);
  const stranger = { ...capped, attribution: {} };
  assert.equal(await refusalOf(world, stranger), undefined);
  assert.match((await refusalOf(world, stranger))!.message, /budget of this account, 0\.003 USD a day/);
  await adminOf(world).setZone('alice', undefined);
  await heard(world);
  assert.equal((await stateOf()).ceiling, parseUsd('0.006'));
  assert.match((await refusalOf(world, stranger))!.message, /spend cap, 0\.0061 USD a day/);
  await assert.rejects(adminOf(world).setZone('alice', 'Mars/Olympus'), { field: 'zone' });
});
