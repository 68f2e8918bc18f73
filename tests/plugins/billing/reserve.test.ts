/** What is kept from calls for a debit: no more than is there without what has expired; and balances that are read slowly. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Funds } from '../../../plugins/billing/grants/funds.ts';
import { Balance, type BatchTotals } from '../../../plugins/billing/ledger/balance.ts';
import { BalanceCache } from '../../../plugins/billing/ledger/balance-cache.ts';
import { money } from '../../../plugins/common/domain/money.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';

test('a debit does not count on an expired grant, which may have lapsed already', async () => {
  const host = fakeHost();
  const expiresAt = host.clock.now() + 1_000;
  const grant = { grantId: 'grant', remaining: money(70n), expiresAt };
  const fundsOf = async () => ({ balance: money(100n), pool: { grants: [grant], spent: new Map() } });
  const balances = new BalanceCache({ clock: host.clock, limit: 10, idleMs: 60_000, kind: Balance, fundsOf });
  const balance = await balances.acquire('alice', money(0n));
  const release = balance.reserve(money(31n));
  assert.notEqual(release, undefined);
  release!();
  host.advance(1_000);
  assert.equal(balance.reserve(money(31n)), undefined);
  assert.notEqual(balance.reserve(money(30n)), undefined);
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
  const balances = new BalanceCache({ clock, limit: 10, idleMs: 60_000, kind: Balance, fundsOf });
  const waiting = [1, 2].map(() =>
    assert.rejects(balances.acquire('alice', money(1n), 5_000), /balance cannot be read/),
  );
  context.mock.timers.tick(5_000);
  await Promise.all(waiting);
  const last = balances.acquire('alice', money(1n), 5_000);
  read.resolve({ balance: money(100n), pool: undefined, term: undefined });
  const balance = await last;
  assert.deepEqual([balance.available, balance.users, reads], [100n, 1, 1]);
});

const step = fc.record({
  kind: fc.constantFrom('hold', 'extend', 'end', 'batch', 'apply', 'credit', 'reserve', 'debited'),
  amount: fc.bigInt({ min: 0n, max: 60n }),
});

test('a balance after any steps has what the database has less holds, charges that it lacks, and what a debit reserves', () => {
  const check = fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
    const balance = new Balance('alice', fakeHost().clock);
    let [inDatabase, ended, number] = [100n, 0n, 0];
    balance.reconcile({ balance: money(inDatabase) });
    const [holds, reserved]: [bigint[], { amount: bigint; release: () => void }[]] = [[], []];
    const batches: { number: number; totals: BatchTotals[]; cost: bigint }[] = [];
    const sum = (amounts: readonly bigint[]) => amounts.reduce((total, amount) => total + amount, 0n);
    for (const { kind, amount } of steps) {
      const lacking = sum(holds) + ended + sum(batches.map(({ cost }) => cost));
      const available = inDatabase - lacking - sum(reserved.map((each) => each.amount));
      assert.deepEqual([balance.available, balance.pending], [available, lacking]);
      assert.equal(balance.admits(money(amount)), amount === 0n || amount <= available);
      if (kind === 'hold' && balance.admits(money(amount))) {
        balance.hold(money(amount));
        holds.push(amount);
      } else if (kind === 'extend' && holds.length > 0) {
        balance.extend(money(amount));
        holds[0]! += amount;
      } else if (kind === 'end' && holds.length > 0) {
        balance.end(money(holds.shift()!), money(amount), 0);
        ended += amount;
      } else if (kind === 'batch') {
        batches.push({ number: number++, totals: [], cost: ended });
        balance.addTo(batches.at(-1)!);
        ended = 0n;
      } else if (kind === 'apply' && batches.length > 0) {
        const { totals, cost } = batches.shift()!;
        inDatabase -= cost;
        balance.applied(totals[0]!);
        balance.reconcileTotal(money(inDatabase));
      } else if (kind === 'credit') {
        inDatabase += amount;
        balance.reconcile({ balance: money(inDatabase) });
      } else if (kind === 'reserve') {
        const release = balance.reserve(money(amount));
        assert.equal(release !== undefined, amount <= available);
        if (release !== undefined) reserved.push({ amount, release });
      } else if (kind === 'debited' && reserved.length > 0) {
        const debit = reserved.shift()!;
        inDatabase -= debit.amount;
        balance.reconcile({ balance: money(inDatabase) });
        debit.release();
      }
    }
    assert.equal(balance.users, holds.length);
  });
  fc.assert(check);
});
