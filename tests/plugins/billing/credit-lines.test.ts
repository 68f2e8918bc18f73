/** Credit lines: random histories against sums of a few numbers; months, payments, refunds, decisions in the middle, two processes. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { GatewayError } from '../../../core/contract/errors.ts';
import { monthAt, monthOf } from '../../../plugins/billing/grants/months.ts';
import { linesIn } from '../../../plugins/billing/statements/lines.ts';
import { verifyStatement } from '../../../plugins/billing/statements/verify.ts';
import { pool } from '../../../plugins/common/domain/ledger.ts';
import { cost, costBound, formatUsd, type Money, money, parseUsd } from '../../../plugins/common/domain/money.ts';
import { budgetAdmin } from '../../../plugins/common/domain/organizations/budgets.ts';
import { creditLineAdmin } from '../../../plugins/common/domain/organizations/credit-lines.ts';
import { statementAdmin } from '../../../plugins/common/domain/organizations/statements.ts';
import { runsOf } from '../../helpers/histories.ts';
import { fc } from '../../helpers/properties.ts';
import { answer, enter, leaveWorlds, newCall, newWorld, price, temporaryDirectory, type World } from './world.ts';

after(leaveWorlds);

const zone = 'Europe/Berlin';
const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const step = 100;
const section = { statements: { zone }, hold: { output_tokens: step }, credit_lines: { stop_after: '7d' } };
/** How long a process may spend what it knows of. */
const noticeMs = 20 * minuteMs;
const dueMs = 14 * dayMs;

const lines = (world: World) => world.host.get(creditLineAdmin);
const view = async (world: World) => (await lines(world).find('alice'))!;
const set = (world: World, amount: bigint) => lines(world).set('alice', money(amount), 'test');
const usd = (text: string) => parseUsd(text) as bigint;

/** A call of this much. */
async function spend(world: World, amount: string): Promise<string> {
  const input = Number(usd(amount) / 2_000n);
  const exchange = newCall({ call: { inputTokens: input, maxOutputTokens: 1 } });
  await enter(world, exchange);
  await answer(exchange, { input });
  await world.tick('write the ledger');
  return exchange.id;
}

async function seal(world: World): Promise<void> {
  const { work } = world.host.intervals.find(({ name }) => name === 'seal statements')!;
  for (let round = 0; (await work()) !== 'idle'; round++) assert.ok(round < 20, 'sealing has no end');
}

function toNextMonth(world: World): void {
  const now = world.host.clock.now();
  world.host.advance(monthOf(monthAt(now, zone), zone).until - now);
}

const months = async (world: World) => (await view(world)).months.map(({ used, paid, state }) => [used, paid, state]);

async function checked(world: World): Promise<void> {
  const report = await world.audit();
  assert.deepEqual(report.violations, []);
}

test('a line is used behind all other money, and its used part is due when its month has ended, until a payment covers it', async () => {
  await using world = await newWorld({ section, credit: '1' });
  await seal(world);
  await set(world, usd('10'));
  await spend(world, '3');
  assert.deepEqual(await months(world), [[usd('2'), 0n, 'running']], 'the wallet has paid 1');
  assert.equal((await view(world)).left, usd('8'));
  toNextMonth(world);
  assert.deepEqual((await months(world)).at(-1), [usd('2'), 0n, 'due']);
  assert.equal((await world.host.get(pool).view('alice')).spendable, usd('10'), 'the next month has a line of its own');
  await world.credit('0.5');
  assert.deepEqual((await months(world)).at(-1), [usd('2'), usd('0.5'), 'due']);
  await world.credit('5');
  assert.deepEqual((await months(world)).at(-1), [usd('2'), usd('2'), 'paid']);
  assert.equal((await world.host.get(pool).view('alice')).spendable, usd('13.5'), 'what lies beyond it is prepaid');
  world.host.advance(dayMs);
  await view(world);
  await checked(world);
  toNextMonth(world);
  world.host.advance(60 * minuteMs);
  await seal(world);
  const { lines: sums } = await statementOf(world, 2);
  const ofLine = sums.filter(({ of }) => of === 'credit_line').map(({ kind, amount }) => [kind, amount]);
  assert.deepEqual(ofLine, [
    ['CREDIT', usd('10')],
    ['EXPIRE', -usd('8')],
    ['PAYOUT', -usd('2')],
  ]);
  assert.deepEqual((await statementOf(world, 2)).credit, [], 'what was paid before the end is not due');
  const { credit, text } = await statementOf(world, 1);
  assert.deepEqual(credit, [{ used: usd('2'), paid: 0n, state: 'due' }], 'as it was at the end of the month');
  for (const [forged, what] of [
    [text.replace('"credit":[{"month":"2027-01"', '"credit":[{"month":"2027-02"'), /was changed/],
    [text.replace('"used":"2000000000","paid":"0"', '"used":"1000000000","paid":"0"'), /credit line/],
    [text.replace('"due":"2000000000"', '"due":"1000000000"'), /credit line/],
    [text.replace('"state":"due"', '"state":"overdue"'), /credit line/],
    [text.replace('"used":"2000000000","paid":"0"', '"used":"2000000000","paid":"2000000000"'), /not more was used/],
    [text.replace(/"until":"[^"]*","due_at"/, '"until":"2099-01-01T00:00:00.000Z","due_at"'), /has not ended/],
    [text.replace(/"credit":\[.*?\]/, '"credit":[]'), /credit line/],
  ] as const) {
    assert.notEqual(forged, text);
    assert.match((await verified(forged)).text, what);
  }
  await assert.rejects(
    world.rows(sql`alter table ${world.table('statements')} disable trigger immutable`).then(async () => {
      await world.rows(
        sql`update ${world.table('statements')} set summary = replace(summary::text, '"paid":"0"', '"paid":"1"')::json where number = 1`,
      );
      return statementOf(world, 1);
    }),
    /is not what statement 1 was sealed with/,
  );
});

async function verified(text: string) {
  const path = join(temporaryDirectory(), 'statement.jsonl');
  await writeFile(path, text);
  return verifyStatement(linesIn(path));
}

/** A statement with what is to be paid, by its file, which proves itself, by the page and by the forms. */
async function statementOf(world: World, number: number) {
  const statements = world.host.get(statementAdmin);
  const textOf = async (form: 'json' | 'csv' | 'focus') => {
    let whole = '';
    for await (const part of statements.file('alice', number, form)) whole += part;
    return whole;
  };
  const text = await textOf('json');
  const verdict = await verified(text);
  assert.ok(verdict.ok, verdict.text);
  const sums = JSON.parse(text.trimEnd().split('\n').at(-1)!) as { credit?: readonly Record<string, string>[] };
  const { credit, lines: found } = (await statements.find('alice', number))!;
  const dueOf = ({ used, paid }: { used: bigint; paid: bigint }) => used - paid;
  assert.deepEqual(
    (sums.credit ?? []).map(({ month, due }) => [month, BigInt(due!)]),
    credit.map((month) => [month.month, dueOf(month)]),
  );
  const csv = (await textOf('csv')).split('\r\n').filter((line) => line.includes(',DUE,credit_line,'));
  assert.deepEqual(
    csv.map((line) => line.split(',').slice(-3, -1)),
    credit.map((month) => [month.month, formatUsd(money(dueOf(month)))]),
  );
  const focus = (await textOf('focus')).split('\r\n').filter((line) => line.includes('To be paid of the credit line'));
  assert.deepEqual(
    focus.map((line) => line.includes(`,${formatUsd(money(dueOf(credit[focus.indexOf(line)]!)))},`)),
    credit.map(() => true),
  );
  return { text, lines: found, credit: credit.map(({ used, paid, state }) => ({ used, paid, state })) };
}

test('a call that ends behind its month, and a payment before the statement is sealed, count in the next one', async () => {
  await using world = await newWorld({ section });
  await seal(world);
  await set(world, usd('10'));
  await spend(world, '3');
  const exchange = newCall({ call: { inputTokens: 1_000, maxOutputTokens: 1 } });
  await enter(world, exchange);
  toNextMonth(world);
  await answer(exchange, { input: 1_000 });
  await world.tick('write the ledger');
  await world.credit('1');
  const late = cost({ input: 1_000 }, price);
  assert.deepEqual((await months(world)).at(-1), [usd('3') + late, usd('1'), 'due']);
  world.host.advance(60 * minuteMs);
  await seal(world);
  assert.deepEqual((await statementOf(world, 1)).credit, [{ used: usd('3'), paid: 0n, state: 'due' }]);
  toNextMonth(world);
  world.host.advance(60 * minuteMs);
  await seal(world);
  const next = (await statementOf(world, 2)).credit;
  assert.deepEqual(next, [{ used: usd('3') + late, paid: usd('1'), state: 'overdue' }]);
  await checked(world);
});

test('a promotion, money that expires and a second arrival of a payment leave the due amount as it is', async () => {
  await using world = await newWorld({ section });
  await set(world, usd('10'));
  await spend(world, '4');
  toNextMonth(world);
  const entry = { reason: 'test', kind: 'top-up', reference: 'one' };
  const credit = (amount: string, given: object) =>
    world.host
      .get(pool)
      .transact('alice', money(0n), (posting) => posting.credit(parseUsd(amount), { ...entry, ...given }));
  await credit('1', { kind: 'promotion', reference: 'two' });
  await credit('1', { reference: 'three', expiresAt: world.host.clock.now() + dayMs });
  assert.deepEqual((await months(world)).at(-1), [usd('4'), 0n, 'due']);
  await credit('1', {});
  await credit('1', {});
  assert.deepEqual((await months(world)).at(-1), [usd('4'), usd('1'), 'due']);
  await checked(world);
});

test('a month that stays unpaid is overdue, stops the line where that is set, and a payment opens it at once', async () => {
  await using world = await newWorld({ section });
  await set(world, usd('10'));
  await spend(world, '4');
  toNextMonth(world);
  assert.equal((await view(world)).left, usd('10'));
  world.host.advance(dueMs);
  const overdue = await view(world);
  assert.deepEqual([overdue.months.at(-1)!.state, overdue.isStopped], ['overdue', false]);
  assert.equal(overdue.stopsAt, world.host.clock.now() + 7 * dayMs);
  assert.deepEqual(
    (await lines(world).unpaid('', 10)).map(({ accountId, months: [month] }) => [accountId, month?.state]),
    [['alice', 'overdue']],
  );
  world.host.advance(7 * dayMs);
  assert.equal((await view(world)).isStopped, true);
  world.host.advance(noticeMs);
  await assert.rejects(spend(world, '1'), { status: 402 });
  await world.credit('4');
  assert.deepEqual([(await view(world)).isStopped, (await view(world)).left], [false, usd('10')]);
  await spend(world, '1');
  assert.deepEqual(
    (await lines(world).unpaid('', 10)).flatMap(({ months: unpaid }) => unpaid),
    [],
  );
  await checked(world);
});

test('a refund of a charge that a line has paid lowers the due amount before it is money of the client', async () => {
  await using world = await newWorld({ section, credit: '1' });
  await set(world, usd('10'));
  const id = await spend(world, '4');
  const refund = (amount: string, reference: string) =>
    world.host.get(pool).refundRequest('alice', id, parseUsd(amount), { reason: 'test', reference });
  await refund('1', 'first');
  await refund('1', 'first');
  assert.deepEqual(await months(world), [[usd('3'), usd('1'), 'running']]);
  assert.equal((await view(world)).left, usd('8'), 'it can be used again');
  toNextMonth(world);
  await view(world);
  await refund('3', 'second');
  assert.deepEqual((await months(world)).at(-1), [usd('3'), usd('3'), 'paid']);
  assert.equal((await world.host.get(pool).view('alice')).spendable, usd('11'), 'the part that the wallet had paid');
  await checked(world);
});

test('two processes that come to a new month at once bring its line once', async () => {
  await using world = await newWorld({ section, bridgeMs: 1_000 });
  await set(world, usd('10'));
  toNextMonth(world);
  const { database } = world;
  await using other = await newWorld({ section, bridgeMs: 1_000, schema: database.schema, leave: world.leave });
  other.host.advance(world.host.clock.now() - other.host.clock.now());
  const look = (each: World) => each.host.get(pool).applyDue('alice');
  await Promise.all([look(world), look(other), look(world), look(other)]);
  const [row] = await world.rows<{ given: string; sum: string }>(
    sql`select count(*)::text as given, sum(amount)::text as sum from ${world.table('grants')} where kind = 'credit_line'`,
  );
  assert.deepEqual(row, { given: '2', sum: String(usd('20')) });
  await checked(world);
});

test('where several processes serve, a first decision is noticed beside accounts of more, and a call brings the next month of it', async () => {
  await using world = await newWorld({ section, bridgeMs: 1_000, credit: '1' });
  for (const amount of ['1', '2']) await lines(world).set('bob', parseUsd(amount), 'test');
  await spend(world, '0.1');
  await set(world, usd('10'));
  await spend(world, '0.1');
  toNextMonth(world);
  await spend(world, '5');
  assert.equal((await months(world))[0]![0], usd('4.2'), 'the wallet had 0.8');
  await checked(world);
});

const zones = ['UTC', 'Asia/Tokyo', 'America/Los_Angeles', 'Pacific/Apia', 'Pacific/Auckland'];
const zoneDeed = fc.oneof(
  { weight: 2, arbitrary: fc.record({ zone: fc.constantFrom(undefined, ...zones) }) },
  { weight: 3, arbitrary: fc.record({ hours: fc.constantFrom(1, 5, 11, 24, 300, 720) }) },
  { weight: 3, arbitrary: fc.record({ amount: fc.constantFrom('0.5', '2', '4') }) },
);

test('months of a line end with those of the time zone of its account, and however often that changes none brings more than the line', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(zoneDeed, { minLength: 5, maxLength: 25 }), async (deeds) => {
      await using world = await newWorld({ section: { ...section, credit_lines: {} } });
      // A month ends in one zone after the other.
      world.host.advance(Date.parse('2027-01-30T20:00:00Z') - world.host.clock.now());
      let own: string | undefined;
      await set(world, usd('5'));
      const known = new Set(['credit_line:alice:2027-01:1']);
      for (const deed of deeds) {
        if ('hours' in deed) world.host.advance(deed.hours * 60 * minuteMs);
        else if ('zone' in deed) {
          own = deed.zone;
          await world.host.get(budgetAdmin).setZone('alice', own);
        } else await spend(world, deed.amount).catch((error: GatewayError) => assert.equal(error.status, 402));
        const { months: shown } = await view(world);
        for (const { used } of shown) assert.ok(used <= usd('5'));
        const given = await world.rows<{ reference: string; ends: string }>(
          sql`select reference, (extract(epoch from expires_at) * 1000)::bigint::text as ends
              from ${world.table('grants')} where kind = 'credit_line'`,
        );
        const now = monthOf(monthAt(world.host.clock.now(), own ?? zone), own ?? zone);
        for (const { reference, ends } of given) {
          if (known.has(reference)) continue;
          known.add(reference);
          assert.equal(reference.split(':').at(-2), now.name, `in ${own}`);
          assert.equal(Number(ends), now.until);
        }
        assert.ok(
          given.some(({ reference }) => reference.split(':').at(-2) === now.name),
          `${now.name} has its line`,
        );
      }
      await checked(world);
      world.leave();
    }),
    { numRuns: runsOf(5, 100), endOnFailure: true },
  );
});

test('a running process brings the month that begins with another time zone of its account', async () => {
  await using world = await newWorld({ section });
  world.host.advance(Date.parse('2027-01-31T20:00:00Z') - world.host.clock.now());
  await set(world, usd('5'));
  await spend(world, '4');
  await assert.rejects(spend(world, '4'), { status: 402 });
  await world.host.get(budgetAdmin).setZone('alice', 'Asia/Tokyo');
  await world.tick('write the ledger');
  await spend(world, '4');
  assert.deepEqual(
    (await view(world)).months.map(({ month, used }) => [month, used]),
    [
      ['2027-02', usd('3')],
      ['2027-01', usd('5')],
    ],
  );
  await checked(world);
});

/** The account as a few numbers; what is open of a line follows from what was used and paid of its month. */
class Naive {
  wallet = 0n;
  line: bigint | undefined;
  left = 0n;
  readonly months = new Map<string, { used: bigint; paid: bigint; until: number }>();

  monthOf(at: number) {
    const { name, until } = monthOf(monthAt(at, zone), zone);
    const known = this.months.get(name) ?? { used: 0n, paid: 0n, until };
    if (!this.months.has(name)) this.left = 0n;
    this.months.set(name, known);
    return known;
  }

  /** Until all that is due has happened. */
  settle(at: number): void {
    const month = this.monthOf(at);
    const late = [...this.months.values()].some(
      ({ used, paid, until }) => used > paid && until + dueMs + 7 * dayMs <= at,
    );
    const allowed = late ? 0n : (this.line ?? 0n);
    const room = allowed - (month.used - month.paid);
    if (room < this.left) this.left = room > 0n ? room : 0n;
    const owed = this.wallet < 0n ? -this.wallet : 0n;
    const more = room - this.left;
    if (more <= 0n) return;
    const covered = owed < more ? owed : more;
    this.wallet += covered;
    month.used += covered;
    this.left += more - covered;
  }

  /** Resolves with what the line has paid of it. */
  spend(amount: bigint, at: number): bigint {
    const month = this.monthOf(at);
    const own = this.wallet > 0n ? least(this.wallet, amount) : 0n;
    const credit = least(this.left, amount - own);
    this.wallet -= amount - credit;
    this.left -= credit;
    month.used += credit;
    return credit;
  }

  pay(amount: bigint, months: Iterable<{ used: bigint; paid: bigint }>): void {
    let left = least(amount, this.wallet);
    for (const month of months) {
      const part = least(month.used - month.paid, left);
      if (part <= 0n) continue;
      month.paid += part;
      this.wallet -= part;
      left -= part;
    }
  }
}

const least = (left: bigint, right: bigint) => (left < right ? left : right);

class History {
  readonly naive = new Naive();
  readonly calls: { id: string; month: { used: bigint; paid: bigint }; cost: bigint; credit: bigint; back: bigint }[] =
    [];
  readonly world: World;
  references = 0;

  constructor(world: World) {
    this.world = world;
  }

  get now(): number {
    return this.world.host.clock.now();
  }

  /** What the view says is to be paid when a month ends, by month. */
  readonly ends = new Map<string, object[]>();

  async pass(ms: number): Promise<void> {
    const later = this.now + ms;
    for (;;) {
      const { name, until } = monthOf(monthAt(this.now, zone), zone);
      if (until > later) break;
      this.world.host.advance(until - this.now);
      this.naive.settle(this.now);
      const { months: shown } = await view(this.world);
      const unpaid = shown.filter(({ state }) => state === 'due' || state === 'overdue').toReversed();
      this.ends.set(
        name,
        unpaid.map(({ used, paid, state }) => ({ used, paid, state })),
      );
    }
    this.world.host.advance(later - this.now);
  }

  /** Each statement says what the view has said when its month ended. */
  async checkStatements(): Promise<void> {
    const { world } = this;
    await this.pass(32 * dayMs);
    await seal(world);
    const { rows } = await world.host.get(statementAdmin).list('alice', { limit: 500 });
    assert.ok(rows.length > 0);
    for (const { number, month } of rows)
      assert.deepEqual((await statementOf(world, number)).credit, this.ends.get(month), month);
  }

  async call(input: number, output: number): Promise<void> {
    await this.pass(1_000);
    this.naive.settle(this.now);
    const exchange = newCall({ call: { inputTokens: input, maxOutputTokens: 1_000 } });
    const bound = costBound(input, step, price);
    const spendable = this.naive.wallet + this.naive.left;
    const refused = await enter(this.world, exchange).then(
      () => false,
      (error: GatewayError) => error.status === 402 || assert.fail(error),
    );
    assert.equal(refused, bound > spendable, `${bound} of ${spendable}`);
    if (refused) return;
    await answer(exchange, { input, output });
    await this.world.tick('write the ledger');
    const charged = cost({ input, output }, price);
    const month = this.naive.monthOf(this.now);
    const credit = this.naive.spend(charged, this.now);
    this.calls.push({ id: exchange.id, month, cost: charged, credit, back: 0n });
  }

  async pay(amount: bigint): Promise<void> {
    const { naive, now } = this;
    naive.settle(now);
    const reference = `payment-${++this.references}`;
    const credit = () =>
      this.world.host
        .get(pool)
        .transact('alice', money(0n), (posting) =>
          posting.credit(money(amount), { kind: 'top-up', reason: 'test', reference }),
        );
    assert.equal(await credit(), true);
    assert.equal(await credit(), false);
    naive.wallet += amount;
    naive.pay(
      amount,
      [...naive.months.values()].filter(({ until }) => until <= now),
    );
  }

  async set(amount: bigint): Promise<void> {
    this.naive.settle(this.now);
    await set(this.world, amount);
    this.naive.line = amount;
    // What is lowered ends when each process knows of it.
    await this.pass(noticeMs);
  }

  async refund(index: number, amount: bigint): Promise<void> {
    const call = this.calls[index % Math.max(1, this.calls.length)];
    if (call === undefined || call.cost - call.back < amount) return;
    this.naive.settle(this.now);
    const entry = { reason: 'test', reference: `refund-${++this.references}` };
    await this.world.host.get(pool).refundRequest('alice', call.id, money(amount), entry);
    this.naive.wallet += amount;
    this.naive.pay(least(amount, call.credit - call.back > 0n ? call.credit - call.back : 0n), [call.month]);
    call.back += amount;
  }

  async check(): Promise<void> {
    const { naive, world } = this;
    // What stops does so when each process knows of it.
    await lines(world).find('alice');
    await this.pass(noticeMs);
    naive.settle(this.now);
    const seen = await lines(world).find('alice');
    const spendable: Money = (await world.host.get(pool).view('alice')).spendable;
    assert.equal(spendable, naive.wallet + naive.left);
    assert.equal(seen?.amount, naive.line);
    assert.equal(seen?.left ?? 0n, naive.left);
    const known = [...naive.months.values()].filter(({ used }) => used > 0n);
    const shown = (seen?.months ?? []).filter(({ used }) => used > 0n).toReversed();
    assert.deepEqual(
      shown.map(({ used, paid, until }) => ({ used, paid, until })),
      known.slice(-shown.length),
    );
    for (const { used, paid } of known) assert.ok(paid >= 0n && paid <= used, 'no more is paid than was used');
  }
}

const amounts = fc.bigInt({ min: 1n, max: 20_000_000n });
const deed = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(
      fc.constant('call' as const),
      fc.integer({ min: 1, max: 2_000 }),
      fc.integer({ min: 0, max: 999 }),
    ),
  },
  { weight: 2, arbitrary: fc.tuple(fc.constant('pay' as const), amounts) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('set' as const), fc.oneof(fc.constant(0n), amounts)) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('refund' as const), fc.nat(), fc.bigInt({ min: 1n, max: 6_000_000n })) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('pass' as const), fc.integer({ min: 1, max: 20 * 24 * 60 })) },
);

test('random calls, payments, refunds, decisions and months leave what a few numbers and the statements say, and rows that the audit accepts', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(deed, { minLength: 5, maxLength: 30 }), async (deeds) => {
      await using world = await newWorld({ section });
      await seal(world);
      const history = new History(world);
      await history.set(usd('0.01'));
      for (const [name, ...given] of deeds) {
        if (name === 'pass') await history.pass((given[0] as number) * minuteMs);
        else await (history[name] as (...some: unknown[]) => Promise<void>).call(history, ...given);
        await history.check();
      }
      await history.checkStatements();
      await checked(world);
      world.leave();
    }),
    { numRuns: runsOf(3, 100), endOnFailure: true },
  );
});
