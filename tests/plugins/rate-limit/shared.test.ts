/** The circuit breaker before shared counters: open after three failures in a row, tried once a second, closed by the first answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Demand, Limiter } from '../../../plugins/rate-limit/limiter.ts';
import { MemoryLimiter } from '../../../plugins/rate-limit/memory.ts';
import { SharedLimiter } from '../../../plugins/rate-limit/shared.ts';
import { fakeHost } from '../../helpers/fakes.ts';

const demand: Demand = { subject: 'a', group: 'a', dimension: 'rpm', limit: 40, periodMs: 60_000, units: 1 };

test('three failures in a row open the circuit, and a success between them does not; while open, one call a second tests it', async () => {
  const host = fakeHost();
  const { clock } = host;
  const memory = new MemoryLimiter(clock);
  let tries = 0;
  let isAway = true;
  const counted = {
    take: async (id: string, demands: readonly Demand[]) => {
      tries += 1;
      if (isAway) throw new Error('away');
      return memory.take(id, demands);
    },
    giveBack: () => undefined,
  } as Limiter;
  const limiter = new SharedLimiter({ counted, memory, processes: () => 1, clock });
  const take = async (times: number) => {
    tries = 0;
    for (let call = 0; call < times; call += 1) await limiter.take(`${call}`, [demand]);
    return tries;
  };
  assert.equal(await take(2), 2);
  assert.equal(limiter.isOpen, false);
  isAway = false;
  assert.equal(await take(1), 1);
  isAway = true;
  assert.equal(await take(5), 3);
  assert.equal(limiter.isOpen, true);
  host.advance(999);
  assert.equal(await take(3), 0);
  host.advance(1);
  assert.equal(await take(3), 1);
  host.advance(1_000);
  isAway = false;
  assert.equal(await take(3), 3);
  assert.equal(limiter.isOpen, false);
});
