/** What a chart draws: an axis that people would write, labels that fit, and no line through times without a value. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  endsOf,
  heightOf,
  labelled,
  runsOf,
  stackOf,
  stepsTo,
} from '../../../../plugins/console/web/src/parts/chart-scale.ts';
import { countText, pointText } from '../../../../plugins/console/web/src/parts/format.ts';
import { fc } from '../../../helpers/properties.ts';

test('an axis has few round steps, and covers all values', () => {
  assert.deepEqual(stepsTo(8).steps, [0, 2, 4, 6, 8]);
  assert.deepEqual(stepsTo(0), { bottom: 0, top: 1, steps: [0] });
  fc.assert(
    fc.property(fc.double({ min: 1e-9, max: 1e15, noNaN: true }), (most) => {
      const { top, steps } = stepsTo(most);
      assert.ok(top >= most * (1 - 1e-9) && top <= most * 2.6, `${most}: ${top}`);
      assert.ok(steps.length >= 2 && steps.length <= 6, `${most}: ${steps}`);
    }),
  );
});

test('amounts below zero go down from the line of zero, within the axis, and bars are as long as their amounts', () => {
  assert.deepEqual(stepsTo(6, -3).steps, [-5, -2.5, 0, 2.5, 5, 7.5]);
  assert.deepEqual(stepsTo(0, -8).steps, [-8, -6, -4, -2, 0]);
  assert.deepEqual(stackOf([3, -2, null, 1, -1]), [
    [0, 3],
    [-2, 0],
    [3, 3],
    [3, 4],
    [-3, -2],
  ]);
  const amounts = fc.array(fc.integer({ min: -1_000, max: 1_000 }), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(amounts, (values) => {
      const [least, most] = endsOf(values);
      const scale = stepsTo(most, least);
      assert.ok(scale.steps.includes(0) && scale.steps.length <= 8, `${scale.steps}`);
      for (const [index, [from, to]] of stackOf(values).entries()) {
        assert.equal(to - from, Math.abs(values[index]!));
        assert.ok(from >= least && to <= most);
        assert.ok(heightOf(from, scale) > -1e-6 && heightOf(to, scale) < 100 + 1e-6);
      }
    }),
  );
});

test('labels are evenly spaced, the first point has one, and no more are shown than fit', () => {
  assert.deepEqual(labelled(10, 4), [0, 3, 6, 9]);
  assert.deepEqual(labelled(0, 4), []);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_500 }), fc.integer({ min: 1, max: 20 }), (points, most) => {
      const found = labelled(points, most);
      assert.ok(found.length >= 1 && found.length <= most && found[0] === 0 && found.at(-1)! < points);
    }),
  );
});

test('a line has gaps where nothing was measured; a single value is a part of its own', () => {
  assert.deepEqual(runsOf([1, null, null, 4, 5, null, 7]), [
    [[0, 1]],
    [
      [3, 4],
      [4, 5],
    ],
    [[6, 7]],
  ]);
});

test('points are labelled by day or time in the zone of the buckets, with short numbers', () => {
  const at = new Date('2026-11-21T23:30:00Z');
  assert.deepEqual(pointText(at, { bucketMs: 86_400_000, tz: 'Asia/Tokyo' }), {
    short: 'Nov 22',
    whole: 'Sun, Nov 22',
  });
  assert.deepEqual(pointText(at, { bucketMs: 3_600_000, tz: 'UTC' }), { short: '23:30', whole: 'Nov 21, 23:30' });
  assert.equal(countText(400_000, 'en', true), '400K');
  assert.equal(countText(400_000), '400,000');
});
