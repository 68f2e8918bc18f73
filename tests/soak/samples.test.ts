/** What the soak calls a leak. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leaks, type Sample, trendOf } from './samples.ts';

const megabyte = 2 ** 20;
const steady: Sample = {
  ...{ p99Ms: 12, longestMs: 80, rss: 300 * megabyte, heapUsed: 60 * megabyte },
  ...{ external: 0, descriptors: 100, cpuMs: 0 },
};
const over = (change: (share: number) => Partial<Sample>) =>
  Array.from({ length: 30 }, (_, index) => ({ ...steady, ...change(index / 30) }));

test('constant figures, a warm-up in the first third and single peaks are no leak', () => {
  assert.deepEqual(
    leaks(
      over(() => ({})),
      100,
    ),
    [],
  );
  assert.deepEqual(
    leaks(
      over((share) => ({ heapUsed: (share < 0.3 ? 20 : 90) * megabyte })),
      100,
    ),
    [],
  );
  assert.deepEqual(
    leaks(
      over((share) => (share > 0.95 ? { descriptors: 5_000, p99Ms: 3_000 } : {})),
      100,
    ),
    [],
  );
});

test('growing heap, memory, descriptors and delay are each reported', () => {
  const grows = over((share) => ({
    ...{ heapUsed: (60 + 200 * share) * megabyte, rss: (300 + 800 * share) * megabyte },
    ...{ descriptors: 100 + Math.round(900 * share), p99Ms: 500 * share },
  }));
  const found = leaks(grows, 100);
  assert.equal(found.length, 4);
  assert.match(
    found.join('\n'),
    /the heap grew from \d+ MB to \d+ MB\nresident memory grew .*\ndescriptors grew .*\nthe event loop's p99 delay/,
  );
});

test('a too short run has no trends', () => {
  assert.deepEqual(leaks(over((share) => ({ heapUsed: 1_000 * share * megabyte })).slice(0, 5), 100), []);
  assert.deepEqual(trendOf([]), { middle: 0, end: 0 });
});
