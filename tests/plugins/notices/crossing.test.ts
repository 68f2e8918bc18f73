/** Crossings of thresholds: which observed values are a notice, by an account of their own; and exact comparison. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isBeyond, judge, type SeenState } from '../../../plugins/notices/crossing.ts';
import { fc } from '../../helpers/properties.ts';

const below = { unit: 'usd', beyond: 'below' } as const;
const above = { unit: 'share', beyond: 'above' } as const;

test('a value at the threshold is beyond it for a share, and not for a balance', () => {
  const at = (value: bigint, of: bigint) => ({ value, of });
  const five = 5_000_000_000n;
  assert.equal(isBeyond(below, five, at(five, 1_000_000_000n)), false);
  assert.equal(isBeyond(below, five, at(five - 1n, 1_000_000_000n)), true);
  // A third of three billionths is less than 0.333333334 and more than 0.333333333 of it.
  assert.equal(isBeyond(above, 333_333_334n, at(1n, 3n)), false);
  assert.equal(isBeyond(above, 333_333_333n, at(1n, 3n)), true);
  assert.equal(isBeyond(above, 800_000_000n, at(4n, 5n)), true);
  assert.equal(isBeyond({ unit: 'none', beyond: 'above' }, 0n, at(0n, 1n)), true);
});

test('a notice is sent for each step from the good side to the other within a period, and for each period that is beyond', () => {
  const step = fc.record({ value: fc.bigInt({ min: 0n, max: 20n }), period: fc.integer({ min: 0, max: 3 }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.boolean(), (steps, isSilent) => {
      const kind = { ...below, first: isSilent ? ('silent' as const) : ('sent' as const) };
      const threshold = 10_000_000_000n;
      let state: SeenState | undefined;
      const sent: number[] = [];
      const periods = [...steps].map(({ period }) => period).sort((left, right) => left - right);
      const seen = steps.map(({ value }, at) => ({ value, of: 1n, period: String(periods[at]) }));
      for (const [at, one] of seen.entries()) {
        const judged = judge(kind, threshold, one, state);
        if (judged.isCrossing) sent.push(at);
        state = judged.state ?? state;
      }
      // Independently: bad where the value is below ten; a notice where the value before was good or of another period.
      const isBad = (at: number) => steps[at]!.value < 10n;
      const wanted = steps.flatMap((_, at) => {
        if (!isBad(at)) return [];
        if (at === 0) return isSilent ? [] : [at];
        return isBad(at - 1) && periods[at - 1] === periods[at] ? [] : [at];
      });
      assert.deepEqual(sent, wanted);
    }),
  );
});

test('nothing is stored for what stays as it was', () => {
  const kind = { ...above, first: 'sent' } as const;
  const seen = { value: 9n, of: 10n, period: 'a' };
  const { state } = judge(kind, 800_000_000n, seen, undefined);
  assert.deepEqual(state, { period: 'a', isBeyond: true });
  assert.deepEqual(judge(kind, 800_000_000n, seen, state), { state: undefined, isCrossing: false });
  assert.deepEqual(judge(kind, 800_000_000n, { ...seen, value: 1n }, undefined), {
    state: undefined,
    isCrossing: false,
  });
});
