/** What attempts that were followed by another one may cost: a share of the hour's cost, and few beyond it in a quiet hour. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AbsorbBudget } from '../../../plugins/billing/reservations/absorb-budget.ts';
import { attemptNotes } from '../../../plugins/billing/reservations/outcome.ts';
import { possibleLoss, share as sharesOf } from '../../../plugins/billing/reservations/written-off.ts';
import type { Attempt } from '../../../plugins/common/domain/calls.ts';
import type { Model } from '../../../plugins/common/domain/models.ts';
import { cost, type Money, money, parseUsd } from '../../../plugins/common/domain/money.ts';
import { flatBook, versionAt } from '../../../plugins/common/domain/prices.ts';
import { fc } from '../../helpers/properties.ts';
import { attemptOf, price } from './world.ts';

const hourMs = 3_600_000;
const slotMs = 300_000;

function budget() {
  const clock = { at: 0, now: () => 0, monotonic: () => clock.at };
  return { clock, budget: new AbsorbBudget(clock) };
}

test('a quiet hour allows half a dollar by a twentieth, ten attempts beyond it, and nothing by zero', () => {
  const { clock, budget: book } = budget();
  let account = 0;
  const take = (amount: Money, share: number) => {
    account += 1;
    return book.take(amount, share, `account ${account}`);
  };
  assert.equal(take(money(1n), 0), false);
  assert.equal(take(money(1n), 0.001), true, 'a cent');
  assert.equal(take(parseUsd('1'), 0.001), false);
  for (let index = 0; index < 49; index += 1) assert.equal(take(parseUsd('0.01'), 0.05), true);
  for (let index = 0; index < 10; index += 1) assert.equal(take(parseUsd('1000'), 0.05), true);
  assert.equal(take(money(1n), 0.05), false);
  clock.at += hourMs;
  assert.equal(take(money(1n), 0.05), true);
});

test("one account takes a quarter of an hour's budget, others the rest, and the next hour begins again", () => {
  const { clock, budget: book } = budget();
  const times = (account: string, amount: Money) => {
    let taken = 0;
    while (book.take(amount, 0.05, account)) taken += 1;
    return taken;
  };
  // 12 cents of the half dollar, and three attempts beyond.
  assert.equal(times('one', parseUsd('0.01')), 12 + 3);
  assert.equal(times('another', parseUsd('0.01')), 12 + 3);
  assert.equal(times('a dear one', parseUsd('1000')), 3);
  assert.equal(times('the last', parseUsd('1000')), 1, 'ten attempts beyond the share for all');
  clock.at += hourMs;
  assert.equal(times('one', parseUsd('1000')), 3);
});

test('accounts that used the budget are remembered up to a bound, the newest ones', () => {
  const { budget: book } = budget();
  book.note(parseUsd('1000000'));
  for (let index = 0; index < 3; index += 1) assert.ok(book.take(parseUsd('1000000'), 0.05, 'first'));
  assert.equal(book.take(parseUsd('1000000'), 0.05, 'first'), false);
  const { budget: large } = budget();
  for (let index = 0; index <= 10_000; index += 1) large.take(money(1n), 1, `account ${index}`);
  assert.ok(large.take(money(1n), 1, 'account 0'));
});

test("attempts are allowed by the share of an hour's cost, and by the quiet hour beyond it", () => {
  const step = fc.record({
    waitMs: fc.nat(20 * 60_000),
    cost: fc.bigInt(0n, 10n ** 12n),
    amount: fc.bigInt(0n, 10n ** 11n),
    account: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
  });
  const share = fc.constantFrom(0.001, 0.05, 0.5, 1);
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), share, (steps, part) => {
      const { clock, budget: book } = budget();
      const own = new Map<string, { since: number; amount: bigint; beyond: number }>();
      let entries: { at: number; cost: bigint; amount: bigint; beyond: number }[] = [];
      for (const { waitMs, cost: spent, amount, account } of steps) {
        clock.at += waitMs;
        // What is remembered: the running five minutes and the eleven before.
        const since = Math.floor(clock.at / slotMs) * slotMs - 11 * slotMs;
        entries = entries.filter(({ at }) => at >= since);
        book.note(money(spent));
        entries.push({ at: clock.at, cost: spent, amount: 0n, beyond: 0 });
        const before = entries.reduce((sum, entry) => sum + entry.amount, 0n);
        const traffic = entries.reduce((sum, entry) => sum + entry.cost, 0n);
        const counted = traffic > 10n ** 10n ? traffic : 10n ** 10n;
        const known = own.get(account);
        const isNew = known === undefined || clock.at - known.since >= hourMs;
        const taken = isNew ? { since: clock.at, amount: 0n, beyond: 0 } : known;
        const allowed = counted * BigInt(part * 1_000);
        const isWithin = (before + amount) * 1_000n <= allowed && (taken.amount + amount) * 4_000n <= allowed;
        const beyond = entries.reduce((sum, entry) => sum + entry.beyond, 0);
        const isAllowed = isWithin || (beyond < Math.floor(part * 200) && taken.beyond < Math.ceil(part * 50));
        assert.equal(book.take(money(amount), part, account), isAllowed);
        if (!isAllowed) continue;
        entries.push({ at: clock.at, cost: 0n, amount, beyond: isWithin ? 0 : 1 });
        own.set(account, { ...taken, amount: taken.amount + amount, beyond: taken.beyond + (isWithin ? 0 : 1) });
      }
    }),
    { numRuns: 500 },
  );
});

test("the possible cost of an attempt is booked at its own target's cost, and the budget counts the same amount", () => {
  const half = { ...price, input: parseUsd('0.5'), output: parseUsd('1') };
  const targets = [
    { provider: 'cheap', model: 'm', weight: 0, cost: flatBook(half, 'own') },
    { provider: 'plain', model: 'm', weight: 0 },
  ];
  const entry = { targets } as unknown as Model;
  const terms = {
    inputTokens: 1_000,
    allowance: { tools: 0, images: 0, seconds: 0 },
    prices: versionAt(flatBook(price, 'v1'), 0)!,
    at: 0,
    context: {},
    entry,
  };
  const counts = fc.record({ input: fc.nat(10_000), output: fc.nat(10_000) });
  const consumed = fc.option(fc.record({ usage: counts, estimated: fc.boolean() }), { nil: undefined });
  fc.assert(
    fc.property(fc.constantFrom('cheap', 'plain'), consumed, (provider, seen) => {
      const attempt = { ...attemptOf('unknown', 1), provider, model: 'm', ...(seen && { consumed: seen }) } as Attempt;
      const usage = seen?.usage ?? { input: 1_000 };
      const expected = cost(usage, provider === 'cheap' ? half : price);
      assert.equal(possibleLoss(attempt, terms), expected);
      const sent = [{ at: 0, ...attempt }];
      const verdict = { kind: 'VOID', reason: 'unknown' } as const;
      assert.equal(sharesOf(attemptNotes([attempt], sent), [attempt], verdict, terms).writtenOff, expected);
    }),
    { numRuns: 300 },
  );
});
