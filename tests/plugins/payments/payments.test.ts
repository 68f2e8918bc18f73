/** Payments: credited once by the payment service's own word, whatever comes, is lost, is forged, or breaks in between. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { GatewayError } from '../../../core/contract/errors.ts';
import { type Accounts, accounts } from '../../../plugins/common/domain/accounts.ts';
import { payments } from '../../../plugins/common/domain/admin/ledger.ts';
import type { Posting } from '../../../plugins/common/domain/ledger.ts';
import { parseUsd as usd } from '../../../plugins/common/domain/money.ts';
import plugin from '../../../plugins/payments/index.ts';
import { fakeHost, setUp } from '../../helpers/fakes.ts';
import { dump } from '../../helpers/put-back.ts';
import { openPayments, type PaymentsTestbed } from './testbed.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

async function spend(testbed: PaymentsTestbed, amount: bigint): Promise<void> {
  const entry = { reason: 'spent', reference: `spent-${amount}` };
  await testbed.pool.debit('alice', amount as Parameters<Posting['purchase']>[0], entry);
}

test('without its secrets there is no endpoint and no service, and a partial set-up is reported', async () => {
  for (const section of [{}, { secret_key: 'sk' }, { webhook_secret: 'whsec' }]) {
    const host = fakeHost();
    const part = await setUp(plugin, host, section);
    assert.equal(part.endpoints, undefined);
    assert.equal(host.find(payments), undefined);
    assert.equal(part.checks?.notices?.().length ?? 0, Object.keys(section).length);
  }
});

test('an impossible configuration is refused', () => {
  const parse = (section: object) => (plugin.config as unknown as { parse(value: unknown): unknown }).parse(section);
  for (const section of [
    { min: 50, max: 5 },
    { amounts: [1] },
    { min: '0.001' },
    { currency: 'eur' },
    { api_base: 'ftp://x' },
  ])
    assert.throws(() => parse(section), JSON.stringify(section));
  parse({ min: '0.50', max: 1000, amounts: ['0.50', 999] });
});

test('a reported payment is credited once, however often it is reported', async () => {
  const testbed = await openPayments();
  const session = await testbed.begin('25');
  assert.equal(await testbed.state(), 'open');
  const event = testbed.stripe.pay(session);
  assert.deepEqual(await Promise.all([testbed.deliver(event), testbed.deliver(event)]), [200, 200]);
  assert.equal(await testbed.deliver(event), 200);
  assert.equal(await testbed.balance(), usd('25'));
  const [order] = (await testbed.payments.list('alice', { limit: 1 })).rows;
  assert.deepEqual([order!.state, order!.amount, order!.paidAt], ['paid', usd('25'), testbed.host.clock.now()]);
  assert.deepEqual((await testbed.payments.list('bob', { limit: 1 })).rows, []);
  const form = testbed.stripe.wanted[0]!;
  assert.equal(form.get('line_items[0][price_data][unit_amount]'), '2500');
  assert.equal(form.get('adaptive_pricing[enabled]'), 'false');
  assert.equal(form.get('client_reference_id'), order!.id);
  await testbed.audit();
  await testbed.close();
});

test('the event may arrive before the payer returns, and before the checkout page was stored', async () => {
  const testbed = await openPayments();
  // The page is paid before the process that had it made has heard of it.
  let event: ReturnType<PaymentsTestbed['stripe']['pay']> | undefined;
  const real = testbed.stripe.sessions.set.bind(testbed.stripe.sessions);
  testbed.stripe.sessions.set = (id, session) => {
    real(id, session);
    event = testbed.stripe.pay(id);
    return testbed.stripe.sessions;
  };
  await assert.rejects(testbed.begin('5'), (error: GatewayError) => error.kind === 'upstream_failed');
  assert.equal(await testbed.deliver(event!), 200);
  assert.equal(await testbed.balance(), usd('5'));
  assert.equal(await testbed.state(), 'paid');
  await testbed.close();
});

test('a forged, old, foreign or missing signature is refused and changes nothing', async () => {
  const testbed = await openPayments();
  const session = await testbed.begin('5');
  const event = testbed.stripe.pay(session);
  const reported = { id: session, object: 'checkout.session' };
  const sign = (options: object) => testbed.stripe.event('checkout.session.completed', reported, options);
  const forged = [
    { ...event, body: event.body.replace('"complete"', '"complete" ') },
    { ...event, headers: { ...event.headers, 'stripe-signature': '' } },
    { ...event, headers: { ...event.headers, 'stripe-signature': 't=1,v1=00' } },
    sign({ atMs: testbed.host.clock.now() - 301_000 }),
    sign({ secret: 'whsec_other' }),
    sign({ secret: '' }),
  ];
  for (const each of forged) assert.equal(await testbed.deliver(each), 400);
  assert.equal(await testbed.balance(), 0n);
  assert.deepEqual(testbed.stripe.requested, ['POST /v1/checkout/sessions']);
  assert.equal(await testbed.deliver(sign({ atMs: testbed.host.clock.now() - 299_000 })), 200);
  assert.equal(await testbed.balance(), usd('5'));
  await testbed.close();
});

test("the paid amount is read from the payment service, not from the event, and another sum than the order's is not credited", async () => {
  const testbed = await openPayments();
  const honest = await testbed.begin('5');
  testbed.stripe.pay(honest);
  // Signed, and wrong all the same.
  const reply = { ...testbed.stripe.sessions.get(honest), amount_total: 99_900, client_reference_id: 'x' };
  assert.equal(await testbed.deliver(testbed.stripe.event('checkout.session.completed', reply)), 200);
  assert.equal(await testbed.balance(), usd('5'));
  const changes = [{ amount_total: 1 }, { currency: 'jpy' }, { client_reference_id: 'other' }];
  for (const change of changes) {
    const session = await testbed.begin('7');
    assert.equal(await testbed.deliver(testbed.stripe.pay(session, change)), 200);
    assert.equal(await testbed.state(), 'open');
  }
  assert.equal(await testbed.balance(), usd('5'));
  assert.equal(testbed.host.lines.filter(({ level }) => level === 'error').length, changes.length);
  await testbed.close();
});

test('an event that is unpaid, of others, or of no interest is answered and changes nothing', async () => {
  const testbed = await openPayments();
  const session = await testbed.begin('5');
  const open = testbed.stripe.sessions.get(session)!;
  assert.equal(await testbed.deliver(testbed.stripe.event('checkout.session.completed', open)), 200);
  assert.equal(await testbed.deliver(testbed.stripe.event('customer.created', { id: 'cus_1' })), 200);
  const foreign = { ...open, id: 'cs_foreign', client_reference_id: 'their order 7', payment_intent: 'pi_foreign' };
  testbed.stripe.sessions.set(foreign.id, foreign);
  assert.equal(await testbed.deliver(testbed.stripe.pay(foreign.id)), 200);
  assert.equal(await testbed.deliver(testbed.stripe.refund(foreign.id, 100)), 200);
  assert.equal(await testbed.balance(), 0n);
  assert.equal(await testbed.deliver(testbed.stripe.expire(session)), 200);
  assert.equal(await testbed.state(), 'expired');
  await testbed.close();
});

test('a payment without an event is found by the regular rounds, in any process', async () => {
  const first = await openPayments();
  const second = await openPayments(first);
  for (const [index, accountId] of ['alice', 'bob', 'carol'].entries()) {
    const session = await first.begin('5', accountId);
    if (index < 2) first.stripe.pay(session);
  }
  await first.round();
  assert.equal(await first.balance(), 0n, 'a page is left alone at first');
  for (const testbed of [first, second]) testbed.host.advance(300_000);
  first.stripe.requested.length = 0;
  await Promise.all([first.round(), second.round()]);
  assert.deepEqual(await Promise.all(['alice', 'bob', 'carol'].map((id) => first.balance(id))), [
    usd('5'),
    usd('5'),
    0n,
  ]);
  const looks = first.stripe.requested.filter((line) => line.startsWith('GET /v1/checkout/sessions/'));
  assert.equal(looks.length, 3, 'each is looked at by one of them');
  await first.audit();
  await second.close();
  await first.close();
});

test('while the payment service does not answer the event is sent again, and the answer says nothing of the service', async () => {
  const testbed = await openPayments();
  const session = await testbed.begin('5');
  const event = testbed.stripe.pay(session);
  testbed.stripe.down = 500;
  assert.equal(await testbed.deliver(event), 502);
  await assert.rejects(testbed.begin('5'), (error: GatewayError) => !/shown|stripe|127/i.test(error.message));
  testbed.host.advance(300_000);
  await testbed.round();
  assert.equal(await testbed.balance(), 0n);
  testbed.stripe.down = 0;
  testbed.host.advance(300_000);
  await testbed.round();
  assert.equal(await testbed.balance(), usd('5'));
  await testbed.close();
});

test('refunds are taken from the account once, in part and in whole, also without an event', async () => {
  const testbed = await openPayments();
  const session = await testbed.begin('10');
  await testbed.deliver(testbed.stripe.pay(session));
  const refund = testbed.stripe.refund(session, 400);
  assert.deepEqual(await Promise.all([testbed.deliver(refund), testbed.deliver(refund)]), [200, 200]);
  assert.equal(await testbed.balance(), usd('6'));
  assert.equal(await testbed.state(), 'paid');
  testbed.stripe.refund(session, 600);
  testbed.host.advance(dayMs + 1);
  await testbed.round();
  assert.equal(await testbed.balance(), 0n);
  assert.equal(await testbed.state(), 'refunded');
  await testbed.audit();
  await testbed.close();
});

test('a refund of spent money takes the rest, and reports the difference to the operator', async () => {
  const testbed = await openPayments();
  const session = await testbed.begin('10');
  await testbed.deliver(testbed.stripe.pay(session));
  await spend(testbed, usd('7.5'));
  assert.equal(await testbed.deliver(testbed.stripe.refund(session, 1_000)), 200);
  assert.equal(await testbed.balance(), 0n);
  const reported = testbed.host.lines.find(({ level }) => level === 'error')!;
  assert.equal((reported.fields as { spent: string }).spent, '7.50');
  await testbed.audit();
  await testbed.close();
});

for (const isHeardFirst of [false, true]) {
  const when = isHeardFirst ? 'before' : 'with';
  test(`a refund reported ${when} a dispute that is won is taken whole, from the money that the dispute returns`, async () => {
    const testbed = await openPayments();
    const session = await testbed.begin('20');
    await testbed.deliver(testbed.stripe.pay(session));
    const dispute = testbed.stripe.dispute(session, 1_800);
    await testbed.deliver(dispute);
    assert.equal(await testbed.balance(), usd('2'));
    if (!isHeardFirst) dispute.item.status = 'won';
    const refund = testbed.stripe.refund(session, 1_000);
    if (isHeardFirst) {
      await testbed.deliver(refund);
      assert.equal(await testbed.balance(), 0n);
      dispute.item.status = 'won';
    }
    for (let round = 0; round < 2; round += 1) {
      testbed.host.advance(dayMs + 1);
      await testbed.round();
      assert.equal(await testbed.balance(), usd('10'));
    }
    const complaints = testbed.host.lines.filter(({ level }) => level === 'error');
    assert.equal(complaints.length, isHeardFirst ? 1 : 0);
    await testbed.audit();
    await testbed.close();
  });
}

test('a refund that fails and a dispute that is won return the taken money, once', async () => {
  const testbed = await openPayments();
  const session = await testbed.begin('10');
  await testbed.deliver(testbed.stripe.pay(session));
  const refund = testbed.stripe.refund(session, 300, 'pending');
  await testbed.deliver(refund);
  assert.equal(await testbed.balance(), usd('7'));
  refund.item.status = 'failed';
  const failed = testbed.stripe.event('refund.failed', refund.item);
  assert.deepEqual(await Promise.all([testbed.deliver(failed), testbed.deliver(failed)]), [200, 200]);
  assert.equal(await testbed.balance(), usd('10'));
  const inquiry = testbed.stripe.dispute(session, 1_000, 'warning_needs_response');
  await testbed.deliver(inquiry);
  assert.equal(await testbed.balance(), usd('10'), 'an inquiry takes no money');
  inquiry.item.status = 'needs_response';
  await testbed.deliver(testbed.stripe.event('charge.dispute.funds_withdrawn', inquiry.item));
  assert.equal(await testbed.balance(), 0n, 'what the refund gave back is taken too');
  inquiry.item.status = 'won';
  for (let times = 0; times < 2; times += 1)
    await testbed.deliver(testbed.stripe.event('charge.dispute.closed', inquiry.item));
  assert.equal(await testbed.balance(), usd('10'));
  assert.equal(await testbed.state(), 'paid');
  await testbed.audit();
  await testbed.close();
});

test('a process that dies between event and credit, or between credit and its record, is completed by the next one', async () => {
  const died = new Error('killed');
  for (const moment of ['before', 'after'] as const) {
    let isDead = true;
    const testbed = await openPayments(undefined, {
      ledger: (real) => ({
        ...real,
        credit: async (...given) => {
          if (isDead && moment === 'after') await real.credit(...given);
          if (isDead) throw died;
          return real.credit(...given);
        },
      }),
    });
    const session = await testbed.begin('5');
    const event = testbed.stripe.pay(session);
    await assert.rejects(testbed.deliver(event).then((status) => assert.equal(status, 200)));
    assert.equal(await testbed.balance(), moment === 'after' ? usd('5') : 0n);
    assert.equal(await testbed.state(), 'open');
    isDead = false;
    const next = await openPayments(testbed);
    assert.equal(await next.deliver(event), 200);
    next.host.advance(300_000);
    await next.round();
    assert.equal(await next.balance(), usd('5'));
    assert.equal(await next.state(), 'paid');
    await next.audit();
    await next.close();
    await testbed.close();
  }
});

test('a process that dies while it takes a refund is completed by the next one, with the same amount', async () => {
  let isDead = true;
  const testbed = await openPayments(undefined, {
    pool: (real) => ({
      ...real,
      refundCredit: async (...given) => {
        const balance = await real.refundCredit(...given);
        if (isDead) throw new Error('killed');
        return balance;
      },
    }),
  });
  const session = await testbed.begin('10');
  await testbed.deliver(testbed.stripe.pay(session));
  await spend(testbed, usd('4'));
  const refund = testbed.stripe.refund(session, 1_000);
  await assert.rejects(testbed.deliver(refund).then((status) => assert.equal(status, 200)));
  assert.equal(await testbed.balance(), 0n);
  isDead = false;
  assert.equal(await testbed.deliver(refund), 200);
  assert.equal(await testbed.balance(), 0n);
  await testbed.audit();
  await testbed.close();
});

test('an operator sees the state of payments, and has one checked again', async () => {
  const testbed = await openPayments();
  const command = (name: string, values: Record<string, string> = {}) =>
    testbed.part.commandLine!.commands!.find((each) => each.name === name)!.run(values);
  assert.equal((await command('payments list')).text, 'There are no payments.');
  const [lost, wrong] = [await testbed.begin('5'), await testbed.begin('7', 'bob')];
  testbed.stripe.pay(lost);
  await testbed.deliver(testbed.stripe.pay(wrong, { amount_total: 1 }));
  const { json, text } = await command('payments list');
  const rows = json as { id: string; account: string; state: string; session: string }[];
  assert.deepEqual(
    rows.map(({ account, state, session }) => ({ account, state, session })),
    [
      { account: 'bob', state: 'mismatch', session: wrong },
      { account: 'alice', state: 'open', session: lost },
    ],
  );
  assert.match(text, /mismatch {7}7\.00 USD {2}bob/);
  const looked = await command('payments look', { payment: rows[1]!.id });
  assert.equal((looked.json as { state: string }[])[0]!.state, 'paid');
  assert.equal(await testbed.balance(), usd('5'));
  for (const values of [{ payment: 'x' }, { payment: '00000000-0000-0000-0000-000000000000' }])
    await assert.rejects(command('payments look', values), (error: GatewayError) => error.kind === 'not_found');
  await assert.rejects(command('payments list', { limit: '0' }), (error: GatewayError) => error.field === 'limit');
  await testbed.close();
});

test('a checkout is one order per reference, within bounds, and with a bounded number at once', async () => {
  const testbed = await openPayments();
  const urls = { paidUrl: 'https://gateway.example/paid', leftUrl: 'https://gateway.example/left' };
  const requestOf = (amount: bigint, reference: string, accountId = 'alice') =>
    testbed.payments.checkout(accountId, amount as ReturnType<typeof usd>, { reference, ...urls });
  const [one, two] = await Promise.all([requestOf(usd('5'), 'a'), requestOf(usd('5'), 'a')]);
  assert.deepEqual(one, two);
  assert.deepEqual(await requestOf(usd('5'), 'a'), one);
  assert.equal((await testbed.payments.list(undefined, { limit: 9 })).rows.length, 1);
  const refused = async (work: Promise<unknown>, kind: string) =>
    assert.rejects(work, (error: GatewayError) => error.kind === kind, kind);
  await refused(requestOf(usd('6'), 'a'), 'conflict');
  await refused(requestOf(usd('5'), 'a', 'bob'), 'conflict');
  for (const amount of ['4.99', '500.01', '5.001', '-5'])
    await refused(requestOf(usd(amount), amount), 'invalid_request');
  const wrongUrl = { reference: 'b', ...urls, paidUrl: 'javascript:alert(1)' };
  await refused(testbed.payments.checkout('alice', usd('5'), wrongUrl), 'invalid_request');
  await testbed.deliver(testbed.stripe.pay(one.url.split('/').at(-1)!));
  await refused(requestOf(usd('5'), 'a'), 'conflict');
  for (let number = 0; number < 10; number += 1) await testbed.begin('5');
  await refused(testbed.begin('5'), 'rate_limited');
  await testbed.begin('5', 'bob');
  testbed.host.advance(hourMs);
  await testbed.begin('5');
  await testbed.close();
});

test('after a restore payments are refused and events wait; then paid orders are read from the payment service, lost ones too', async () => {
  const testbed = await openPayments();
  testbed.host.provide(accounts, {
    find: async (id: string) => (id === 'alice' ? { id, name: 'Alice' } : undefined),
  } as Partial<Accounts> as Accounts);
  const known = await testbed.begin('10');
  const { orm, schema } = testbed.database;
  const putBack = await dump(orm, schema);
  const lost = await testbed.begin('25');
  const foreign = await testbed.begin('30', 'stranger');
  const events = [known, lost, foreign].map((session) => testbed.stripe.pay(session));
  for (const event of events) assert.equal(await testbed.deliver(event), 200);
  await putBack();
  await orm.execute(
    sql`insert into ${sql.identifier(schema)}.restores (journal, since, until, calls, lost)
        values ('j', ${new Date(testbed.host.clock.now()).toISOString()}::timestamptz, now(), 0, '[]')`,
  );
  await assert.rejects(testbed.begin('5'), (error) => (error as GatewayError).status === 503);
  for (const event of events) assert.equal(await testbed.deliver(event), 503);
  testbed.host.advance(hourMs);
  await testbed.round();
  assert.equal(await testbed.balance(), 0n);
  const { text } = await testbed.command('audit', { acceptRestore: true });
  for (const session of [known, lost, foreign]) assert.match(text, new RegExp(`payments look ${session}`));
  assert.match(text, /25\.00 USD {2}alice/);
  for (const session of [known, lost, lost]) await testbed.command('payments look', { payment: session });
  assert.equal(await testbed.balance(), usd('35'));
  await assert.rejects(testbed.command('payments look', { payment: foreign }), { kind: 'not_found' });
  const again = testbed.stripe.event('checkout.session.completed', testbed.stripe.sessions.get(lost)!);
  assert.equal(await testbed.deliver(again), 200);
  assert.equal(await testbed.balance(), usd('35'));
  await testbed.audit();
  await testbed.close();
});
