/** What is kept from calls for a debit: no more than is there without what has expired. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BalanceCache } from '../../../plugins/billing/reservations/balance-cache.ts';
import { money } from '../../../plugins/common/domain/money.ts';
import { fakeHost } from '../../helpers/fakes.ts';

test('a debit does not count on a grant that has expired, which may have been taken off already', async () => {
  const host = fakeHost();
  const expiresAt = host.clock.now() + 1_000;
  const pot = { grantId: 'grant', remaining: money(70n), expiresAt };
  const fundsOf = async () => ({ balance: money(100n), pool: { grants: [pot], spent: new Map() } });
  const purses = new BalanceCache({ clock: host.clock, limit: 10, idleMs: 60_000, fundsOf });
  const purse = await purses.acquire('alice', money(0n));
  const release = purses.reserve(purse, money(31n));
  assert.notEqual(release, undefined);
  release!();
  host.advance(1_000);
  assert.equal(purses.reserve(purse, money(31n)), undefined);
  assert.notEqual(purses.reserve(purse, money(30n)), undefined);
});
