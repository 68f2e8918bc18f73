/** Which grant pays what, what may be spent at a moment, and where periods begin and end. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  allocate,
  bindingWindow,
  type GrantBalance,
  lockedAt,
  type Spent,
} from '../../../plugins/billing/grants/balances.ts';
import { calendarAnchors, periodAt, periodNames, windowNames } from '../../../plugins/billing/grants/periods.ts';
import { money } from '../../../plugins/common/domain/money.ts';
import { fc } from '../../helpers/properties.ts';
import { NaiveAccount } from './pool-oracle.ts';

const hourMs = 3_600_000;
const amount = fc.bigInt(0n, 40n);
const limits = fc.record(
  { '5h': amount.map(money), day: amount.map(money), week: amount.map(money), month: amount.map(money) },
  { requiredKeys: [] },
);
const grantShape = fc.record({
  remaining: amount.map(money),
  expiresAfterHours: fc.nat(60),
  source: fc.option(fc.constantFrom('one', 'two'), { nil: undefined }),
});
const history = fc.record({
  grants: fc.uniqueArray(grantShape, { maxLength: 4, selector: ({ expiresAfterHours }) => expiresAfterHours }),
  limits: fc.tuple(limits, limits),
  charges: fc.array(fc.tuple(amount, fc.nat(50)), { maxLength: 12 }),
  wallet: fc.bigInt(-5n, 60n),
});

test('charges are allocated as in a naive account, and the locked amount is what that account could not spend', () => {
  fc.assert(
    fc.property(history, ({ grants: shapes, limits: bounds, charges, wallet: start }) => {
      const grants: GrantBalance[] = shapes.map(({ remaining, expiresAfterHours, source }, index) => ({
        grantId: `grant ${index}`,
        remaining,
        expiresAt: expiresAfterHours * hourMs,
        windows: source === undefined ? undefined : { source, anchor: 0, limits: bounds[source === 'one' ? 0 : 1] },
      }));
      const naive = new NaiveAccount();
      naive.wallet = start;
      naive.lots = grants.map((grant) => ({
        reference: grant.grantId,
        left: grant.remaining,
        expiresAt: grant.expiresAt,
        source: grant.windows?.source,
        anchor: 0,
        limits: grant.windows?.limits,
      }));
      const spent: Spent = new Map();
      let wallet: bigint = start;
      for (const [cost, hours] of charges) {
        const at = hours * hourMs;
        const drawn = allocate(grants, spent, wallet, cost, at).reduce((sum, each) => sum + each.amount, 0n);
        wallet -= cost - drawn;
        naive.spend(cost, at);
        assert.equal(wallet, naive.wallet);
        assert.deepEqual(
          grants.map(({ remaining }) => remaining),
          naive.lots.map(({ left }) => left),
        );
        const { locked } = lockedAt(grants, spent, at);
        assert.equal(naive.balance - locked, naive.spendable(at));
      }
    }),
    { numRuns: 500 },
  );
});

test('the locked amount stays so until the returned time', () => {
  fc.assert(
    fc.property(
      history,
      fc.nat(50),
      fc.double({ min: 0, max: 1, noNaN: true }),
      ({ grants: shapes, limits: bounds }, hours, part) => {
        const grants: GrantBalance[] = shapes.map(({ remaining, expiresAfterHours, source }, index) => ({
          grantId: `grant ${index}`,
          remaining,
          expiresAt: expiresAfterHours * hourMs,
          windows: source === undefined ? undefined : { source, anchor: 0, limits: bounds[0] },
        }));
        const { locked, start, end } = lockedAt(grants, new Map(), hours * hourMs);
        const [from, to] = [Math.max(start, 0), Math.min(end, 10 ** 12)];
        const other = Math.min(to - 1, Math.floor(from + part * (to - from)));
        assert.equal(lockedAt(grants, new Map(), other).locked, locked);
      },
    ),
  );
});

test('the first charge beyond a window goes to other money, and beyond all money back to the grant before a debt', () => {
  const grant: GrantBalance = {
    grantId: 'plan',
    remaining: money(100n),
    expiresAt: 48 * hourMs,
    windows: { source: 'plan', anchor: 0, limits: { '5h': money(10n), day: money(25n) } },
  };
  const spent: Spent = new Map();
  assert.deepEqual(
    allocate([grant], spent, 50n, 30n, 0).map((each) => each.amount),
    [10n],
  );
  assert.equal(grant.remaining, 90n);
  assert.deepEqual(lockedAt([grant], spent, hourMs), { locked: 90n, start: 0, end: 5 * hourMs });
  assert.equal(bindingWindow([grant], spent, hourMs)!.name, '5h');
  assert.deepEqual(
    allocate([grant], spent, 5n, 40n, 6 * hourMs).map((each) => each.amount),
    [35n],
  );
  assert.deepEqual([grant.remaining, bindingWindow([grant], spent, 11 * hourMs)!.name], [55n, 'day']);
  assert.deepEqual(
    allocate([grant], spent, 0n, 60n, 30 * hourMs).map((each) => each.amount),
    [55n],
  );
});

test('every moment is in one period of each name, and periods follow one another', () => {
  const time = fc.integer({ min: Date.UTC(1990, 0, 1), max: Date.UTC(2090, 0, 1) });
  fc.assert(
    fc.property(fc.constantFrom(...windowNames), time, time, (name, anchor, at) => {
      const { start, end } = periodAt(name, anchor, at);
      assert.ok(start <= at && at < end);
      assert.deepEqual(periodAt(name, anchor, start), { start, end });
      assert.deepEqual(periodAt(name, anchor, end - 1), { start, end });
      assert.equal(periodAt(name, anchor, end).start, end);
      if (name !== 'month') assert.equal(Math.abs((start - anchor) % (end - start)), 0);
    }),
    { numRuns: 1_000 },
  );
});

test('a month ends on the day on which it began, or on its last day', () => {
  const day = (text: string) => Date.parse(`${text}T10:00:00Z`);
  const ends = (anchor: string, at: string) =>
    new Date(periodAt('month', day(anchor), day(at)).end).toISOString().slice(0, 10);
  assert.equal(ends('2027-01-31', '2027-02-01'), '2027-02-28');
  assert.equal(ends('2027-01-31', '2027-02-28'), '2027-03-31');
  assert.equal(ends('2028-01-31', '2028-02-01'), '2028-02-29');
  assert.equal(ends('2027-01-15', '2026-12-20'), '2027-01-15');
});

test('periods of the calendar begin at midnight, on Mondays, on the first of a month', () => {
  const at = Date.UTC(2027, 4, 19, 13, 30);
  const starts = periodNames.map((name) => new Date(periodAt(name, calendarAnchors[name], at).start).toISOString());
  assert.deepEqual(starts, ['2027-05-19T00:00:00.000Z', '2027-05-17T00:00:00.000Z', '2027-05-01T00:00:00.000Z']);
});
