/**
 * About 140 known calls around the midnights of two time zones, with every kind of movement of money: each figure of the pages about money is computed
 * again from the rows of calls and of the ledger, without the product's code.
 */
import assert from 'node:assert/strict';
import { after, before, mock, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { database } from '../../../plugins/common/domain/database.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { money } from '../../../plugins/common/domain/money.ts';
import { type Flow, flowsByRows, sumWithin } from '../billing/flows-oracle.ts';
import type { Browser } from './browser.ts';
import { clientOf, operatorOf, startDemo, type TestConsole } from './start-console.ts';

const zones = ['Europe/Berlin', 'Asia/Kolkata'] as const;
const minute = 60_000;
const today = Math.floor(Date.now() / 86_400_000) * 86_400_000;
/** Before and behind the midnights of both zones. */
const phases = [18 * 60 + 20, 18 * 60 + 40, 22 * 60 + 50, 23 * 60 + 10].map((at) => today + at * minute);
const more = `
plans:
  offers:
    free: { price: 0, grant: { amount: 1, every: month } }
    saver: { price: 5, grant: { amount: 8, every: month }, multiplier: 1.2 }
models:
  gpt-5.4-mini: { cost: { input: 0.3, cache_read: 0.03, output: 1.7 } }
  claude-sonnet-5: { cost: { input: 1.1, cache_read: 0.1, cache_write_5m: 1.3, cache_write_1h: 2, output: 6 } }
`;

/** A call that was made, and how it ends. */
interface Made {
  readonly at: number;
  readonly result: 'ok' | 'client_error' | 'upstream_error' | 'left';
  readonly isNoise: boolean;
  readonly model: string;
}
interface CallRow {
  readonly id: string;
  readonly account: string;
  readonly key: string;
  readonly model: string;
  readonly provider: string;
  readonly settled: boolean;
  readonly cost: bigint;
  readonly own: bigint | undefined;
  readonly absorbed: bigint;
  readonly at: number;
}
interface Refund {
  readonly at: number;
  readonly amount: bigint;
  readonly call: CallRow;
}
interface Person {
  readonly browser: Browser;
  readonly accountId: string;
  key: string;
}

let testbed: TestConsole;
let boss: Browser;
let ada: Person;
let bob: Person;
let now = phases[0]!;
const made: Made[] = [];
const calls: CallRow[] = [];
const refunds: Refund[] = [];
let flows: Flow[] = [];

function tick(to = now + 997): void {
  now = to;
  mock.timers.setTime(now);
}

before(async () => {
  mock.timers.enable({ apis: ['Date'], now });
  testbed = await startDemo('demo', more);
  boss = await operatorOf(testbed);
  ada = await enter('ada@example.test');
  bob = await enter('bob@example.test');
  await run();
  await readRows();
});
after(async () => {
  await testbed?.stop();
  mock.timers.reset();
});

async function enter(email: string): Promise<Person> {
  const browser = await clientOf(testbed, email);
  const accountId = (await browser.send('/me')).json.account.id;
  return { browser, accountId, key: '' };
}

const once = () => ({ 'idempotency-key': crypto.randomUUID() });
const change = (path: string, body: object) => boss.send(path, { body: { reason: 'test', ...body }, headers: once() });

async function post(key: string, path: string, body: object, signal?: AbortSignal): Promise<number> {
  tick();
  const headers = { authorization: `Bearer ${key}`, 'x-api-key': key, 'content-type': 'application/json' };
  const answer = await fetch(testbed.origin + path, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
  await answer.arrayBuffer().catch(() => undefined);
  return answer.status;
}

/** Made so many times, each with a result that is known before. */
async function make(
  times: number,
  result: Made['result'],
  model: string,
  send: (nth: number) => Promise<unknown>,
  isNoise = false,
) {
  for (let nth = 0; nth < times; nth++) {
    await send(nth);
    made.push({ at: now, result, isNoise, model });
  }
}

const said = (content: string) => [{ role: 'user', content }];
const mini = 'gpt-5.4-mini';
const sonnet = 'claude-sonnet-5';
const gemini = 'gpt-5.5';

/** The same calls in each phase, by both people. */
async function phase(key: string, times: number): Promise<void> {
  const chat = (content: string, stream = false) =>
    post(key, '/v1/chat/completions', { model: mini, messages: said(content), stream });
  await make(times, 'ok', mini, (nth) => chat(`Hello number ${nth}`));
  await make(2, 'ok', mini, () => chat('A stream', true));
  await make(times, 'ok', mini, (nth) => post(key, '/v1/responses', { model: mini, input: `Say ${nth}` }));
  const system = [{ type: 'text', text: 'A long rule. '.repeat(500), cache_control: { type: 'ephemeral' } }];
  await make(times, 'ok', sonnet, (nth) =>
    post(key, '/v1/messages', { model: sonnet, max_tokens: 50, system, messages: said(`Question ${nth}`) }),
  );
  await make(times, 'ok', gemini, (nth) =>
    post(key, `/v1beta/models/${gemini}:generateContent`, {
      contents: [{ role: 'user', parts: [{ text: `${nth}` }] }],
    }),
  );
  await make(2, 'upstream_error', mini, () => chat('[[sandbox: cut_after=2]] A stream that breaks', true));
  await make(2, 'client_error', mini, () => chat('[[sandbox: status=400]] No'));
  await make(1, 'upstream_error', mini, () => chat(`[[sandbox: status=500]] ${'A long prompt. '.repeat(200)}`));
  await make(
    1,
    'client_error',
    'no-such-model',
    () => post(key, '/v1/chat/completions', { model: 'no-such-model', messages: said('Hi') }),
    true,
  );
  await make(
    1,
    'client_error',
    mini,
    () => post('sk-wrong', '/v1/chat/completions', { model: mini, messages: said('Hi') }),
    true,
  );
  await make(1, 'ok', 'text-embedding-3-small', () =>
    post(key, '/v1/embeddings', { model: 'text-embedding-3-small', input: 'words' }),
  );
}

async function run(): Promise<void> {
  const service = testbed.gateway.find(ledger)!;
  ada.key = (await ada.browser.send('/keys', { body: { name: 'laptop' } })).json.key;
  bob.key = (await bob.browser.send('/keys', { body: { name: 'server' } })).json.key;
  const promotion = { kind: 'promotion', reason: 'spring', reference: 'spring' };
  await service.credit(ada.accountId, money(700_000_000n), { ...promotion, expiresAt: phases[1]! + 5 * minute });
  await phase(ada.key, 4);
  tick(phases[1]);
  await service.credit(ada.accountId, money(10_000_000_000n), {
    kind: 'top-up',
    reason: 'payment',
    reference: 'stripe:cs_1',
  });
  await change(`/admin/accounts/${bob.accountId}/credit`, { amount: '30', reason: 'an invoice' });
  const gift = { kind: 'balance', amount: '2.5' };
  const { codes } = (await boss.send('/admin/codes', { body: { gift, count: 1, batch: 'spring' } })).json;
  await bob.browser.send('/wallet/redeem', { body: { code: codes[0] } });
  await phase(bob.key, 5);
  await phase(ada.key, 3);
  tick(phases[2]);
  assert.equal((await ada.browser.send('/wallet/plans/saver', { method: 'POST', headers: once() })).status, 200);
  await phase(ada.key, 5);
  await change(`/admin/accounts/${bob.accountId}/debit`, { amount: '0.25', reason: 'a correction' });
  tick(phases[3]);
  await phase(bob.key, 4);
  await phase(ada.key, 3);
}

async function readRows(): Promise<void> {
  const { orm, schema } = testbed.gateway.find(database)!;
  const table = (name: string) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
  const rows = async <Row>(statement: ReturnType<typeof sql>) => {
    const found = (await orm.execute(statement)) as unknown as { rows?: Row[] };
    return (found.rows ?? found) as unknown as Row[];
  };
  const charged = () => rows<{ n: string }>(sql`select count(*)::text as n from ${table('calls')}`);
  // Rows are written behind the requests' backs; those that never had an account have none here.
  const expected = made.filter(({ isNoise }) => !isNoise).length;
  for (let tries = 0; tries < 200 && Number((await charged())[0]!.n) < expected; tries++)
    await new Promise((resolve) => setTimeout(resolve, 50));
  const statement = sql`select id::text as id, account_id as account, key_id as key, model, coalesce(provider, '') as provider, settled, cost::text as cost,
    own_cost::text as own, absorbed::text as absorbed, floor(extract(epoch from created_at) * 1000)::bigint::text as at from ${table('calls')} order by id`;
  const load = async () => {
    calls.length = 0;
    for (const row of await rows<Record<string, string> & { settled: boolean; own: string | null }>(statement))
      calls.push({
        ...(row as unknown as CallRow),
        ...{ cost: BigInt(row['cost']!), own: row.own === null ? undefined : BigInt(row.own) },
        ...{ absorbed: BigInt(row['absorbed'] ?? 0), at: Number(row['at']) },
      });
  };
  await load();
  const ofAda = calls.filter(({ account, cost }) => account === ada.accountId && cost > 0n);
  const ofBob = calls.filter(({ account, cost }) => account === bob.accountId && cost > 0n);
  for (const call of [ofAda[0]!, ofAda.at(-1)!, ofBob[0]!]) {
    tick();
    const given = await change(`/admin/requests/${call.id}/refund`, { amount: usd(call.cost) });
    assert.equal(given.status, 200, given.text);
    refunds.push({ at: now, amount: call.cost, call });
  }
  // What has expired is booked when it is looked at, and dated at its end.
  await ada.browser.send('/wallet');
  tick();
  flows = await flowsByRows(rows, table);
}

// ------------------------------------------------------------------------------------------------- figures, computed again

const sum = (amounts: readonly bigint[]) => amounts.reduce((total, amount) => total + amount, 0n);

function usd(nano: bigint): string {
  const digits = (nano < 0n ? -nano : nano).toString().padStart(10, '0');
  const decimals = digits.slice(-9).replace(/0+$/, '').padEnd(2, '0');
  return `${nano < 0n ? '-' : ''}${digits.slice(0, -9)}.${decimals}`;
}

/** What calls and refunds come to. */
function moneyOf(some: readonly CallRow[], back: readonly Refund[]) {
  const settled = some.filter((call) => call.settled);
  const costed = settled.filter(({ own }) => own !== undefined);
  const without = settled.filter(({ own }) => own === undefined);
  const cost = sum(settled.map((call) => call.cost));
  const refunded = sum(back.map(({ amount }) => amount));
  const uncosted =
    sum(without.map((call) => call.cost)) -
    sum(back.filter(({ call }) => call.own === undefined).map(({ amount }) => amount));
  const ownCost = sum(costed.map(({ own }) => own!));
  const writtenOff = sum(some.map(({ absorbed }) => absorbed));
  const isKnown = without.length === 0 || costed.length > 0;
  return {
    cost: usd(cost),
    refunded: usd(refunded),
    ownCost: isKnown ? usd(ownCost) : null,
    ownCostUnknown: without.length,
    uncosted: usd(uncosted),
    writtenOff: usd(writtenOff),
    margin: isKnown ? usd(cost - refunded - uncosted - ownCost - writtenOff) : null,
  };
}

const pick = (json: Record<string, unknown>) =>
  Object.fromEntries(
    ['cost', 'refunded', 'ownCost', 'ownCostUnknown', 'uncosted', 'writtenOff', 'margin'].map((name) => [
      name,
      json[name],
    ]),
  );

function dayIn(zone: string, at: number): string {
  return new Intl.DateTimeFormat('en-CA', { timeZone: zone }).format(at);
}
/** The calls and refunds of one day of a zone. */
const within = (zone: string, day: string) =>
  moneyOf(
    calls.filter(({ at }) => dayIn(zone, at) === day),
    refunds.filter(({ at }) => dayIn(zone, at) === day),
  );
const span = () =>
  `from=${new Date(phases[0]! - 10 * minute).toISOString()}&until=${new Date(now + minute).toISOString()}`;

test('every kind of call and of movement is in the set', () => {
  assert.ok(made.length >= 130, String(made.length));
  assert.ok(calls.some(({ settled }) => !settled) && calls.some(({ absorbed }) => absorbed > 0n));
  assert.ok(calls.some(({ own, settled }) => settled && own === undefined));
  for (const what of ['card', 'byHand', 'plan', 'code', 'promotion', 'usedPaid', 'usedGiven'] as const)
    assert.ok(
      flows.some((flow) => flow.what === what && flow.amount > 0n),
      what,
    );
  for (const zone of zones) assert.equal(new Set(calls.map(({ at }) => dayIn(zone, at))).size, 2, zone);
});

test('money as a whole is what calls and rows of the ledger come to', async () => {
  const json = (await boss.send(`/admin/money?${span()}`)).json;
  assert.deepEqual(pick(json), moneyOf(calls, refunds));
  const flow = (what: Flow['what']) => usd(sumWithin(flows, what, phases[0]! - 10 * minute, now + minute));
  const { card, byHand, paidBack, givenByPlans, givenByCodes, givenByPromotions, usedPaid, usedGiven, owed } = json;
  assert.deepEqual(
    { card, byHand, paidBack, givenByPlans, givenByCodes, givenByPromotions, usedPaid, usedGiven, owed },
    {
      ...{ card: flow('card'), byHand: flow('byHand'), paidBack: flow('paidBack') },
      ...{ givenByPlans: flow('plan'), givenByCodes: flow('code'), givenByPromotions: flow('promotion') },
      ...{ usedPaid: flow('usedPaid'), usedGiven: flow('usedGiven'), owed: flow('owed') },
    },
  );
  assert.deepEqual([json.sold, json.debited, json.card, json.byHand], ['5.00', '0.25', '10.00', '30.00']);
});

test('days of two time zones are what their calls come to, and add up to the whole', async () => {
  const whole = (await boss.send(`/admin/money?${span()}`)).json;
  for (const zone of zones) {
    const { rows } = (await boss.send(`/admin/monitor/series?${span()}&tz=${zone}&bucketMinutes=1440`)).json;
    for (const row of rows)
      assert.deepEqual(pick(row), within(zone, dayIn(zone, Date.parse(row.at))), `${zone} ${row.at}`);
    for (const name of ['cost', 'refunded', 'ownCost', 'uncosted', 'writtenOff', 'margin'])
      assert.equal(
        usd(sum(rows.map((row: Record<string, string>) => nano(row[name]!)))),
        whole[name],
        `${zone} ${name}`,
      );
  }
});

function nano(text: string): bigint {
  const [units = '', decimals = ''] = text.replace('-', '').split('.');
  const amount = BigInt(units) * 1_000_000_000n + BigInt(decimals.padEnd(9, '0'));
  return text.startsWith('-') ? -amount : amount;
}

test('models, upstreams and accounts are what their calls come to; calls that were refused before serving are apart', async () => {
  const monitor = (await boss.send(`/admin/monitor?${span()}`)).json;
  const count = (result: Made['result']) => made.filter((one) => one.result === result).length;
  assert.deepEqual(
    [
      monitor.requests,
      monitor.results.ok,
      monitor.results.client_error,
      monitor.results.upstream_error,
      monitor.refused,
    ],
    [
      made.length,
      count('ok'),
      count('client_error'),
      count('upstream_error'),
      made.filter(({ isNoise }) => isNoise).length,
    ],
  );
  assert.deepEqual(pick(monitor), moneyOf(calls, refunds));
  const groupOf = { model: 'model', provider: 'provider', account: 'account' } as const;
  for (const [by, field] of Object.entries(groupOf)) {
    const { rows } = (await boss.send(`/admin/monitor/groups?${span()}&by=${by}&limit=100`)).json;
    assert.ok(!rows.some(({ group }: { group: string }) => group === 'no-such-model'));
    for (const row of rows)
      assert.deepEqual(
        pick(row),
        moneyOf(
          calls.filter((call) => call[field] === row.group),
          refunds.filter(({ call }) => call[field] === row.group),
        ),
        `${by} ${row.group}`,
      );
  }
  const { rows } = (await boss.send(`/admin/monitor/groups?${span()}&by=model&limit=100`)).json;
  for (const { group, requests } of rows)
    assert.equal(requests, made.filter(({ model, isNoise }) => model === group && !isNoise).length, group);
});

test("a client's pages show the balance of the ledger, and the calls of each day", async () => {
  for (const { browser, accountId, key } of [ada, bob]) {
    const own = calls.filter(({ account }) => account === accountId);
    const wallet = (await browser.send('/wallet')).json;
    const { rows } = (await browser.send('/wallet/ledger?limit=500')).json;
    assert.equal(wallet.balance, rows[0].balanceAfter);
    assert.equal(usd(sum(rows.map((row: { change: string }) => nano(row.change)))), wallet.balance);
    assert.equal(usd(sum(wallet.grants.map((grant: { remaining: string }) => nano(grant.remaining)))), wallet.balance);
    const usage = await fetch(`${testbed.origin}/v1/usage`, { headers: { authorization: `Bearer ${key}` } });
    assert.equal(((await usage.json()) as { balance: string }).balance, wallet.balance);
    for (const zone of zones) {
      const { byDay } = (await browser.send(`/home?tz=${zone}`)).json;
      for (const { at, cost } of byDay) {
        const day = dayIn(zone, Date.parse(at));
        assert.equal(cost, usd(sum(own.filter((call) => dayIn(zone, call.at) === day).map((call) => call.cost))), day);
      }
    }
  }
});

test('an expired rest is in the ledger at its end, and a new client has the grant of the plan before the first call', async () => {
  const { rows } = (await ada.browser.send('/wallet/ledger?kind=EXPIRE')).json;
  // On a server the account's share is leased to this process, and the row waits until it is given back.
  const isLeased = process.env['TEST_DATABASE_URL'] !== undefined;
  assert.deepEqual(
    rows.map(({ at }: { at: string }) => Date.parse(at)),
    isLeased ? [] : [phases[1]! + 5 * minute],
  );
  const dora = await clientOf(testbed, 'dora@example.test');
  const made = (await dora.send('/keys', { body: { name: 'first' } })).json.key;
  const usage = await fetch(`${testbed.origin}/v1/usage`, { headers: { authorization: `Bearer ${made}` } });
  assert.equal(((await usage.json()) as { balance: string }).balance, '1.00');
  const { balance, spendable } = (await dora.send('/wallet')).json;
  assert.deepEqual([balance, spendable, (await dora.send('/home')).json.pool.balance], ['1.00', '1.00', '1.00']);
  assert.deepEqual((await dora.send('/wallet/ledger')).json.rows.length, 1);
});
