/** Request ids are UUIDs of version 7: well-formed, sorted by time, and different from each other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemRandom, uuidMaker } from '../../core/gateway/system.ts';
import { fc } from '../helpers/properties.ts';

const pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test('an id has its form, carries its time and sorts by it', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 48 - 2 }), (time) => {
      let now = time;
      const next = uuidMaker({ now: () => now, monotonic: () => 0 }, systemRandom);
      const first = next();
      now += 1;
      const second = next();
      assert.match(first, pattern);
      assert.equal(Number.parseInt(first.slice(0, 13).replace('-', ''), 16), time);
      assert(first < second);
    }),
  );
});

test('a hundred thousand ids of one millisecond are different', () => {
  const next = uuidMaker({ now: () => 1_800_000_000_000, monotonic: () => 0 }, systemRandom);
  assert.equal(new Set(Array.from({ length: 100_000 }, next)).size, 100_000);
});
