/** What is kept from calls for a debit: no more than is there without what has expired; and balances that are read slowly. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Funds } from '../../../plugins/billing/grants/funds.ts';
import { BalanceCache } from '../../../plugins/billing/ledger/balance-cache.ts';
import { money } from '../../../plugins/common/domain/money.ts';
import { fakeHost } from '../../helpers/fakes.ts';

test('a debit does not count on an expired grant, which may have lapsed already', async () => {
  const host = fakeHost();
  const expiresAt = host.clock.now() + 1_000;
  const grant = { grantId: 'grant', remaining: money(70n), expiresAt };
  const fundsOf = async () => ({ balance: money(100n), pool: { grants: [grant], spent: new Map() } });
  const balances = new BalanceCache({ clock: host.clock, limit: 10, idleMs: 60_000, fundsOf });
  const balance = await balances.acquire('alice', money(0n));
  const release = balances.reserve(balance, money(31n));
  assert.notEqual(release, undefined);
  release!();
  host.advance(1_000);
  assert.equal(balances.reserve(balance, money(31n)), undefined);
  assert.notEqual(balances.reserve(balance, money(30n)), undefined);
});

test('a balance that is read too slowly is 503 for the waiting calls, is read once, and is there for a later call', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const { clock } = fakeHost();
  const read = Promise.withResolvers<Funds>();
  let reads = 0;
  const fundsOf = () => {
    reads += 1;
    return read.promise;
  };
  const balances = new BalanceCache({ clock, limit: 10, idleMs: 60_000, fundsOf });
  const waiting = [1, 2].map(() =>
    assert.rejects(balances.acquire('alice', money(1n), 5_000), /balance cannot be read/),
  );
  context.mock.timers.tick(5_000);
  await Promise.all(waiting);
  const last = balances.acquire('alice', money(1n), 5_000);
  read.resolve({ balance: money(100n), pool: undefined, term: undefined });
  const balance = await last;
  assert.deepEqual([balance.base, balance.users, reads], [100n, 1, 1]);
});
