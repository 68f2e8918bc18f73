/** The limiter's arithmetic: what it admits, what it gives back, how long it makes wait. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Cost,
  decide,
  emptyGauge,
  type Gauge,
  remainingUnits,
  resetMs,
  settle,
} from '../../../plugins/rate-limit/decide.ts';
import { fc } from '../../helpers/properties.ts';

const minuteMs = 60_000;
const rate = (limit: number, units = 1, periodMs = minuteMs): Cost => ({ limit, periodMs, units });
const rateCost = fc.record({
  limit: fc.integer({ min: 1, max: 2_000_000 }),
  periodMs: fc.constantFrom(minuteMs, 86_400_000),
  units: fc.integer({ min: 0, max: 3_000_000 }),
});

/** Takes and answers the new gauge, or undefined when refused. */
function take(gauge: Gauge, nowMs: number, cost: Cost): Gauge | undefined {
  const decision = decide([gauge], nowMs, [cost]);
  return decision.refusedBy === -1 ? decision.gauges[0] : undefined;
}

/** A call that was admitted, and what it will have used. */
interface Running {
  readonly receipt: Gauge;
  readonly cost: Cost;
  readonly units: number;
}

const end = (gauge: Gauge, nowMs: number, { receipt, cost, units }: Running): Gauge =>
  settle(gauge, receipt, nowMs, cost, units);

test('a whole bucket admits exactly its limit at once, for any limit', () => {
  for (const limit of [1, 3, 7, 20, 59, 600, 997]) {
    let gauge: Gauge = emptyGauge;
    let admitted = 0;
    for (let next = take(gauge, 5, rate(limit)); next !== undefined; next = take(gauge, 5, rate(limit))) {
      gauge = next;
      admitted += 1;
    }
    assert.equal(admitted, limit);
  }
});

test('no window of any length admits more than the limit plus its drain', () => {
  const steps = fc.array(
    fc.record({ waitMs: fc.integer({ min: 0, max: 20_000 }), units: fc.integer({ min: 0, max: 60 }) }),
    {
      maxLength: 60,
    },
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 100 }), steps, (limit, trace) => {
      let gauge: Gauge = emptyGauge;
      let nowMs = 1_000;
      const admitted: { atMs: number; units: number }[] = [];
      for (const { waitMs, units } of trace) {
        nowMs += waitMs;
        const next = take(gauge, nowMs, rate(limit, units));
        if (next === undefined) continue;
        gauge = next;
        admitted.push({ atMs: nowMs, units: Math.min(units, limit) });
      }
      for (let from = 0; from < admitted.length; from++) {
        let sum = 0;
        for (let to = from; to < admitted.length; to++) {
          sum += admitted[to]!.units;
          const windowMs = admitted[to]!.atMs - admitted[from]!.atMs;
          assert.ok(sum * minuteMs <= limit * (minuteMs + windowMs), `${sum} units in ${windowMs} ms`);
        }
      }
    }),
  );
});

test('a steady caller at the limit is never refused', () => {
  let gauge: Gauge = emptyGauge;
  for (let nowMs = 0; nowMs < 10 * minuteMs; nowMs += 3_000) {
    const next = take(gauge, nowMs, rate(20));
    assert.ok(next !== undefined, `refused at ${nowMs} ms`);
    gauge = next;
  }
});

test('a refused cost is granted exactly after the wait of its refusal, and not a millisecond sooner', () => {
  const debts = fc.record({
    cost: rateCost,
    used: fc.integer({ min: 0, max: 2_000_000 }),
    nowMs: fc.integer({ min: 0, max: 1e9 }),
  });
  fc.assert(
    fc.property(debts, ({ cost, used, nowMs }) => {
      const gauge = take(emptyGauge, nowMs, { ...cost, units: used })!;
      const { refusedBy, retryAfterMs } = decide([gauge], nowMs, [cost]);
      if (refusedBy === -1) return assert.equal(retryAfterMs, 0);
      assert.ok(Number.isInteger(retryAfterMs) && retryAfterMs > 0);
      assert.ok(take(gauge, nowMs + retryAfterMs, cost) !== undefined, 'still refused after the wait');
      assert.ok(take(gauge, nowMs + retryAfterMs - 1, cost) === undefined, 'granted before the wait was over');
    }),
    { numRuns: 500 },
  );
});

test('all costs are granted or nothing is taken, and the longest wait is reported', () => {
  const buckets = fc.array(fc.tuple(rateCost, fc.integer({ min: 0, max: 2_000_000 })), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(buckets, fc.integer({ min: 0, max: 1e9 }), (list, nowMs) => {
      const costs = list.map(([cost]) => cost);
      const gauges = list.map(([cost, used]) => take(emptyGauge, nowMs, { ...cost, units: used })!);
      const decision = decide(gauges, nowMs, costs);
      const alone = costs.map((cost, index) => decide([gauges[index]!], nowMs, [cost]));
      const longest = Math.max(...alone.map(({ retryAfterMs }) => retryAfterMs));
      assert.equal(decision.retryAfterMs, longest);
      if (longest === 0) {
        assert.deepEqual(
          decision.gauges,
          alone.map(({ gauges: [gauge] }) => gauge),
        );
        return;
      }
      assert.equal(alone[decision.refusedBy]!.retryAfterMs, longest);
      assert.deepEqual(decision.gauges, gauges);
      const later = decide(gauges, nowMs + longest, costs);
      assert.equal(later.refusedBy, -1, 'after the longest wait everything is granted');
    }),
  );
});

test('the rest never grows by taking and never shrinks by waiting', () => {
  fc.assert(
    fc.property(rateCost, fc.integer({ min: 0, max: 2 * minuteMs }), (cost, waitMs) => {
      const gauge = take(emptyGauge, 0, cost)!;
      const before = remainingUnits(gauge, cost);
      assert.equal(before, cost.limit - Math.min(cost.units, cost.limit));
      const waited = decide([gauge], waitMs, [{ ...cost, units: 0 }]).gauges[0]!;
      assert.ok(remainingUnits(waited, cost) >= before);
      const again = take(waited, waitMs, { ...cost, units: 1 });
      if (again !== undefined) assert.equal(remainingUnits(again, cost), Math.max(0, remainingUnits(waited, cost) - 1));
      const whole = decide([gauge], resetMs(gauge, cost), [{ ...cost, units: 0 }]).gauges[0]!;
      assert.equal(remainingUnits(whole, cost), cost.limit);
    }),
  );
});

test('a cost above the whole bucket takes the whole bucket and is possible', () => {
  const gauge = take(emptyGauge, 0, rate(40_000, 1_000_000));
  assert.ok(gauge !== undefined);
  assert.equal(remainingUnits(gauge, rate(40_000)), 0);
  assert.equal(decide([gauge], 0, [rate(40_000, 1_000_000)]).retryAfterMs, minuteMs);
});

test('unused tokens are returned at once, and never more than were reserved', () => {
  fc.assert(
    fc.property(
      rateCost,
      fc.integer({ min: 0, max: 2_000_000 }),
      fc.integer({ min: 0, max: 2 * minuteMs }),
      (cost, used, ranMs) => {
        const reserved = take(emptyGauge, 0, cost)!;
        const returned = settle(reserved, reserved, ranMs, cost, used);
        const waited = decide([reserved], ranMs, [{ ...cost, units: 0 }]).gauges[0]!;
        const charged = Math.min(cost.units, cost.limit) * cost.periodMs;
        assert.ok(waited.debt - returned.debt <= charged, 'gave back more than was reserved');
        assert.ok(returned.debt >= 0);
        if (ranMs === 0) assert.equal(returned.debt, used * cost.periodMs, 'at once, the debt is what was used');
      },
    ),
  );
});

test('usage beyond the reservation is taken afterwards, below empty', () => {
  const cost = rate(1_000, 100);
  const reserved = take(emptyGauge, 0, cost)!;
  const gauge = settle(reserved, reserved, 0, cost, 1_600);
  assert.equal(remainingUnits(gauge, cost), 0);
  assert.equal(decide([gauge], 0, [rate(1_000, 400)]).retryAfterMs, minuteMs);
});

test('in any order of concurrent calls, no window of use exceeds the limit plus its drain', () => {
  const event = fc.record({
    waitMs: fc.integer({ min: 0, max: 40_000 }),
    reserve: fc.integer({ min: 0, max: 60 }),
    usedShare: fc.double({ min: 0, max: 1, noNaN: true }),
    endFirst: fc.nat({ max: 3 }),
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 60 }), fc.array(event, { maxLength: 50, size: 'max' }), (limit, trace) => {
      let gauge: Gauge = emptyGauge;
      let nowMs = 0;
      const used: { atMs: number; units: number }[] = [];
      const running: Running[] = [];
      for (const { waitMs, reserve, usedShare, endFirst } of trace) {
        nowMs += waitMs;
        for (const ended of running.splice(0, endFirst)) gauge = end(gauge, nowMs, ended);
        const next = take(gauge, nowMs, rate(limit, reserve));
        if (next === undefined) continue;
        gauge = next;
        const units = Math.floor(Math.min(reserve, limit) * usedShare);
        used.push({ atMs: nowMs, units });
        running.push({ receipt: gauge, cost: rate(limit, reserve), units });
      }
      for (let from = 0; from < used.length; from++) {
        let sum = 0;
        for (let to = from; to < used.length; to++) {
          sum += used[to]!.units;
          const windowMs = used[to]!.atMs - used[from]!.atMs;
          assert.ok(sum * minuteMs <= limit * (minuteMs + windowMs), `${sum} of ${limit} used in ${windowMs} ms`);
        }
      }
    }),
    { numRuns: 500 },
  );
});

test('an old call without usage does not return units that a younger call reserved', () => {
  const old = take(emptyGauge, 0, rate(6, 3))!;
  const younger = take(old, 23_260, rate(6, 5))!;
  const ended = settle(younger, old, 50_000, rate(6, 3), 0);
  assert.equal(take(ended, 50_000, rate(6, 6)), undefined, 'of the 5 units of the younger, 2.674 have drained at most');
  const both = settle(ended, younger, 50_000, rate(6, 5), 4);
  assert.equal(remainingUnits(both, rate(6)), 4, 'of its 4 used units, 2.674 have drained at most');
});

test('the debt is never less than if each call had reserved exactly its usage, in any overlap', () => {
  const event = fc.record({
    waitMs: fc.integer({ min: 0, max: 20_000 }),
    reserve: fc.integer({ min: 0, max: 30 }),
    usedShare: fc.double({ min: 0, max: 1.5, noNaN: true }),
    ends: fc.array(fc.nat({ max: 9 }), { maxLength: 3 }),
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 60 }), fc.array(event, { maxLength: 30, size: 'max' }), (limit, trace) => {
      let gauge: Gauge = emptyGauge;
      let nowMs = 0;
      const charges: { readonly atMs: number; units: number }[] = [];
      const running: (Running & { readonly charge: { units: number } })[] = [];
      for (const { waitMs, reserve, usedShare, ends } of trace) {
        nowMs += waitMs;
        for (const index of ends) {
          const [ended] = running.splice(index, 1);
          if (ended === undefined) continue;
          gauge = end(gauge, nowMs, ended);
          const excess = ended.units - ended.charge.units;
          if (excess > 0) charges.push({ atMs: nowMs, units: excess });
          else ended.charge.units = ended.units;
        }
        const cost = rate(limit, reserve);
        const next = take(gauge, nowMs, cost);
        if (next !== undefined) {
          gauge = next;
          const charge = { atMs: nowMs, units: Math.min(reserve, limit) };
          charges.push(charge);
          running.push({ receipt: gauge, cost, units: Math.floor(charge.units * usedShare), charge });
        }
        const atLeast = debtOf(charges, nowMs, limit);
        const { debt } = decide([gauge], nowMs, [rate(limit, 0)]).gauges[0]!;
        assert.ok(debt >= atLeast, `debt ${debt} at ${nowMs} ms, of which ${atLeast} is used or reserved`);
      }
    }),
    { numRuns: 500 },
  );
});

/** The bucket's debt had only these charges been made, each at its time. */
function debtOf(charges: readonly { atMs: number; units: number }[], nowMs: number, limit: number): number {
  let debt = 0;
  let atMs = 0;
  for (const charge of charges) {
    debt = Math.max(0, debt - (charge.atMs - atMs) * limit) + charge.units * minuteMs;
    atMs = charge.atMs;
  }
  return Math.max(0, debt - (nowMs - atMs) * limit);
}

test('a slow call without usage does not return units that have drained meanwhile', () => {
  const whole = rate(60, 60);
  const slow = take(emptyGauge, 0, whole)!;
  const second = take(slow, minuteMs, whole)!;
  const ended = settle(second, second, minuteMs, whole, 60);
  assert.equal(take(settle(ended, slow, minuteMs, whole, 0), minuteMs, rate(60)), undefined);
});

test('parallel calls share the drain: together they return all but that, the oldest first or the youngest', () => {
  const cost = rate(60, 10);
  const running: Running[] = [];
  let gauge: Gauge = emptyGauge;
  for (let index = 0; index < 6; index++) {
    gauge = take(gauge, 0, cost)!;
    running.push({ receipt: gauge, cost, units: 0 });
  }
  const left = (calls: readonly Running[]) => calls.reduce((rest, ended) => end(rest, 20_000, ended), gauge);
  assert.equal(remainingUnits(left(running), cost), 60);
  assert.equal(remainingUnits(left(running.toReversed()), cost), 60);
});

test('a long call returns all its undrained units, however many short ones ran meanwhile', () => {
  const long = take(emptyGauge, 0, rate(60, 40))!;
  let gauge = long;
  for (let nowMs = 0; nowMs < 10_000; nowMs += 100) {
    const short = take(gauge, nowMs, rate(60, 20))!;
    gauge = settle(short, short, nowMs, rate(60, 20), 0);
  }
  assert.equal(remainingUnits(gauge, rate(60)), 29);
  assert.equal(remainingUnits(settle(gauge, long, 10_000, rate(60, 40), 10), rate(60)), 60);
});

test('a receipt from before the bucket was empty returns nothing', () => {
  const before = take(emptyGauge, 0, rate(60, 30))!;
  const again = take(before, 30_000, rate(60, 20))!;
  assert.deepEqual(again, take(emptyGauge, 30_000, rate(60, 20)));
  assert.deepEqual(settle(again, before, 30_000, rate(60, 30), 0), again);
});

test('a raised limit keeps the units in use', () => {
  const gauge = take(emptyGauge, 0, rate(20, 15))!;
  assert.equal(remainingUnits(gauge, rate(600)), 585);
  assert.equal(remainingUnits(gauge, rate(10)), 0);
});
