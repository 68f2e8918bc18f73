/** Plans: bought, extended, replaced, renewed, ended, and the money that they bring. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyDueTerms } from '../../../plugins/billing/ledger/terms.ts';
import { sqlStore } from '../../../plugins/billing/store.ts';
import { pool } from '../../../plugins/common/domain/ledger.ts';
import { plans, shop } from '../../../plugins/common/domain/plans.ts';
import { endOf } from '../../../plugins/shop/sale.ts';
import { buy, codeOf, makeCodes, openStall, redeem, type Stall, statuses, usd } from './stall.ts';

const dayMs = 24 * 3_600_000;
const isOfPlan = ({ kind }: { kind: string }) => kind === 'plan';
const view = (stall: Stall, { id }: { id: string }) => stall.host.get(pool).view(id);

/** What is due is given, as a call has it done that came at `came` on this plan. */
function giveFor(stall: Stall, { id }: { id: string }, plan: string, came: number): Promise<number> {
  const stated = { terms: stall.host.get(plans).terms(plan), at: came };
  return sqlStore(stall.database).transact(id, stall.host.clock.now(), (entries) => applyDueTerms(entries, stated));
}

test('a plan is paid from the balance, brings its grant within its windows, and is the plan of the next call', async () => {
  const stall = await openStall();
  const account = await stall.account('alice', '30');
  const bought = await buy(stall, account, 'pro', 'order-1');
  const now = stall.host.clock.now();
  // 2027-01-15 to 2027-02-15.
  assert.deepEqual([bought.price, bought.endsAt, bought.balance], [usd('20'), now + 31 * dayMs, usd('35')]);
  const { grants, windows, spendable, term } = await view(stall, account);
  assert.deepEqual(
    grants.map(({ kind, remaining, expiresAt }) => [kind, remaining, expiresAt]),
    [
      ['plan', usd('25'), now + 31 * dayMs],
      ['top-up', usd('10'), undefined],
    ],
  );
  assert.deepEqual(
    windows.map(({ name, limit, spent, endsAt }) => [name, limit, spent, endsAt]),
    [
      ['5h', usd('5'), 0n, now + 5 * 3_600_000],
      ['week', usd('15'), 0n, now + 7 * dayMs],
    ],
  );
  assert.deepEqual([spendable, term?.plan], [usd('15'), 'pro']);
  assert.equal(await stall.planOf(account), 'pro');
  await stall.audit();
});

test('a purchase is made once for its reference, however often and wherever it is requested', async () => {
  const first = await openStall();
  const second = await openStall(first);
  const account = await first.account('alice', '100');
  const reported = await statuses(
    Array.from({ length: 20 }, (_, at) => buy(at % 2 ? first : second, account, 'saver', 'order-1')),
  );
  assert.deepEqual(new Set(reported), new Set([200]));
  assert.equal(await first.balance(account), usd('70'));
  assert.equal((await view(first, account)).term?.endsAt, first.host.clock.now() + 30 * dayMs);
  assert.equal(await codeOf(buy(first, account, 'pro', 'order-1')), 'reference_used');
  await first.audit();
});

test('many concurrent purchases on a balance for two: two are made', async () => {
  const first = await openStall();
  const second = await openStall(first);
  const account = await first.account('alice', '65');
  const reported = await statuses(
    Array.from({ length: 10 }, (_, at) => buy(at % 2 ? first : second, account, 'saver', `order-${at}`)),
  );
  assert.deepEqual(
    [reported.filter((each) => each === 200).length, reported.filter((each) => each === 402).length],
    [2, 8],
  );
  assert.equal(await first.balance(account), usd('5'));
  assert.equal((await view(second, account)).term?.endsAt, first.host.clock.now() + 60 * dayMs);
  await first.audit();
});

test("a plan's grant does not buy the next plan", async () => {
  const stall = await openStall();
  const account = await stall.account('alice', '20');
  await buy(stall, account, 'pro', 'order-1');
  assert.equal(await stall.balance(account), usd('25'));
  await assert.rejects(buy(stall, account, 'pro', 'order-2'), /0\.00 USD can be used for purchases/);
  assert.equal(await codeOf(buy(stall, account, 'free', 'order-3')), 'plan_is_free');
  await assert.rejects(buy(stall, account, 'gone', 'order-4'), /no plan "gone"/);
  await stall.audit();
});

test('the same plan again continues after its end; another one begins now, and the rest of a grant keeps its own end', async () => {
  const stall = await openStall();
  const account = await stall.account('alice', '100');
  const now = stall.host.clock.now();
  assert.equal((await buy(stall, account, 'day', 'order-1')).endsAt, now + dayMs);
  assert.equal((await buy(stall, account, 'day', 'order-2')).endsAt, now + 2 * dayMs);
  assert.equal((await view(stall, account)).grants.filter(({ kind }) => kind === 'plan').length, 1);
  stall.host.advance(3_600_000);
  await buy(stall, account, 'saver', 'order-3');
  assert.equal(await stall.planOf(account), 'saver');
  const [left] = (await view(stall, account)).grants;
  assert.deepEqual([left!.kind, left!.remaining, left!.expiresAt], ['plan', usd('3'), now + dayMs]);
  await stall.audit();
});

test('grants are given for each period of the term, once, in any order of requests; the rest of the last one lapses once', async () => {
  const first = await openStall();
  const second = await openStall(first);
  const account = await first.account('alice', '100');
  await buy(first, account, 'pro', 'order-1');
  await buy(first, account, 'pro', 'order-2');
  for (const stall of [first, second]) stall.host.advance(31 * dayMs + 3_600_000);
  const seen = await Promise.all(Array.from({ length: 12 }, (_, at) => view(at % 2 ? first : second, account)));
  for (const { grants, balance, spendable } of seen) {
    assert.deepEqual(
      grants.filter(({ kind }) => kind === 'plan').map(({ remaining }) => remaining),
      [usd('25')],
    );
    assert.deepEqual([balance, spendable], [usd('85'), usd('65')]);
  }
  const { rows } = (await first.command('ledger', { account: 'alice' })).json as { rows: { kind: string }[] };
  assert.deepEqual(
    rows.map(({ kind }) => kind),
    ['EXPIRE', 'CREDIT', 'PURCHASE', 'CREDIT', 'PURCHASE', 'CREDIT'],
  );
  await first.audit();
});

test('a renewed plan is bought again at its end while the balance covers it; else the default plan follows', async () => {
  const stall = await openStall();
  const account = await stall.account('alice', '5');
  await buy(stall, account, 'day', 'order-1');
  const plans: string[] = [];
  for (let day = 0; day < 3; day += 1) {
    stall.host.advance(dayMs);
    assert.equal(await stall.planOf(account), 'free');
    await view(stall, account);
    plans.push(await stall.planOf(account));
  }
  assert.deepEqual(plans, ['day', 'free', 'free']);
  await stall.credit(account, '10');
  await view(stall, account);
  assert.equal(await stall.planOf(account), 'day');
  stall.host.advance(10 * dayMs);
  await view(stall, account);
  assert.equal(await stall.planOf(account), 'free');
  await stall.audit();
});

test('the price paid for a plan is kept when the next one is bought where the clock is behind', async () => {
  const first = await openStall();
  const second = await openStall(first);
  const account = await first.account('alice', '100');
  const now = first.host.clock.now();
  first.host.advance(240_000);
  await buy(first, account, 'day', 'order-1');
  assert.equal((await buy(second, account, 'day', 'order-2')).endsAt, now + 240_000 + 2 * dayMs);
  await buy(second, account, 'saver', 'order-3');
  assert.equal((await view(first, account)).term?.plan, 'saver');
  assert.equal((await view(second, account)).grants.filter(({ kind }) => kind === 'plan').length, 1);
  await first.audit();
});

test('a call that began on a plan gives no further grant of it when its term has ended meanwhile', async () => {
  const stall = await openStall();
  const account = await stall.account('alice', '20');
  await buy(stall, account, 'pro', 'order-1');
  stall.host.advance(40 * dayMs);
  await giveFor(stall, account, 'pro', stall.host.clock.now() - 39 * dayMs);
  const { grants, balance } = await view(stall, account);
  assert.deepEqual([grants, balance], [[], 0n]);
  await stall.audit();
});

test('a call gives no further grant of its plan when another was bought and has ended meanwhile; a plan that was not bought gives its grant', async () => {
  const stall = await openStall();
  const account = await stall.account('alice', '100');
  await buy(stall, account, 'day', 'order-1');
  stall.host.advance(3_600_000);
  // By a clock that is ahead of the one by which the next plan is bought.
  const came = stall.host.clock.now() + 240_000;
  await buy(stall, account, 'saver', 'order-2');
  stall.host.advance(40 * dayMs);
  await giveFor(stall, account, 'day', came);
  assert.deepEqual((await view(stall, account)).grants.filter(isOfPlan), []);
  await giveFor(stall, account, 'pro', came);
  assert.deepEqual(
    (await view(stall, account)).grants.filter(isOfPlan).map(({ remaining }) => remaining),
    [usd('25')],
  );
  await stall.audit();
});

test('a plan that was bought once gives its grant again to an account that gets it later', async () => {
  const stall = await openStall();
  const account = await stall.account('alice', '20');
  await buy(stall, account, 'pro', 'order-1');
  stall.host.advance(40 * dayMs);
  await view(stall, account);
  for (let call = 0; call < 2; call += 1) await giveFor(stall, account, 'pro', stall.host.clock.now());
  assert.deepEqual(
    (await view(stall, account)).grants.filter(isOfPlan).map(({ remaining }) => remaining),
    [usd('25')],
  );
  await stall.audit();
});

test('a code for an unlimited plan is refused where that plan runs already', async () => {
  const stall = await openStall();
  const account = await stall.account('alice');
  const codes = await makeCodes(stall, { plan: 'free', count: '2' });
  await redeem(stall, account, codes[0]!);
  assert.equal(await codeOf(redeem(stall, account, codes[1]!)), 'plan_runs');
  const listed = await stall.command('codes list');
  assert.equal((listed.json as { state: string }[]).filter(({ state }) => state === 'open').length, 1);
});

test('a term without "lasts" has the length of its grant\'s period; a month ends on its last day at the latest', () => {
  const offer = {
    name: 'x',
    limits: {},
    models: undefined,
    multiplier: undefined,
    price: usd('1'),
    durationMs: undefined,
    renew: false,
  };
  const from = Date.UTC(2027, 0, 31, 12);
  const ends = (every: 'day' | 'week' | 'month') => endOf({ ...offer, grant: { amount: usd('1'), every } }, from);
  assert.deepEqual(
    [ends('day'), ends('week'), ends('month')],
    [from + dayMs, from + 7 * dayMs, Date.UTC(2027, 1, 28, 12)],
  );
  assert.equal(endOf(offer, from), undefined);
  assert.equal(endOf({ ...offer, durationMs: 5 }, from), from + 5);
});

test('an operator gives a plan, extends it, and ends it by giving the free one', async () => {
  const stall = await openStall();
  const account = await stall.account('alice', '1');
  const start = stall.host.clock.now();
  const give = async (plan: string, values = {}) =>
    (await stall.command('plans give', { plan, account: 'alice', ...values })).json as { ends: string };
  assert.equal((await give('pro', { lasts: '2d' })).ends, new Date(start + 2 * dayMs).toISOString());
  assert.equal((await give('pro', { lasts: '1d' })).ends, new Date(start + 3 * dayMs).toISOString());
  assert.equal(await stall.planOf(account), 'pro');
  assert.equal(await stall.balance(account), usd('26'), 'what the plan brings, and nothing is paid');
  assert.equal((await give('free')).ends, 'never');
  assert.equal(await stall.planOf(account), 'free');
  const refused: [Record<string, string>, string][] = [
    [{ plan: 'gone', account: 'alice' }, 'plan'],
    [{ plan: 'pro' }, 'account'],
    [{ plan: 'pro', account: 'missing' }, 'account'],
    [{ plan: 'pro', account: 'alice', lasts: '0s' }, 'lasts'],
  ];
  for (const [values, field] of refused) await assert.rejects(stall.command('plans give', values), { field });
  assert.equal(await stall.planOf(account), 'free');
  await stall.audit();
});

test('plans are listed and bought on the command line', async () => {
  const stall = await openStall();
  await stall.account('alice', '25');
  const { text } = await stall.command('plans list');
  assert.match(text, /free \(default\) +0\.00 +for good/);
  assert.match(text, /pro +20\.00 +25\.00 a month +5\.00 in 5h, 15\.00 in week +a month +1\.00 +all$/m);
  assert.match(text, /day +2\.00 +3\.00 a day +a day, renewed +1\.00 +all$/m);
  assert.match(text, /saver +30\.00 +30d +1\.60 +all$/m);
  const values = { plan: 'pro', account: 'alice', reference: 'paper 7' };
  assert.match((await stall.command('plans buy', values)).text, /alice is on plan pro for 20\.00 USD.* 30\.00 USD/);
  assert.match((await stall.command('plans buy', values)).text, / 30\.00 USD/);
  await assert.rejects(stall.command('plans buy', { plan: 'pro', account: 'missing' }), /no account "missing"/);
  assert.equal(stall.host.find(shop) !== undefined, true);
});
