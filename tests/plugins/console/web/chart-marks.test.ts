/** Marks of alerts in the points of a chart. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { marksOf } from '../../../../plugins/console/web/src/pages/operator/alerts/chart-marks.ts';

const at = (ms: number) => new Date(ms).toISOString();
const starts = [1_000, 2_000, 3_000, 4_000];
const marks = (began: number, ended: number | null) =>
  marksOf([{ beganAt: at(began), endedAt: ended === null ? null : at(ended) }], starts, 1_000, () => 'x').map(
    ({ from, to }) => [from, to],
  );

test('an alert is marked from the point in which it began to the one in which it ended', () => {
  assert.deepEqual(marks(2_500, 3_500), [[1, 2]]);
  assert.deepEqual(marks(2_500, 2_600), [[1, 1]]);
  assert.deepEqual(marks(3_000, null), [[2, 3]]);
});

test('an alert that began before is marked from the first point, and one outside is not marked', () => {
  assert.deepEqual(marks(0, 1_500), [[0, 0]]);
  assert.deepEqual(marks(0, null), [[0, 3]]);
  assert.deepEqual([...marks(0, 900), ...marks(5_000, null)], []);
  assert.deepEqual(
    marksOf([{ beganAt: at(0), endedAt: null }], [], 1_000, () => 'x'),
    [],
  );
});
