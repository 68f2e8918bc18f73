/** Random histories of grants that expire, plans with windows, debits and refunds, with time passing, against a naive account. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import type { GatewayError } from '../../../core/contract/errors.ts';
import { calendarAnchors, periodAt } from '../../../plugins/billing/grants/periods.ts';
import { type AccountAdmin, accountAdmin } from '../../../plugins/common/domain/admin/accounts.ts';
import { ledgerQueries } from '../../../plugins/common/domain/admin/ledger.ts';
import { attempts, usageReport } from '../../../plugins/common/domain/calls.ts';
import { ledger, pool } from '../../../plugins/common/domain/ledger.ts';
import { cost, costBound, money } from '../../../plugins/common/domain/money.ts';
import { type Plans, type PlanTerms, plan, plans } from '../../../plugins/common/domain/plans.ts';
import type { FakeExchange } from '../../helpers/fakes.ts';
import { runsOf } from '../../helpers/histories.ts';
import { fc } from '../../helpers/properties.ts';
import { type Flow, flowsByRows, sumWithin } from './flows-oracle.ts';
import { NaiveAccount } from './pool-oracle.ts';
import { checkStatement } from './statement.ts';
import { enter, leaveWorlds, meterOf, newCall, newWorld, price, report, send, type World } from './world.ts';

after(leaveWorlds);

const step = 200;
const hourMs = 3_600_000;
const free: PlanTerms = {
  name: 'free',
  limits: {},
  models: undefined,
  multiplier: undefined,
  grant: { amount: money(6_000_000n), every: 'week' },
  windows: { day: money(4_000_000n) },
};
const pro: PlanTerms = {
  ...free,
  name: 'pro',
  grant: { amount: money(30_000_000n), every: 'day' },
  windows: { '5h': money(8_000_000n), day: money(20_000_000n), week: money(70_000_000n) },
};

/** Calls of the account are on the plan that costs nothing. */
function offering(world: World): World {
  const terms = { default: free.name, terms: () => free } as unknown as Plans;
  world.host.provide(plans, terms);
  world.host.provide(accountAdmin, {
    find: async () => ({ plan: free.name, disabled: false }),
  } as unknown as AccountAdmin);
  return world;
}

interface Running {
  readonly id: string;
  readonly exchange: FakeExchange;
  readonly inputTokens: number;
  readonly at: number;
  held: bigint;
  seen: number;
  /** It was stopped, and what was seen of it is charged however it ends. */
  unpaid: boolean;
}

class History {
  world: World;
  readonly account = new NaiveAccount();
  readonly running: Running[] = [];
  readonly paid: { id: string; left: bigint }[] = [];
  readonly topUps: string[] = [];
  term: { id: string; startsAt: number; endsAt: number } | undefined;
  lapsed = 0;
  checks = 0;
  references = 0;

  constructor(world: World) {
    this.world = offering(world);
  }

  get now(): number {
    return this.world.host.clock.now();
  }

  /** What a plan has to bring by now. */
  giveDue(onPlan: boolean): void {
    const { now, term, account } = this;
    const bought = term !== undefined && term.endsAt > now ? term : undefined;
    if (bought === undefined && !onPlan) return;
    const given = bought === undefined ? free : pro;
    const anchor = bought?.startsAt ?? calendarAnchors.week;
    const source = bought?.id ?? 'free';
    const { start, end } = periodAt(given.grant!.every, anchor, now);
    const reference = `${source}:${start}`;
    if (this.#given.has(reference)) return;
    this.#given.add(reference);
    const limits = given.windows as Record<string, never>;
    const expiresAt = Math.min(end, bought?.endsAt ?? end);
    account.add({ reference, left: given.grant!.amount, expiresAt, source, anchor, limits }, now);
  }
  readonly #given = new Set<string>();

  pick(index: number): Running | undefined {
    return this.running[index % Math.max(1, this.running.length)];
  }

  close(call: Running, charge: bigint): void {
    this.running.splice(this.running.indexOf(call), 1);
    this.account.held -= call.held;
    this.account.spend(charge, call.at);
    if (charge > 0n) this.paid.push({ id: call.id, left: charge });
  }

  async flush(): Promise<void> {
    await setImmediate();
    await this.world.tick('write the ledger');
  }

  /** What lapsed since must have expired, be all that was left, and not have been what a running call may need. */
  async noteLapses(): Promise<void> {
    const rows = await this.world.rows<{ amount: string; expires: string; at: string }>(
      sql`select (-ledger.amount)::text as amount, (extract(epoch from expires_at) * 1000)::bigint::text as expires,
            (extract(epoch from ledger.created_at) * 1000)::bigint::text as at
          from ${this.world.table('ledger')} as ledger join ${this.world.table('grants')} as grants on grants.id = grant_id
          where ledger.kind = 'EXPIRE' order by seq offset ${this.lapsed}::int`,
    );
    for (const row of rows) {
      this.lapsed += 1;
      const [at, expires] = [Number(row.at), Number(row.expires)];
      assert.equal(at, expires, 'what is left is booked at the end');
      const lot = this.account.lots.find(({ left, expiresAt }) => expiresAt === expires && left === BigInt(row.amount));
      assert.ok(lot, `nothing of ${row.amount} was left to lapse`);
      assert.ok(this.now >= expires + hourMs / 4);
      lot.left = 0n;
    }
  }

  async check(): Promise<void> {
    await this.flush();
    await this.noteLapses();
    assert.equal(await this.world.balance(), this.account.balance);
    const { balance, held } = this.account;
    await checkStatement(this.world, 'alice', balance + held, 1 + (this.checks++ % 5));
  }
}

type Step = (history: History) => Promise<void>;

const enterStep = (inputTokens: number, maxOutputTokens: number): Step =>
  async function entering(history) {
    // News of the account are asked for once a second.
    history.world.host.advance(1_000);
    history.giveDue(true);
    const exchange = newCall({ call: { inputTokens, maxOutputTokens }, facts: [[plan, free]] });
    const bound = costBound(inputTokens, Math.min(maxOutputTokens, step), price);
    const spendable = history.account.spendable(history.now);
    const refusal = await enter(history.world, exchange).then(
      () => undefined,
      (error: GatewayError) => error,
    );
    assert.equal(refusal?.status ?? 200, bound <= spendable ? 200 : 402, `${bound} of ${spendable}`);
    if (refusal !== undefined) {
      assert.equal(refusal.shouldRetry, false);
      if (bound > history.account.balance) assert.equal(refusal.code, 'insufficient_balance');
      return;
    }
    history.account.held += bound;
    history.running.push({
      id: exchange.id,
      exchange,
      inputTokens,
      at: history.now,
      held: bound,
      seen: 0,
      unpaid: false,
    });
    await send(exchange);
  };

const observeStep = (index: number, tokens: number): Step =>
  async function observing(history) {
    const call = history.pick(index);
    if (call === undefined) return;
    const before = await history.world.balance();
    const spendable = history.account.spendable(history.now);
    call.seen += tokens;
    const goesOn = meterOf(call.exchange).observe(call.seen);
    const taken = before - (await history.world.balance());
    assert.ok(taken >= 0n && (taken === 0n || taken <= spendable), `${taken} of ${spendable}`);
    const needed = costBound(call.inputTokens, call.seen, price);
    assert.equal(goesOn, needed <= call.held + taken);
    if (!goesOn) assert.ok(needed - call.held > spendable);
    call.unpaid ||= !goesOn;
    call.held += taken;
    history.account.held += taken;
  };

const endStep = (index: number, answered: boolean, output: number): Step =>
  async function ending(history) {
    const call = history.pick(index);
    if (call === undefined) return;
    const usage = { input: call.inputTokens, output };
    const [attempt] = call.exchange.find(attempts)!;
    attempt!.result = answered ? 'answered' : 'refused';
    if (answered) call.exchange.set(usageReport, report(usage));
    await call.exchange.end({ kind: 'complete' });
    const seen = { input: call.inputTokens, output: call.seen };
    history.close(call, answered ? cost(usage, price) : call.unpaid ? cost(seen, price) : 0n);
  };

/** The same, and the database's answer to the charge is lost. */
const lostEndStep = (index: number, output: number): Step =>
  async function endingUnheard(history) {
    await endStep(index, true, output)(history);
    await repeating(history);
  };

const creditStep = (amount: bigint, hours: number): Step =>
  async function crediting(history) {
    history.giveDue(false);
    const reference = `${++history.references % 4 === 0 ? 'stripe:' : ''}credit-${history.references}`;
    const kind = ['top-up', 'promotion', 'code', 'top-up'][history.references % 4]!;
    // No two end at once: which of them is spent first would be chance.
    const expiresAt = hours === 0 ? undefined : history.now + hours * hourMs + history.references;
    const give = () =>
      history.world.host.get(ledger).credit('alice', money(amount), { kind, reason: 'test', reference, expiresAt });
    await give();
    // The same event once more.
    await give();
    if (expiresAt === undefined) {
      history.account.wallet += amount;
      history.topUps.push(reference);
    } else history.account.add({ reference, left: amount, expiresAt }, history.now);
  };

const debitStep = (amount: bigint): Step =>
  async function debiting(history) {
    history.giveDue(false);
    const { account, now } = history;
    const expired = account.lots.filter(({ expiresAt }) => expiresAt <= now).reduce((sum, { left }) => sum + left, 0n);
    const covered = account.balance - expired >= amount;
    const reference = `debit-${++history.references}`;
    const take = () =>
      history.world.host
        .get(pool)
        .debit('alice', money(amount), { reason: 'test', reference })
        .then(
          () => true,
          (error: GatewayError) => assert.equal(error.status, 402, String(error)),
        );
    assert.equal((await take()) === true, covered);
    if (!covered) return;
    await take();
    account.spend(amount, now);
  };

const buyStep = (days: number, cost: bigint): Step =>
  async function buying(history) {
    history.giveDue(false);
    const { account, now } = history;
    const covered = cost === 0n || account.wallet - account.held >= cost;
    const reference = `buy-${++history.references}`;
    const endsAt = now + days * 24 * hourMs;
    const buy = () =>
      history.world.host.get(pool).transact('alice', money(cost), async (posting) => {
        if (await posting.purchase(money(cost), { reason: 'pro', reference })) await posting.beginTerm(pro, endsAt);
      });
    const bought = await buy().then(
      () => true,
      (error: GatewayError) => assert.equal(error.status, 402, String(error)),
    );
    assert.equal(bought === true, covered);
    if (!covered) return;
    await buy();
    account.wallet -= cost;
    history.term = { id: reference, startsAt: now, endsAt };
    history.giveDue(false);
  };

const refundStep = (index: number, amount: bigint): Step =>
  async function refunding(history) {
    const charge = history.paid[index % Math.max(1, history.paid.length)];
    if (charge === undefined) return;
    history.giveDue(false);
    const reference = `refund-${++history.references}`;
    const refund = () =>
      history.world.host
        .get(pool)
        .refundRequest('alice', charge.id, money(amount), { reason: 'test', reference })
        .then(
          () => true,
          (error: GatewayError) => assert.equal(error.status, 409, String(error)),
        );
    assert.equal((await refund()) === true, amount <= charge.left);
    if (amount > charge.left) return;
    await refund();
    charge.left -= amount;
    history.account.wallet += amount;
  };

const payoutStep = (index: number, amount: bigint): Step =>
  async function payingOut(history) {
    const of = history.topUps[index % Math.max(1, history.topUps.length)];
    if (of === undefined) return;
    history.giveDue(true);
    const { grants } = await history.world.host.get(pool).view('alice');
    const left = grants.find((grant) => grant.reference === of)?.remaining ?? 0n;
    const inUse = history.account.wallet - history.account.held;
    const covered = left > 0n && amount <= left && amount <= inUse;
    const reference = `payout-${++history.references}`;
    const back = () =>
      history.world.host
        .get(pool)
        .refundCredit('alice', of, money(amount), { reason: 'test', reference })
        .then(
          () => true,
          (error: GatewayError) => assert.ok(error.status === 402 || error.status === 404, String(error)),
        );
    assert.equal((await back()) === true, covered);
    if (!covered) return;
    await back();
    history.account.wallet -= amount;
  };

const passStep = (minutes: number): Step =>
  async function passing(history) {
    history.world.host.advance(minutes * 60_000);
  };

/** A visitor of the account sees what a call could spend: the grant of the plan that calls are on is there. */
async function looking(history: History): Promise<void> {
  history.world.host.advance(1_000);
  await history.flush();
  history.giveDue(true);
  const { balance, held, spendable } = await history.world.host.get(pool).view('alice');
  await history.noteLapses();
  assert.deepEqual(
    [balance, held, spendable],
    [history.account.balance, history.account.held, history.account.spendable(history.now)],
  );
}

/** What has expired of an account without visitors is booked, unless calls that began before may need it. */
async function booking(history: History): Promise<void> {
  await history.flush();
  const isLeft = () =>
    history.account.lots.some(({ left, expiresAt }) => left > 0n && expiresAt <= history.now - hourMs / 4);
  if (isLeft()) history.giveDue(false);
  await history.world.tick('book what has expired');
  await history.noteLapses();
  if (history.account.held === 0n) assert.equal(isLeft(), false);
}

async function sweeping(history: History): Promise<void> {
  await history.world.tick('forget idle accounts');
}

/** The database commits a batch, and its answer is lost: the batch is applied once more. */
async function repeating(history: History): Promise<void> {
  history.world.faults.afterCommit = true;
  await history.flush();
  history.world.faults.afterCommit = false;
  history.world.host.advance(10_000);
  await history.flush();
}

async function crashing(history: History): Promise<void> {
  const { now } = history;
  for (const call of [...history.running]) {
    history.close(call, cost({ input: call.inputTokens, output: 0 }, price));
  }
  await history.flush();
  history.world = offering(await history.world.crash());
  history.world.host.advance(now - history.now);
}

const index = fc.nat(9);
const tokens = fc.nat(1_500);
/** At least one: more than none would be impossible where none may be made. */
const limits = fc.integer({ min: 1, max: 1_500 });
const amount = fc.bigInt(1n, 20_000_000n);
const steps = fc.oneof(
  { weight: 8, arbitrary: fc.tuple(fc.integer({ min: 1, max: 3_000 }), limits).map((given) => enterStep(...given)) },
  { weight: 3, arbitrary: fc.tuple(index, tokens).map((given) => observeStep(...given)) },
  { weight: 6, arbitrary: fc.tuple(index, fc.boolean(), tokens).map((given) => endStep(...given)) },
  { weight: 4, arbitrary: fc.tuple(amount, fc.constantFrom(0, 1, 3, 30)).map((given) => creditStep(...given)) },
  { weight: 2, arbitrary: amount.map(debitStep) },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.integer({ min: 1, max: 9 }), fc.bigInt(0n, 8_000_000n)).map((given) => buyStep(...given)),
  },
  { weight: 1, arbitrary: fc.tuple(index, amount).map((given) => refundStep(...given)) },
  { weight: 1, arbitrary: fc.tuple(index, amount).map((given) => payoutStep(...given)) },
  { weight: 6, arbitrary: fc.constantFrom(1, 20, 61, 301, 1_441, 4 * 1_441).map(passStep) },
  { weight: 1, arbitrary: fc.constant<Step>(sweeping) },
  { weight: 2, arbitrary: fc.constant<Step>(looking) },
  { weight: 2, arbitrary: fc.constant<Step>(booking) },
  { weight: 1, arbitrary: fc.constant<Step>(crashing) },
  { weight: 2, arbitrary: fc.tuple(index, tokens).map(([at, output]) => lostEndStep(at, output)) },
);

test('after any grants, spending, purchases, debits and refunds over time, each grant and window agrees with a naive account', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 10, maxLength: 60, size: 'max' }), async (list) => {
      const history = new History(await newWorld({ section: { hold: { output_tokens: step } } }));
      try {
        for (const run of list) {
          await run(history);
          await history.check();
        }
        await crashing(history);
        await history.check();
        assert.deepEqual((await history.world.audit()).violations, []);
        await checkView(history);
        await checkFlows(history);
      } finally {
        await history.world.stop();
        history.world.leave();
      }
    }),
    { numRuns: runsOf(3, 20), endOnFailure: true },
  );
});

/** Paid and given money, in the whole time and in parts of it, as going through all rows finds it. */
async function checkFlows({ world, now }: History): Promise<void> {
  const flows = await flowsByRows(
    (statement) => world.rows(statement),
    (name) => world.table(name),
  );
  const begin = Math.min(...flows.map(({ at }) => at), now);
  const middle = begin + Math.floor((now - begin) / 2);
  for (const [from, until] of [
    [begin, now + 1],
    [begin, middle],
    [middle, now + 1],
  ] as const) {
    const sum = (what: Flow['what']) => sumWithin(flows, what, from, until);
    assert.deepEqual(await world.host.get(ledgerQueries).flows({ from, until }), {
      ...{ card: sum('card'), byHand: sum('byHand'), paidBack: sum('paidBack') },
      ...{ givenByPlans: sum('plan'), givenByCodes: sum('code'), givenByPromotions: sum('promotion') },
      ...{ usedPaid: sum('usedPaid'), usedGiven: sum('usedGiven'), owed: sum('owed') },
    });
  }
}

/** Each grant's rest, and that they add up to what is there. */
async function checkView(history: History): Promise<void> {
  history.giveDue(true);
  const view = await history.world.host.get(pool).view('alice');
  await history.noteLapses();
  const { account, now } = history;
  assert.deepEqual([view.balance, view.held, view.spendable], [account.balance, 0n, account.spendable(now)]);
  const expiring = view.grants.filter(({ expiresAt }) => expiresAt !== undefined);
  const left = account.lots.filter((lot) => lot.left > 0n).sort((one, other) => one.expiresAt - other.expiresAt);
  const by = (text: [number, bigint]) => text.join(' ');
  assert.deepEqual(
    expiring.map(({ expiresAt, remaining }) => by([expiresAt!, remaining])).sort(),
    left.map(({ expiresAt, left: rest }) => by([expiresAt, rest])).sort(),
  );
  const sum = view.grants.reduce((total, { remaining }) => total + remaining, 0n);
  assert.equal(sum + (account.wallet < 0n ? account.wallet : 0n), view.balance);
}
