/** The pool as a running gateway uses it: windows that refuse, money that expires, debits beside calls, refunds, and their audit. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { GatewayError } from '../../../core/contract/errors.ts';
import { type Accounts, accounts } from '../../../plugins/common/domain/accounts.ts';
import { ledger, type Pool, pool } from '../../../plugins/common/domain/ledger.ts';
import { type PlanTerms, plan } from '../../../plugins/common/domain/plans.ts';
import { answer, enter, entered, leaveWorlds, meterOf, newCall, newWorld, send, usd, type World } from './world.ts';

after(leaveWorlds);

const hourMs = 3_600_000;
const pro: PlanTerms = {
  name: 'pro',
  limits: {},
  models: undefined,
  multiplier: undefined,
  grant: { amount: usd('1'), every: 'month' },
  windows: { '5h': usd('0.01'), week: usd('0.015') },
};
/** 0.003 USD of input and output, of which each call here uses all. */
const onPlan = () => newCall({ facts: [[plan, pro]] });
const usage = { input: 1_000, output: 100 };
const poolService = (world: World): Pool => world.host.get(pool);

async function refusalOf(world: World, exchange = onPlan()): Promise<GatewayError> {
  return enter(world, exchange).then(
    () => assert.fail('the call was let in'),
    (error: GatewayError) => error,
  );
}

async function call(world: World): Promise<void> {
  const exchange = onPlan();
  await enter(world, exchange);
  await answer(exchange, usage);
  await world.tick('write the ledger');
}

test('a used-up window refuses with 402, names itself and the time when it frees, and frees by the clock alone', async () => {
  const world = await newWorld();
  const start = world.host.clock.now();
  for (let round = 0; round < 3; round += 1) await call(world);
  const refusal = await refusalOf(world);
  assert.deepEqual([refusal.status, refusal.code, refusal.shouldRetry], [402, 'plan_window_used_up', false]);
  // Windows of a plan that no one bought are counted from the calendar: 2024-01-01T00:00Z and every five hours.
  const frees = start - ((start - Date.UTC(2024, 0, 1)) % (5 * hourMs)) + 5 * hourMs;
  assert.match(refusal.message, /5-hour window of the plan is used up: 0\.01 USD/);
  assert.ok(refusal.message.includes(new Date(frees).toISOString()), refusal.message);
  assert.equal(await world.balance(), usd('0.991'));
  // Other money is not bounded by the plan's windows.
  await world.credit('0.002');
  await call(world);
  assert.equal(await world.balance(), usd('0.99'));
  world.host.advance(frees - start);
  await call(world);
  // By now the week has paid 0.013 of its 0.015.
  const second = await refusalOf(world);
  assert.match(second.message, /weekly window/);
  await world.stop();
  assert.deepEqual((await world.audit()).violations, []);
});

test('a rich account with grants and windows needs no round trip to the database: calls are served while it is down', async () => {
  const world = await newWorld({ credit: '1' });
  await call(world);
  world.faults.down = true;
  for (let index = 0; index < 20; index += 1) {
    const exchange = onPlan();
    await enter(world, exchange);
    await answer(exchange, usage);
  }
  world.faults.down = false;
  await world.stop();
  assert.equal(await world.balance(), usd('1.937'));
  assert.deepEqual((await world.audit()).violations, []);
});

test('parallel calls never take more than a window has', async () => {
  await using world = await newWorld();
  await call(world);
  const reply = await Promise.allSettled(Array.from({ length: 50 }, () => enter(world, onPlan())));
  assert.equal(reply.filter(({ status }) => status === 'fulfilled').length, 2);
});

test('an answer that outgrows its window is ended, and paid in full', async () => {
  const world = await newWorld();
  const exchange = onPlan();
  await enter(world, exchange);
  await send(exchange);
  assert.equal(meterOf(exchange).observe(800), true);
  assert.equal(meterOf(exchange).observe(801), false);
  const other = onPlan();
  await refusalOf(world, other);
  await answer(exchange, { input: 1_000, output: 801 });
  await world.tick('write the ledger');
  assert.equal(await world.balance(), usd('0.98999'));
  const { windows, spendable } = await poolService(world).view('alice');
  assert.deepEqual([windows.map(({ spent }) => spent), spendable], [[usd('0.01001'), usd('0.01001')], 0n]);
  await world.stop();
  assert.deepEqual((await world.audit()).violations, []);
});

test('the grant that expires first is spent first; a call that began before pays with it, and the rest lapses once', async () => {
  const world = await newWorld();
  const expiresAt = world.host.clock.now() + hourMs;
  const give = { kind: 'promotion', reason: 'test', reference: 'spring' };
  await world.credit('1');
  await world.host.get(ledger).credit('alice', usd('0.01'), { ...give, expiresAt });
  const early = await entered(world);
  await world.tick('write the ledger');
  world.host.advance(hourMs);
  const { spendable, balance } = await poolService(world).view('alice');
  assert.deepEqual([balance, spendable], [usd('1.007'), usd('0.997')]);
  await answer(early, usage);
  await world.tick('write the ledger');
  world.host.advance(hourMs / 4);
  await Promise.all(Array.from({ length: 5 }, () => poolService(world).view('alice')));
  const rows = await world.rows<{ kind: string; amount: string }>(
    sql`select kind, amount::text as amount from ${world.table('movements')} where kind = 'EXPIRE'`,
  );
  assert.deepEqual(rows, [{ kind: 'EXPIRE', amount: '-7000000' }]);
  assert.equal(await world.balance(), usd('1'));
  await world.stop();
  assert.deepEqual((await world.audit()).violations, []);
});

test('a grant pays for calls made before its expiry, even if the database has their rows only afterwards', async () => {
  const world = await newWorld();
  const expiresAt = world.host.clock.now() + hourMs;
  await world.host
    .get(ledger)
    .credit('alice', usd('0.01'), { kind: 'promotion', reason: 'test', reference: 'spring', expiresAt });
  assert.equal((await poolService(world).view('alice')).balance, usd('0.01'));
  const first = await entered(world);
  world.faults.down = true;
  await answer(first, usage);
  for (let call = 0; call < 2; call += 1) {
    const exchange = await entered(world);
    await answer(exchange, usage);
  }
  await world.tick('write the ledger');
  world.host.advance(72 * hourMs);
  world.faults.down = false;
  const { balance, spendable } = await poolService(world).view('alice');
  await world.tick('write the ledger');
  assert.ok(spendable <= 0n && balance >= 0n);
  world.host.advance(hourMs);
  assert.equal((await poolService(world).view('alice')).balance, 0n);
  const rows = await world.rows<{ amount: string }>(
    sql`select amount::text as amount from ${world.table('movements')} where kind = 'EXPIRE'`,
  );
  assert.deepEqual(rows, [{ amount: '-1000000' }]);
  await world.stop();
  assert.deepEqual((await world.audit()).violations, []);
});

test('an authorization for days is paid only by the grant that it counted on', async () => {
  const world = await newWorld();
  const expiresAt = world.host.clock.now() + hourMs;
  const give = { kind: 'promotion', reason: 'test', expiresAt };
  const lapses = () =>
    world.rows<{ amount: string }>(
      sql`select amount::text as amount from ${world.table('movements')} where kind = 'EXPIRE' order by seq`,
    );
  for (const reference of ['spring', 'summer'])
    await world.host.get(ledger).credit('alice', usd('0.004'), { ...give, reference });
  const long = await entered(world);
  await world.tick('write the ledger');
  world.host.advance(9 * 24 * hourMs);
  // The first grant may take of the free 0.005 USD; the second may not, of which the call has 0.003.
  const held = await poolService(world).view('alice');
  assert.deepEqual([held.balance, held.spendable], [usd('0.001'), usd('-0.003')]);
  assert.deepEqual(await lapses(), [{ amount: '-4000000' }]);
  await answer(long, usage);
  await world.tick('write the ledger');
  const left = await poolService(world).view('alice');
  assert.deepEqual([left.balance, left.held], [0n, 0n]);
  assert.deepEqual(await lapses(), [{ amount: '-4000000' }, { amount: '-1000000' }]);
  await world.stop();
  assert.deepEqual((await world.audit()).violations, []);
});

test('a debit includes the grant that is due, even without a call since', async () => {
  const world = await newWorld();
  const daily: PlanTerms = { ...pro, grant: { amount: usd('1'), every: 'day' }, windows: undefined };
  const endsAt = world.host.clock.now() + 9 * 24 * hourMs;
  await poolService(world).transact('alice', usd('0'), (posting) => posting.beginTerm(daily, endsAt));
  const take = (reference: string) => poolService(world).debit('alice', usd('0.8'), { reason: 'test', reference });
  await take('today');
  // The account stays in memory, where nothing of the next day's grant is known.
  const running = await entered(world);
  world.host.advance(24 * hourMs);
  await take('tomorrow');
  await assert.rejects(take('too much'), { code: 'insufficient_balance' });
  await answer(running, usage);
  await world.tick('write the ledger');
  await world.stop();
  assert.deepEqual((await world.audit()).violations, []);
});

/** Sells `pro` without its grant to an account of 1 USD, and again for `price` at each end of its term. */
async function soldAgain(world: World, price: string): Promise<() => number> {
  const lasting: PlanTerms = { ...pro, grant: undefined, windows: undefined };
  let sold = 0;
  poolService(world).onTermEnded(async (posting, { id }) => {
    try {
      if (!(await posting.purchase(usd(price), { reason: 'pro renewed', reference: `renewal:${id}` }))) return;
    } catch (error) {
      if ((error as GatewayError).code !== 'insufficient_balance') throw error;
      return;
    }
    sold += 1;
    await posting.beginTerm(lasting, posting.at + hourMs);
  });
  await world.credit('1');
  const endsAt = world.host.clock.now() + hourMs;
  await poolService(world).transact('alice', usd('0'), (posting) => posting.beginTerm(lasting, endsAt));
  return () => sold;
}

test('a due plan is not paid with money of a running call, even before the database knows of the call', async () => {
  const world = await newWorld();
  const sold = await soldAgain(world, '0.998');
  const running = await entered(world);
  world.host.advance(hourMs);
  // The call has 0.003 of 1 USD.
  await poolService(world).view('alice');
  assert.equal(sold(), 0);
  await answer(running, { input: 500, output: 100 });
  await world.tick('write the ledger');
  await poolService(world).view('alice');
  assert.equal(sold(), 1);
  assert.equal(await world.balance(), 0n);
  await world.stop();
  assert.deepEqual((await world.audit()).violations, []);
});

test("a purchase cannot use money that a running call needs where its grant's window allows no more", async () => {
  const world = await newWorld({ credit: '0.01' });
  const limited: PlanTerms = { ...pro, grant: { amount: usd('0.01'), every: 'day' }, windows: { day: usd('0.002') } };
  const endsAt = world.host.clock.now() + 9 * 24 * hourMs;
  await poolService(world).transact('alice', usd('0'), (posting) => posting.beginTerm(limited, endsAt));
  const running = await entered(world, { call: { inputTokens: 3_500 } });
  // The call has 0.008 of 0.02 USD: the window lets 0.002 of them be the grant's, and the rest is not for sale.
  const buy = (price: string) =>
    poolService(world).transact('alice', usd(price), (posting) =>
      posting.purchase(usd(price), { reason: 'test', reference: `sale ${price}` }),
    );
  await assert.rejects(buy('0.005'), { code: 'insufficient_balance' });
  assert.equal(await buy('0.002'), true);
  await answer(running, { input: 3_500, output: 100 });
  await world.tick('write the ledger');
  assert.equal(await world.balance(), usd('0.01'));
  await world.stop();
  assert.deepEqual((await world.audit()).violations, []);
});

test('a due plan and concurrent calls spend a balance once, and concurrent renewals buy the plan once', async () => {
  const world = await newWorld();
  const sold = await soldAgain(world, '0.991');
  await call(world);
  world.host.advance(hourMs);
  const views = Array.from({ length: 3 }, () => poolService(world).view('alice'));
  const calls = await Promise.allSettled(Array.from({ length: 10 }, () => enter(world, newCall())));
  await Promise.all(views);
  await world.tick('write the ledger');
  const [row] = await world.rows<{ balance: string }>(
    sql`select min(balance_after)::text as balance from ${world.table('movements')}`,
  );
  const admitted = calls.filter(({ status }) => status === 'fulfilled').length;
  const held = usd('0.003') * BigInt(admitted);
  assert.deepEqual([row!.balance, sold(), admitted], [`${held}`, 1, 2]);
  assert.equal(await world.balance(), 0n);
  await world.stop();
  assert.deepEqual((await world.audit()).violations, []);
});

test('debits and concurrent calls spend a balance once', async () => {
  await using world = await newWorld();
  await world.credit('0.03', 'alice');
  const calls = Array.from({ length: 10 }, () => enter(world, newCall()));
  const debits = Array.from({ length: 10 }, (_, index) =>
    poolService(world).debit('alice', usd('0.003'), { reason: 'test', reference: `debit-${index}` }),
  );
  const reply = await Promise.allSettled([...calls, ...debits]);
  assert.equal(reply.filter(({ status }) => status === 'fulfilled').length, 10);
  assert.equal(await world.balance(), 0n);
  await world.tick('write the ledger');
  const [row] = await world.rows<{ balance: string }>(
    sql`select balance::text as balance from ${world.table('balances')}`,
  );
  const held = usd('0.003') * BigInt(reply.slice(0, 10).filter(({ status }) => status === 'fulfilled').length);
  assert.equal(row!.balance, held.toString(), 'in the database is what running calls hold');
});

test('double refund: a charge is refunded once for each reference, and never beyond its amount', async () => {
  const world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  await answer(exchange, usage);
  await world.tick('write the ledger');
  const refund = (part: string, reference: string) =>
    poolService(world).refundRequest('alice', exchange.id, usd(part), { reason: 'bad answer', reference });
  const reply = await Promise.allSettled(Array.from({ length: 8 }, () => refund('0.001', 'ticket-1')));
  assert.ok(reply.every(({ status }) => status === 'fulfilled'));
  assert.equal(await world.balance(), usd('0.998'));
  await assert.rejects(refund('0.0021', 'ticket-2'), /0\.002 USD can still be given back/);
  const raced = await Promise.allSettled(Array.from({ length: 5 }, (_, index) => refund('0.0015', `race-${index}`)));
  assert.equal(raced.filter(({ status }) => status === 'fulfilled').length, 1);
  await assert.rejects(refund('0.002', 'ticket-1'), { code: 'reference_used' });
  await assert.rejects(
    poolService(world).refundRequest('bob', exchange.id, usd('0.001'), { reason: 'x', reference: 'y' }),
    /no settled request/,
  );
  await assert.rejects(
    poolService(world).refundRequest('alice', 'not an id', usd('0.001'), { reason: 'x', reference: 'y' }),
    /no settled request/,
  );
  assert.equal(await world.balance(), usd('0.9995'));
  await world.stop();
  assert.deepEqual((await world.audit()).violations, []);
});

const directory: Accounts = {
  create: () => assert.fail('not asked for'),
  createKey: () => assert.fail('not asked for'),
  setPlan: () => assert.fail('not asked for'),
  find: async (name) => (name === 'alice' ? { id: 'alice', name, plan: 'free', createdAt: new Date(0) } : undefined),
  list: async () => [],
};

test('an operator credits, debits and refunds on the command line, each once for its reference, and sees the rest', async () => {
  const world = await newWorld({ idle: true });
  world.host.provide(accounts, directory);
  const run = async (name: string, values: Record<string, string>) => {
    const found = world.part.commandLine!.commands!.find((command) => command.name === name)!;
    return found.run({ name: 'alice', reason: 'test', ...values });
  };
  for (let round = 0; round < 2; round += 1) {
    await run('accounts credit', { usd: '10', reference: 'bank 1' });
    await run('accounts credit', { usd: '4', reference: 'fair', kind: 'promotion', lasts: '30d' });
    await run('accounts debit', { usd: '5', reference: 'chargeback' });
    await run('accounts refund', { usd: '6', credit: 'bank 1', reference: 'bank 2' });
  }
  const refused: [string, Record<string, string>, RegExp][] = [
    ['accounts debit', { usd: '3.01' }, /does not cover/],
    ['accounts refund', { usd: '3.01', credit: 'bank 1' }, /3\.00 USD can be paid back/],
    ['accounts refund', { usd: '1', credit: 'fair' }, /no credit of this reference/],
    ['accounts refund', { usd: '1' }, /--request ID or --credit/],
    ['accounts debit', { usd: '1', reason: '' }, /--reason/],
    ['accounts credit', { usd: '1', kind: 'gift' }, /--kind/],
    ['accounts credit', { usd: '1', lasts: 'long' }, /duration/],
    ['accounts debit', { usd: '2', reference: 'chargeback' }, /used before/],
  ];
  for (const [name, values, words] of refused) await assert.rejects(run(name, values), words);
  const { text, json } = await run('ledger', {});
  assert.match(
    text,
    /^balance 3\.00 USD, of which 0\.00 USD are set aside for running calls; 3\.00 USD can be spent now/,
  );
  assert.match(text, /3\.00 of 10\.00 USD left of top-up \(test; bank 1\), does not expire/);
  const { rows } = json as { rows: { kind: string; change: string; balance_after: string }[] };
  assert.deepEqual(
    rows.map(({ kind, change, balance_after: after }) => `${kind} ${change} ${after}`),
    ['PAYOUT -6.00 3.00', 'DEBIT -5.00 9.00', 'CREDIT 4.00 14.00', 'CREDIT 10.00 10.00'],
  );
  assert.deepEqual((await world.audit()).violations, []);
});

test('each credit without a reference on the command line is a credit of its own', async () => {
  const world = await newWorld({ idle: true });
  world.host.provide(accounts, directory);
  const { run } = world.part.commandLine!.commands!.find(({ name }) => name === 'accounts credit')!;
  for (let round = 0; round < 2; round += 1) await run({ name: 'alice', reason: 'test', usd: '2' });
  assert.equal(await world.balance(), usd('4'));
  await assert.rejects(world.host.get(pool).refundRequest('alice', 'none', usd('1'), { reason: 'x', reference: 'y' }), {
    kind: 'not_found',
    field: 'of',
  });
});

test('the audit finds a grant whose rest is wrong, a row that another grant paid, and a refund that is too high', async () => {
  const damages: [string[], (world: World) => Promise<unknown>][] = [
    [['M1', 'M3'], (world) => world.rows(sql`update ${world.table('balances')} set held = held + 1`)],
    [['P2'], (world) => world.rows(sql`update ${world.table('grant_balances')} set remaining = remaining + 1`)],
    [
      ['M2', 'P2', 'P3', 'P3'],
      async (world) => {
        await world.rows(sql`alter table ${world.table('allocations')} disable trigger immutable`);
        await world.rows(
          sql`update ${world.table('allocations')} set amount = amount - 1 where seq = (select max(seq) from ${world.table('allocations')})`,
        );
        await world.rows(sql`update ${world.table('grant_balances')} set remaining = remaining + 1`);
        await world.rows(
          sql`update ${world.table('allocations')} set amount = amount - 1 where seq = (select min(seq) from ${world.table('allocations')})`,
        );
      },
    ],
    [
      ['M2', 'P5', 'P5'],
      async (world) => {
        await world.rows(sql`alter table ${world.table('refunds')} disable trigger immutable`);
        await world.rows(sql`update ${world.table('refunds')} set amount = 4000000`);
      },
    ],
  ];
  for (const [rules, plant] of damages) {
    await using world = await newWorld();
    await call(world);
    await call(world);
    const [row] = await world.rows<{ id: string }>(sql`select id::text as id from ${world.table('calls')} limit 1`);
    await poolService(world).refundRequest('alice', row!.id, usd('0.001'), { reason: 'test', reference: 'back' });
    assert.deepEqual((await world.audit()).violations, []);
    await plant(world);
    const { violations } = await world.audit();
    assert.deepEqual(violations.map(({ rule }) => rule).sort(), rules);
    world.leave();
  }
});
