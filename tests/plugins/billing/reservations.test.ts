/** A hold of an account whose money is leased asks for more in the background when what is left falls below the low water. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LeasedBalance } from '../../../plugins/billing/leases/leased-balance.ts';
import { Reservations, type ReservationsOptions } from '../../../plugins/billing/reservations/reservations.ts';
import type { Terms } from '../../../plugins/billing/reservations/terms.ts';
import { money, one, oneTool, zero } from '../../../plugins/common/domain/money.ts';
import { PriceVersion } from '../../../plugins/common/domain/prices.ts';
import { fakeHost } from '../../helpers/fakes.ts';

const terms: Terms = {
  ...{ id: 'x', accountId: 'a', keyId: 'k', model: 'm', entry: undefined, at: 0, ratio: one, context: {} },
  ...{ inputTokens: 0, outputTokens: 0, allowance: oneTool },
  prices: new PriceVersion({ name: 'v', base: { request: 20n } }),
};

test('money is requested by the hold that leaves less than the low water, and by each after it', () => {
  const host = fakeHost();
  const balance = new LeasedBalance('a', host.clock);
  balance.wait(money(7n));
  const answer = { amount: money(100n), allowed: money(100n), rest: zero, elsewhere: zero, held: zero, nodes: 1 };
  const now = host.clock.monotonic();
  balance.grant(balance.request(now), answer, now, 60_000);
  const requests: string[] = [];
  let sequence = 0;
  const reservations = new Reservations({
    clock: host.clock,
    journal: { accepting: () => true, append: () => ++sequence },
    backlog: { rows: 0, bytes: 0 },
    flusher: { fenced: false },
    balances: { find: () => balance },
    topUp: { topUp: () => void requests.push('more') },
    stepTokens: 1,
    backlogLimit: 10,
    bridging: () => true,
  } as unknown as ReservationsOptions);
  const counts = [1, 2, 3, 4].map(() => {
    assert.ok(!(reservations.create(terms) instanceof Promise));
    return [balance.available, requests.length];
  });
  assert.deepEqual(counts, [
    [80n, 0],
    [60n, 0],
    [40n, 1],
    [20n, 2],
  ]);
});
