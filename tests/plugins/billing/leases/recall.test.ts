/** Money that is taken beside calls while processes lease it: 402 only where it is not there, 503 where that is unknown in time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AccountChanges } from '../../../../plugins/billing/accounts/changes.ts';
import { Entries, notThere } from '../../../../plugins/billing/ledger/entries.ts';
import type { Store } from '../../../../plugins/billing/store.ts';
import type { Database } from '../../../../plugins/common/domain/database.ts';
import { money } from '../../../../plugins/common/domain/money.ts';
import { fakeHost } from '../../../helpers/fakes.ts';
import { runsOf } from '../../../helpers/histories.ts';
import { fc } from '../../../helpers/properties.ts';

interface Scene {
  readonly balance: bigint;
  /** What a process that lives has leased, and one that does not. */
  readonly living?: bigint;
  readonly dead?: bigint;
  /** How long after it is asked the one that lives returns it; never if not said. */
  readonly answersAfterMs?: number;
  /** How long each statement takes. */
  readonly statementMs?: number;
  /** How often it leases again what it has just returned, right before it would be taken. */
  readonly leasesAgain?: number;
  /** What the change itself fails with, in turn; then it goes by the balance. */
  readonly failures?: readonly Error[];
}

/** An account of which others lease a part, behind a database that takes its time. */
function sceneOf({ balance, living = 0n, dead = 0n, answersAfterMs, statementMs = 1, ...more }: Scene) {
  const host = fakeHost();
  const failures = [...(more.failures ?? [])];
  let leasesAgain = more.leasesAgain ?? 0;
  let returned = 0n;
  let answersAt = Number.POSITIVE_INFINITY;
  let tries = 0;
  const byLiving = () => {
    if (host.clock.monotonic() >= answersAt) returned = living;
    return living - returned;
  };
  const leases = () => ({ leased: money(dead + byLiving()), byLiving: money(byLiving()), open: money(0n) });
  const statement = async () => host.advance(statementMs);
  const store = {
    async transact(accountId: string, at: number, work: (entries: Entries) => Promise<unknown>) {
      await statement();
      tries += 1;
      if (byLiving() === 0n && leasesAgain > 0) {
        leasesAgain -= 1;
        returned = 0n;
        answersAt = Number.POSITIVE_INFINITY;
      }
      const given = { accountId, at, balance: money(balance), held: money(0n), ...leases() };
      return work(new Entries(undefined as never, 'main', undefined as never, given));
    },
    async funds() {
      await statement();
      return new Map([['alice', { balance: money(balance), pool: undefined, term: undefined }]]);
    },
    leases: {
      async leasedOf() {
        await statement();
        return leases();
      },
    },
  };
  const announced: string[] = [];
  const announce = async (topic: string) => {
    announced.push(topic);
    if (topic === 'lease wanted' && answersAfterMs !== undefined && answersAt === Number.POSITIVE_INFINITY)
      answersAt = host.clock.monotonic() + answersAfterMs;
  };
  const database = { shared: true, announce } as unknown as Database;
  const changes = new AccountChanges({ host, database, store: store as unknown as Store, runtime: () => undefined });
  const since = host.clock.monotonic();
  return {
    announced,
    tries: () => tries,
    tookMs: () => host.clock.monotonic() - since,
    take: (amount: bigint) =>
      changes.change('alice', money(amount), async (entries) => {
        const failure = failures.shift();
        if (failure !== undefined) throw failure;
        if (entries.balance - entries.leased < amount) throw notThere('The balance does not cover this debit.');
        return 'taken';
      }),
  };
}

test('money of another process is awaited, however slow the database and that process are', async () => {
  const { take, tries } = sceneOf({ balance: 25n, living: 10n, answersAfterMs: 2_500, statementMs: 600 });
  assert.equal(await take(20n), 'taken');
  assert.equal(tries(), 1);
});

test('a process that does not answer in time causes retry-after, not a 402', async () => {
  const { take, tookMs, announced } = sceneOf({ balance: 25n, living: 10n, statementMs: 400 });
  await assert.rejects(take(20n), { kind: 'overloaded', code: 'balance_unavailable', retryAfterMs: 1_000 });
  assert.ok(tookMs() >= 5_000 && tookMs() < 8_000, `${tookMs()} ms`);
  assert.ok(announced.length > 1 && announced.every((topic) => topic === 'lease wanted'), String(announced));
});

test('402 is returned at once where no living node can return enough', async () => {
  for (const scene of [{ living: 0n }, { living: 12n, dead: 10n }, { dead: 10n }]) {
    const { take, tries, announced } = sceneOf({ balance: 25n, ...scene });
    await assert.rejects(take(26n - (scene.dead ?? 0n)), { kind: 'insufficient_balance' });
    assert.equal(tries(), 1);
    assert.deepEqual(announced, []);
  }
});

test('returned money that is leased again before it is taken is recalled once more, and no process is notified of the refusal', async () => {
  const { take, tries, announced } = sceneOf({ balance: 25n, living: 10n, answersAfterMs: 0, leasesAgain: 2 });
  assert.equal(await take(20n), 'taken');
  assert.equal(tries(), 3);
  // Who heard of an account's change would lease again.
  assert.deepEqual(announced, ['lease wanted', 'lease wanted', 'lease wanted', 'account']);
});

test('another cause is not reported as missing money; a call that may have been executed is reported', async () => {
  const { take, tries, announced } = sceneOf({
    balance: 25n,
    living: 5n,
    failures: [new Error('the database is away')],
  });
  await assert.rejects(take(20n), /away/);
  assert.equal(tries(), 1);
  assert.deepEqual(announced, ['account']);
});

test('in any schedule 402 is returned only for missing money, and no money is taken that another may spend', async () => {
  const sum = fc.bigInt({ min: 0n, max: 30n });
  const scenes = fc.record({
    amount: fc.bigInt({ min: 1n, max: 40n }),
    living: sum,
    dead: sum,
    rest: sum,
    answersAfterMs: fc.option(fc.integer({ min: 0, max: 9_000 }), { nil: undefined }),
    statementMs: fc.constantFrom(500, 2_000, 6_000),
    leasesAgain: fc.nat(3),
  });
  await fc.assert(
    fc.asyncProperty(scenes, async ({ amount, rest, ...scene }) => {
      const { living, dead } = scene;
      const reported = await sceneOf({ ...scene, balance: rest + living + dead } as Scene)
        .take(amount)
        .catch((error: { kind: string }) => error.kind);
      if (reported === 'insufficient_balance') assert.ok(rest + living < amount, '402, although it is there');
      else if (rest + living < amount) assert.fail(`${reported}, although it is not there`);
      else if (reported !== 'taken') assert.deepEqual([reported, rest < amount], ['overloaded', true]);
    }),
    { numRuns: runsOf(30, 300) },
  );
});
