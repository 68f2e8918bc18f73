/** Counting attempts: never more than allowed in a window, never without a bound. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Throttle } from '../../../plugins/console/people/throttle.ts';
import { fakeHost } from '../../helpers/fakes.ts';

test('within a window no more than allowed pass, whenever they come', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 60 }),
      fc.integer({ min: 1, max: 5 }),
      (gaps, most) => {
        const host = fakeHost();
        const throttle = new Throttle(host.clock);
        const passed: number[] = [];
        for (const gap of gaps) {
          host.advance(gap);
          if (throttle.take('who', most, 1_000) === 0) passed.push(host.clock.monotonic());
        }
        // A window begins with the first that passes in it.
        let begins = Number.NEGATIVE_INFINITY;
        let count = 0;
        for (const at of passed) {
          if (at - begins >= 1_000) {
            begins = at;
            count = 0;
          }
          count++;
          assert.ok(count <= most);
        }
      },
    ),
  );
});

test('who must wait is told how long, and after that it is enough', () => {
  const host = fakeHost();
  const throttle = new Throttle(host.clock);
  assert.equal(throttle.take('who', 1, 1_000), 0);
  host.advance(300);
  const waitMs = throttle.take('who', 1, 1_000);
  assert.equal(waitMs, 700);
  host.advance(waitMs);
  assert.equal(throttle.take('who', 1, 1_000), 0);
});

test('a flood of names keeps no more than a bound of them', () => {
  const host = fakeHost();
  const throttle = new Throttle(host.clock);
  for (let name = 0; name < 50_000; name++) throttle.take(`name ${name}`, 1, 1_000);
  assert.ok(throttle.size <= 20_000);
  assert.equal(throttle.take('name 49999', 1, 1_000) > 0, true);
});
