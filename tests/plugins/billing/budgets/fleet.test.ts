/** What scopes may spend over a fleet: never passed by a hold, and no call is refused while all of its scopes have room. */
import assert from 'node:assert/strict';
import { after, before, mock, test } from 'node:test';
import { type Calendar, everyNames, periodOf } from '../../../../plugins/billing/budgets/calendar.ts';
import type { Scope } from '../../../../plugins/billing/budgets/scope.ts';
import { money } from '../../../../plugins/common/domain/money.ts';
import { fc } from '../../../helpers/properties.ts';
import { type Fate, Fleet } from './fleet-world.ts';

before(() => mock.timers.enable({ apis: ['setTimeout'] }));
after(() => mock.timers.reset());

const zones = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kathmandu', 'Australia/Lord_Howe'];
const calendar: fc.Arbitrary<Calendar> = fc.record({
  every: fc.constantFrom(...everyNames),
  zone: fc.constantFrom(...zones),
  first: fc.constantFrom(undefined, '2025-04-06', '2024-01-31'),
});
const ceiling = fc.record({ amount: fc.bigInt(1n, 3_000n), calendar });
const node = fc.nat(2);
const rush = fc.record({
  do: fc.constant('rush' as const),
  amounts: fc.array(fc.bigInt(1n, 300n), { minLength: 4, maxLength: 12 }),
});
const step = fc.oneof(
  { weight: 1, arbitrary: rush },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant('enter' as const), node, key: fc.nat(2), amount: fc.bigInt(0n, 400n) }),
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
  fc.array(ceiling, { minLength: 2, maxLength: 2 }),
  fc.array(step, { minLength: 20, maxLength: 50 }),
  async (size, ceilings, steps) => {
    const fleet = new Fleet(size);
    const [ofKey, ofAccount] = ceilings.map(({ amount, calendar }) => ({ amount: money(amount), calendar }));
    const account: Scope = { id: 'account', spending: { accountId: 'a' }, ...ofAccount! };
    const keys = [0, 1, 2].map(
      (key): Scope => ({ id: `key:${key}`, spending: { accountId: 'a', key: `${key}` }, ...ofKey! }),
    );
    for (const action of steps) {
      const at = 'node' in action ? fleet.nodes[action.node % size]! : undefined;
      const call = 'which' in action ? [...fleet.running][action.which] : undefined;
      if (action.do === 'wait') fleet.host.advance(action.ms);
      else if (action.do === 'rush') {
        const enterAt = (amount: bigint, index: number) =>
          fleet.enter(fleet.nodes[index % size]!, keys[0]!.spending, [keys[0]!, account], amount);
        await Promise.all(action.amounts.map(enterAt));
        for (const scope of [keys[0]!, account]) check(fleet, scope);
      } else if (action.do === 'crash') await fleet.crash(at!, action.isPowerCut);
      else if (action.do === 'fault') at!.fate = action.fate;
      else if (action.do === 'end' && call !== undefined) fleet.end(call, action.cost);
      else if (action.do === 'grow' && call?.share.covers(money(action.amount)) === true) {
        call.share.grow(money(action.amount));
        call.held += action.amount;
        for (const scope of call.scopes) check(fleet, scope);
      } else if (action.do === 'enter') {
        const scopes = [keys[action.key]!, account];
        // For so long a refusal is repeated without asking.
        fleet.host.advance(200);
        const entered = await fleet.enter(at!, keys[action.key]!.spending, scopes, action.amount);
        if (entered === 'unknown') continue;
        if (entered !== undefined) for (const scope of scopes) check(fleet, scope);
        else
          assert.ok(
            scopes.some((scope) => left(fleet, scope) < action.amount),
            'refused while all scopes have room',
          );
      }
    }
  },
);

function left(fleet: Fleet, { spending, amount, calendar }: Scope): bigint {
  const { start } = periodOf(calendar, fleet.host.clock.now());
  return amount - fleet.taken(spending, start).spent;
}

/** Nothing but settlements beyond their holds passes a ceiling. */
function check(fleet: Fleet, { id, spending, amount, calendar }: Scope): void {
  const { start } = periodOf(calendar, fleet.host.clock.now());
  const { spent, beyond } = fleet.taken(spending, start);
  assert.ok(spent <= amount + beyond, `${spent} of ${amount} are taken of ${id}, ${beyond} beyond holds`);
}

test('no scope is passed over a fleet with crashes and lost answers, and no call is refused while all scopes have room', async () => {
  await fc.assert(property, { numRuns: 400 });
});
