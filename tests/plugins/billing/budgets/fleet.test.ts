/** What scopes may spend over a fleet: never passed by a hold, and no call is refused while all of its scopes have room. */
import assert from 'node:assert/strict';
import { after, before, mock, test } from 'node:test';
import { BudgetBook } from '../../../../plugins/billing/budgets/book.ts';
import { type Calendar, periodOf } from '../../../../plugins/billing/budgets/calendar.ts';
import { type Scope, scopeOfKey } from '../../../../plugins/billing/budgets/scope.ts';
import { type Budget, budgetsSchema } from '../../../../plugins/billing/budgets/settings.ts';
import { Tally } from '../../../../plugins/billing/budgets/tally.ts';
import type { LedgerQueries } from '../../../../plugins/common/domain/admin/ledger.ts';
import { money } from '../../../../plugins/common/domain/money.ts';
import { budgetPeriods } from '../../../../plugins/common/domain/organizations/budgets.ts';
import { capSpend } from '../../../../plugins/common/kit/money/cap-spend.ts';
import { fc } from '../../../helpers/properties.ts';
import { type Call, type Fate, Fleet, type FleetNode, type Running } from './fleet-world.ts';

before(() => mock.timers.enable({ apis: ['setTimeout'] }));
after(() => mock.timers.reset());

const zones = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kathmandu', 'Australia/Lord_Howe'];
const calendar: fc.Arbitrary<Calendar> = fc.record({
  every: fc.constantFrom(...budgetPeriods),
  zone: fc.constantFrom(undefined, ...zones),
  first: fc.constantFrom(undefined, '2025-04-06', '2024-01-31'),
});
const ceiling = fc.record({ amount: fc.bigInt(1n, 3_000n), calendar });

/** Two of a person's keys in one project, one of theirs in another, and a service's. */
const keys = [
  { keyId: 'k0', project: 'x', attribution: { person: 'p', project: 'x' }, tags: new Map([['env', 'dev']]) },
  { keyId: 'k1', project: 'x', attribution: { person: 'p', project: 'x' } },
  { keyId: 'k2', project: 'y', attribution: { person: 'p', project: 'y' } },
  { keyId: 'k3', project: 'x', attribution: { project: 'x' }, tags: new Map([['env', 'dev']]) },
];
const models = ['dear-1', 'dear-2', 'plain'];
/** Budgets of five kinds, and the cap of each key. */
const kinds = [
  { of: 'account' },
  { of: 'project' },
  { of: 'person' },
  { of: 'models', models: ['dear-*'], by: 'person' },
  { of: 'tag', tag: 'env=dev' },
];

function callOf(index: number): Call {
  const { keyId, attribution, tags } = keys[index % keys.length]!;
  const tag = tags && 'env=dev';
  return { accountId: 'a', key: keyId, ...attribution, tag, model: models[index % models.length]! };
}
const node = fc.nat(2);
const rush = fc.record({
  do: fc.constant('rush' as const),
  amounts: fc.array(fc.bigInt(1n, 300n), { minLength: 4, maxLength: 12 }),
});
const step = fc.oneof(
  { weight: 1, arbitrary: rush },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant('enter' as const), node, key: fc.nat(11), amount: fc.bigInt(0n, 400n) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('end' as const), which: fc.nat(20), cost: fc.bigInt(0n, 500n) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('grow' as const), which: fc.nat(20), amount: fc.bigInt(1n, 300n) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      ms: fc.constantFrom(300, 7_000, 86_400_000 / 3, 9 * 86_400_000),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('change' as const),
      kind: fc.nat(kinds.length - 1),
      amount: fc.bigInt(0n, 3_000n),
      heard: fc.nat(7),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('zone' as const), zone: fc.constantFrom(...zones) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('hear' as const), node }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const), node, isPowerCut: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('fault' as const),
      node,
      fate: fc.constantFrom<Fate>('refused', 'unanswered'),
    }),
  },
);

const property = fc.asyncProperty(
  fc.integer({ min: 1, max: 3 }),
  fc.array(ceiling, { minLength: kinds.length + 1, maxLength: kinds.length + 1 }),
  fc.array(step, { minLength: 20, maxLength: 50 }),
  async (size, ceilings, steps) => {
    const fleet = new Fleet(size);
    const budgets = kinds.map((kind, index) => ({ ...kind, ...flat(ceilings[index]!) }) as unknown as Budget);
    const known = fleet.nodes.map(() => new BudgetBook(budgets));
    /** A node that has not heard of a change yet goes on by the old ceiling. */
    const hear = (index: number) => {
      known[index]!.change(budgets);
      fleet.nodes[index]!.tallies.revise((scope) => known[index]!.revised(scope));
    };
    const check = (scope: Scope) => checkCeiling(fleet, scope, known);
    const { every } = ceilings.at(-1)!.calendar;
    const cap = {
      amount: money(ceilings.at(-1)!.amount),
      every: every === 'quarter' || every === 'year' ? 'ever' : every,
    };
    const scopesOf = (call: Call, index: number) => {
      const key = keys.find(({ keyId }) => keyId === call.key)!;
      return known[index]!.scopesOf({ accountId: 'a', ...key, cap }, call);
    };
    for (const action of steps) {
      const at = 'node' in action ? fleet.nodes[action.node % size]! : undefined;
      const call = 'which' in action ? [...fleet.running][action.which] : undefined;
      if (action.do === 'wait') fleet.host.advance(action.ms);
      else if (action.do === 'rush') {
        const enterAt = (amount: bigint, index: number) =>
          fleet.enter(fleet.nodes[index % size]!, callOf(index), scopesOf(callOf(index), index % size), amount);
        const entered = await Promise.all(action.amounts.map(enterAt));
        for (const each of entered) if (typeof each === 'object') for (const scope of each.scopes) check(scope);
      } else if (action.do === 'change') {
        budgets[action.kind] = { ...budgets[action.kind]!, amount: money(action.amount) };
        for (const index of fleet.nodes.keys()) if ((action.heard & (1 << index)) !== 0) hear(index);
      } else if (action.do === 'zone') {
        // What running answers take of the shares that they have is beyond what a period that began earlier has left.
        for (const each of fleet.running) fleet.end(each, each.held);
        for (const [index, { tallies }] of fleet.nodes.entries()) {
          known[index]!.put('a', { rules: [], additions: new Map(), zone: action.zone });
          tallies.revise((scope) => known[index]!.revised(scope), 'a');
        }
      } else if (action.do === 'hear') hear(action.node % size);
      else if (action.do === 'crash') await fleet.crash(at!, action.isPowerCut);
      else if (action.do === 'fault') at!.fate = action.fate;
      else if (action.do === 'end' && call !== undefined) fleet.end(call, action.cost);
      else if (action.do === 'grow' && call?.share.covers(money(action.amount)) === true) {
        call.share.grow(money(action.amount));
        call.held += action.amount;
        for (const scope of call.scopes) check(scope);
      } else if (action.do === 'enter') {
        const scopes = scopesOf(callOf(action.key), action.node % size);
        // For so long a refusal is repeated without asking.
        fleet.host.advance(200);
        const entered = await fleet.enter(at!, callOf(action.key), scopes, action.amount);
        if (entered === 'unknown') continue;
        if (entered !== undefined) for (const scope of action.amount === 0n ? [] : scopes) check(scope);
        else
          assert.ok(
            scopes.some((scope) => left(fleet, scope) < action.amount),
            'refused while all scopes have room',
          );
      }
    }
  },
);

const flat = ({ amount, calendar }: { readonly amount: bigint; readonly calendar: Calendar }) => ({
  amount,
  ...calendar,
});

function left(fleet: Fleet, { spending, amount, calendar }: Scope): bigint {
  const { start } = periodOf(calendar, fleet.host.clock.now());
  return amount - fleet.taken(spending, start).spent;
}

/** Nothing but settlements beyond their holds passes a ceiling, and what was held when it was lowered. */
function checkCeiling(fleet: Fleet, scope: Scope, known: readonly BudgetBook[]): void {
  const { id, spending, calendar } = scope;
  const { start } = periodOf(calendar, fleet.host.clock.now());
  const { spent, beyond } = fleet.taken(spending, start);
  const amount = known.reduce((most, book) => {
    const { amount } = book.revised(scope)!;
    return amount > most ? amount : most;
  }, money(0n));
  assert.ok(spent <= amount + beyond, `${spent} of ${amount} are taken of ${id}, ${beyond} beyond holds`);
}

test('no scope is passed over a fleet with crashes and lost answers, and no call is refused while all scopes have room', async () => {
  await fc.assert(property, { numRuns: 400 });
});

const ceilingOf = (amount: bigint) => {
  const book = new BudgetBook([{ of: 'account', amount: money(amount), every: 'ever' }]);
  return { book, scopes: book.scopesOf({ accountId: 'a', keyId: 'k0' }, { model: 'plain' }) };
};

test('a running answer takes nothing beyond a ceiling that was lowered, before the database has answered', async () => {
  const fleet = new Fleet(1);
  const { book, scopes } = ceilingOf(1_000n);
  const running = (await fleet.enter(fleet.nodes[0]!, callOf(0), scopes, 100n)) as Running;
  assert.equal(running.share.covers(money(900n)), true);
  book.change([{ of: 'account', amount: money(500n), every: 'ever' }]);
  fleet.nodes[0]!.tallies.revise((scope) => book.revised(scope));
  assert.deepEqual([running.share.covers(money(401n)), running.share.covers(money(400n))], [false, true]);
});

test('a refused call is admitted at once when calls have ended here, or another process has returned something', async () => {
  for (const isHere of [true, false]) {
    const fleet = new Fleet(3);
    const { scopes } = ceilingOf(1_000n);
    const [here, there, third] = fleet.nodes;
    const enter = (node: FleetNode | undefined, amount: bigint) => fleet.enter(node!, callOf(0), scopes, amount);
    const running = [(await enter(here, 300n)) as Running, (await enter(there, 500n)) as Running];
    assert.equal(await enter(here, 250n), undefined);
    fleet.end(running[isHere ? 0 : 1]!, 0n);
    fleet.host.advance(1);
    // Who asks lets the others return what they do not need, and say so to all.
    if (!isHere) assert.notEqual(await enter(third, 300n), undefined);
    const admitted = await enter(here, isHere ? 400n : 300n);
    assert.notEqual(admitted, undefined, isHere ? 'the end was here' : 'another process has returned something');
  }
});

test('a call is admitted when the answers about all of its budgets, each in time, have together taken longer than a refusal', async () => {
  const fleet = new Fleet(1);
  const take = fleet.shares.take.bind(fleet.shares);
  fleet.shares.take = (...asked) => {
    fleet.host.advance(2_000);
    return take(...asked);
  };
  const book = new BudgetBook(kinds.map((kind) => ({ ...kind, amount: money(1_000n), every: 'ever' as const })) as []);
  const scopes = book.scopesOf({ accountId: 'a', ...keys[0]! }, { model: 'dear-1' });
  assert.equal(scopes.length, kinds.length);
  assert.equal(typeof (await fleet.enter(fleet.nodes[0]!, callOf(0), scopes, 10n)), 'object');
});

test('money that a call releases while a share is asked for is not returned, since a power cut can take its end', async () => {
  const fleet = new Fleet(2);
  const { scopes } = ceilingOf(1_000n);
  const [first, second] = fleet.nodes;
  const running = (await fleet.enter(first!, callOf(0), scopes, 400n)) as Running;
  first!.tallies.wanted(`n1 ${scopes[0]!.key}`);
  // The request is under way, and this end is not in the ledger.
  await Promise.resolve().then(() => Promise.resolve());
  fleet.end(running, 0n);
  for (let turns = 0; turns < 8; turns += 1) await new Promise(setImmediate);
  await fleet.enter(second!, callOf(0), scopes, 700n);
  await fleet.crash(first!, true);
  checkCeiling(fleet, scopes[0]!, [ceilingOf(1_000n).book]);
});

test('budgets are found by person, project and model, the narrowest first; a named project has its own', () => {
  const budgets = budgetsSchema.parse([
    { of: 'account', amount: 9, every: 'month' },
    { of: 'project', amount: 5, every: 'month' },
    { of: 'project', name: 'x', amount: 7, every: 'month' },
    { of: 'person', amount: 3, every: 'week' },
    { of: 'models', models: ['dear-*'], amount: 2, every: 'day' },
  ]);
  const found = (identity: object, model: string) =>
    new BudgetBook(budgets).scopesOf({ accountId: 'a', keyId: 'k', ...identity }, { model }).map(({ name }) => name);
  assert.deepEqual(found(keys[0]!, 'dear-1'), ['of dear-*', 'of this person', 'of the project x', 'of this account']);
  assert.deepEqual(found(keys[3]!, 'plain'), ['of the project x', 'of this account']);
  assert.deepEqual(found({}, 'plain'), ['of this account']);
  const ofX = new BudgetBook(budgets).scopesOf({ accountId: 'a', ...keys[3]! }, { model: 'plain' })[0]!;
  assert.equal(ofX.amount, 7_000_000_000n);
});

test('where one process spends all, the end of a call counts in its period although no call has come in that before', () => {
  const tally = new Tally(scopeOfKey('a', 'k', { amount: money(100n), every: 'month' }, undefined), undefined);
  const february = Date.parse('2027-02-01T00:00:00Z');
  const all = money(100n);
  tally.roll(february - 1);
  tally.answered(tally.request(0), { amount: all, rest: all, elsewhere: money(0n), ordered: money(0n) }, 0);
  tally.take(money(60n), 0);
  tally.end(money(60n), money(60n), february);
  tally.roll(february + 1);
  assert.equal(tally.left, 40n);
});

test('budgets that count the same, zones that are none and tags without a value are refused', () => {
  const budget = { of: 'account', amount: 9, every: 'month' };
  const refused = (given: unknown) =>
    budgetsSchema
      .safeParse(given)
      .error?.issues.map(({ message }) => message)
      .join();
  assert.match(refused([budget, { ...budget, amount: 5 }])!, /counts the same calls/);
  assert.match(refused([{ ...budget, zone: '+02:00' }])!, /time zone/);
  assert.match(refused([{ ...budget, first: '2026-02-30' }])!, /a day such as/);
  assert.equal(refused([{ ...budget, of: 'tag', tag: 'env=dev' }]), undefined);
  assert.match(refused([{ ...budget, of: 'tag', tag: 'env' }])!, /a tag with its value/);
  assert.match(refused([{ ...budget, tag: 'env=dev' }])!, /must be named for budgets of a tag, and for no others/);
});

test('the spending of a key is shown for the period that its cap is held to, in any zone', async () => {
  const instant = fc.date({ min: new Date('2020-01-01'), max: new Date('2040-01-01'), noInvalidDate: true });
  const every = fc.constantFrom('day', 'week', 'month', 'ever');
  const shown = fc.asyncProperty(instant, every, fc.constantFrom(undefined, ...zones), async (at, period, zone) => {
    const key = { keyId: 'k', cap: { amount: money(1n), every: period } };
    const queries = { spend: async () => [] } as unknown as LedgerQueries;
    const [found] = await capSpend(queries, 'a', [key], { now: at.getTime(), zone });
    assert.equal(found!.from, periodOf({ every: period, zone }, at.getTime()).start);
  });
  await fc.assert(shown, { numRuns: 300 });
});

test('periods begin with the days of their zone, of 23 and 25 hours too, and with a first day', () => {
  const at = (text: string) => Date.parse(text);
  const starts = (given: Calendar, instant: string) => {
    const { start, end } = periodOf(given, at(instant));
    return [new Date(start).toISOString(), (end - start) / 3_600_000];
  };
  const zone = 'Europe/Berlin';
  assert.deepEqual(starts({ every: 'day', zone }, '2026-03-29T12:00:00Z'), ['2026-03-28T23:00:00.000Z', 23]);
  assert.deepEqual(starts({ every: 'day', zone }, '2026-10-25T12:00:00Z'), ['2026-10-24T22:00:00.000Z', 25]);
  assert.deepEqual(starts({ every: 'week' }, '2026-11-29T12:00:00Z'), ['2026-11-23T00:00:00.000Z', 168]);
  assert.deepEqual(
    starts({ every: 'year', first: '2025-04-06' }, '2026-04-05T12:00:00Z')[0],
    '2025-04-06T00:00:00.000Z',
  );
  assert.deepEqual(
    starts({ every: 'month', first: '2024-01-31' }, '2026-02-28T12:00:00Z')[0],
    '2026-02-28T00:00:00.000Z',
  );
  assert.deepEqual(starts({ every: 'quarter' }, '2026-06-30T23:59:59Z'), ['2026-04-01T00:00:00.000Z', 91 * 24]);
});
