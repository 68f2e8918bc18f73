/** Notices to clients: once for each crossing, by the channels that they chose, once in a fleet, signed, bounded, never to a private address. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { Webhook } from 'standardwebhooks';
import { noticeSender } from '../../../plugins/common/domain/admin/notices.ts';
import type { PricedModel } from '../../../plugins/common/domain/admin/prices.ts';
import { parseRatio, parseUsd } from '../../../plugins/common/domain/money.ts';
import { flatBook, PriceVersion } from '../../../plugins/common/domain/prices.ts';
import { rowsOf, tableOf } from '../../../plugins/common/kit/sql.ts';
import { Announcements } from '../../../plugins/notices/announcements.ts';
import { NoticeRows } from '../../../plugins/notices/rows.ts';
import { ada, bob, eve, openReceiver, openWorld } from './world.ts';

const day = 86_400_000;
const usd = (text: string) => parseUsd(text);
/** Where notices are chosen, in the account that they are about. */
const footOf = (account: string) => `\n\nhttps://gateway.test/console/profile?account=${account}\n`;
const mailed = (mails: readonly { readonly to: string; readonly subject: string }[]) =>
  mails.map(({ to, subject }) => `${to} ${subject}`);

test('a balance that falls below its threshold is a mail, once, and again after it was above it', async () => {
  const world = await openWorld();
  const { facts, mails, round } = world;
  const see = async (balance: string) => {
    facts.balances.set(ada, usd(balance));
    await round();
  };
  await see('20');
  for (const balance of ['6', '4.999999999', '3', '2']) await see(balance);
  assert.deepEqual(mailed(mails), ['ada@example.test test: Low balance']);
  assert.equal(mails[0]!.text, `The balance of your account is $4.999999999.${footOf(ada)}`);
  for (const balance of ['5', '4', '4']) await see(balance);
  assert.equal(mails.length, 2);
  await world.close();
});

test('an account that is seen first below the threshold gets nothing before it has been above it', async () => {
  const world = await openWorld();
  world.facts.balances.set(bob, usd('0'));
  await world.round();
  await world.round();
  assert.deepEqual(world.mails, []);
  world.facts.balances.set(bob, usd('9'));
  await world.round();
  world.facts.balances.set(bob, usd('1'));
  await world.round();
  assert.deepEqual(mailed(world.mails), ['bob@example.test test: Low balance']);
  await world.close();
});

test('shares of a cap and of a window, the end of a plan and of a key are each a notice, and a new period is another', async () => {
  const world = await openWorld({ kinds: { window_share: { channels: ['mail'] }, low_balance: { channels: [] } } });
  const { facts, mails, round, clock } = world;
  facts.balances.set(ada, usd('1'));
  const window = (spent: string, startsAt: number) => [
    { ...{ name: 'week' as const, limit: usd('10'), spent: usd(spent) }, startsAt, endsAt: startsAt + 7 * day },
  ];
  const now = clock.clock.now();
  facts.windows = window('7.99', now);
  facts.cap = { amount: usd('5'), spent: usd('3') };
  facts.keyEndsAt = now + 6 * day;
  facts.planEndsAt = now + 2 * day;
  await round();
  assert.deepEqual(mailed(mails).sort(), [
    'ada@example.test test: A key expires soon',
    'ada@example.test test: Your plan ends soon',
  ]);
  assert.match(mails.map(({ text }) => text).join(), /It is renewed then if the balance covers its price\./);
  mails.length = 0;
  facts.windows = window('8', now);
  facts.cap = { amount: usd('5'), spent: usd('4') };
  await round();
  await round();
  assert.deepEqual(mailed(mails).sort(), [
    'ada@example.test test: A key nears its spend cap',
    'ada@example.test test: A window of your plan is nearly used up',
  ]);
  assert.match(mails.map(({ text }) => text).join(), /The key "build" has spent \$4\.00 of \$5\.00 today\./);
  mails.length = 0;
  // The next window is used up before anything was seen in it.
  facts.windows = window('9', now + 7 * day);
  clock.advance(day);
  facts.keyEndsAt = now + 7 * day;
  await round();
  await round();
  assert.deepEqual(mailed(mails).sort(), [
    'ada@example.test test: A key expires soon',
    'ada@example.test test: A key nears its spend cap',
    'ada@example.test test: A window of your plan is nearly used up',
  ]);
  await world.close();
});

const onPro = (accountId: string, multiplier?: string) => ({
  ...{ accountId, plan: 'pro', planEndsAt: undefined, multiplier },
});

test('a price change is sent to accounts that have used the model, when it is announced, and not again when it holds', async () => {
  const world = await openWorld();
  const { facts, mails, round, clock } = world;
  const version = (name: string, input: bigint, from?: number) =>
    new PriceVersion({ name, base: { input, output: usd('15') }, ...(from === undefined ? {} : { from }) });
  const model = (id: string, prices: PricedModel['prices']) => [{ id, prices } as PricedModel];
  const old = version('a', usd('3'));
  facts.users = [ada];
  facts.accounts = [onPro(ada), onPro(bob)];
  facts.models = [...model('m', [old]), ...model('other', flatBook({ input: 1n }, 'x'))];
  await round();
  const from = clock.clock.now() + 10 * day;
  facts.models = model('m', [old, version('b', usd('4'), from)]);
  clock.advance(3_600_000);
  await round();
  assert.deepEqual(mailed(mails), ['ada@example.test test: Prices change']);
  const at = new Date(from).toISOString().slice(0, 16).replace('T', ' ');
  assert.equal(
    mails[0]!.text,
    `m from ${at} UTC on: input 3.00, output 15.00 → input 4.00, output 15.00${footOf(ada)}`,
  );
  clock.advance(11 * day);
  await round();
  assert.equal(mails.length, 1);
  facts.models = model('m', flatBook({ input: usd('4'), output: usd('20') }, 'c'));
  clock.advance(3_600_000);
  await round();
  assert.equal(mails[1]?.text, `m: input 4.00, output 15.00 → input 4.00, output 20.00${footOf(ada)}`);
  await world.close();
});

test('a changed ratio is sent to the accounts of its plan, or to its account, and one from before the first look to none', async () => {
  const world = await openWorld();
  const { facts, mails, round, clock } = world;
  const later = async () => {
    mails.length = 0;
    clock.advance(3_600_000);
    await round();
    await round();
    return mails.map(({ to, text }) => `${to}: ${text.split('\n')[0]}`).sort();
  };
  facts.accounts = [onPro(ada, '0.9'), { ...onPro(bob), plan: 'gone' }, { ...onPro(eve), planEndsAt: 1 }];
  assert.deepEqual(await later(), []);
  facts.ratio = parseRatio('1.25');
  const all = ['ada', 'bob', 'eve'].map((name) => `${name}@example.test: All prices of the plan "pro": × 1 → × 1.25`);
  assert.deepEqual(await later(), all);
  facts.accounts = [onPro(ada), onPro(bob, '1.50')];
  assert.deepEqual(await later(), [
    'ada@example.test: All prices of your account: × 0.9 → × 1',
    'bob@example.test: All prices of your account: × 1 → × 1.5',
  ]);
  assert.deepEqual(await later(), []);
  facts.accounts = [onPro(ada, '0.9'), onPro(bob, '1.5')];
  assert.deepEqual(await later(), ['ada@example.test: All prices of your account: × 1 → × 0.9']);
  await world.close();
});

test('an announcement goes to its accounts page by page, so many a run, from where the process before has ended', async () => {
  const { facts, store, host, close } = await openWorld();
  const ids = Array.from({ length: 11 }, (_, place) => `01980000-0000-7000-8000-${String(place).padStart(12, '0')}`);
  facts.users = ids.filter((_, place) => place !== 4);
  facts.accounts = ids.map((id) => onPro(id));
  const got: string[] = [];
  const sender = {
    async observeAll(
      all: readonly { readonly accountId: string; readonly seen: readonly { readonly subject: string }[] }[],
    ) {
      for (const { accountId, seen } of all)
        got.push(`${ids.indexOf(accountId)} ${seen.map(({ subject }) => subject).join()}`);
    },
  };
  const opened = (pages: number, notified: number) =>
    new Announcements(host, new NoticeRows(store), sender, { page: 3, pages, notified });
  const changes = ['m', 'n'].map((model) => ({ model, period: '1', fields: {} }));
  await opened(9, 9).add(changes, host.clock.now(), store.orm);
  assert.equal(await opened(9, 4).run(), true);
  assert.deepEqual(got, ['0 m,n', '1 m,n', '2 m,n', '3 m,n', '5 m,n']);
  assert.equal(await opened(1, 9).run(), true);
  assert.equal(got.length, 8);
  await opened(9, 9).add([{ plan: 'pro', period: '2', fields: {} }], host.clock.now() + 1, store.orm);
  assert.equal(await opened(9, 99).run(), false);
  const named = (from: number, what: string) => ids.map((_, place) => `${place} ${what}`).slice(from);
  assert.deepEqual(got.slice(8), [...named(9, 'm,n'), ...named(0, 'plan:pro')]);
  await close();
});

test('a chosen threshold, channel and language count, and another threshold begins with the present value', async () => {
  const world = await openWorld();
  const { facts, mails, round, admin } = world;
  await admin.change(ada, {
    choices: [{ kind: 'low_balance', channels: ['mail'], threshold: '50' }],
    language: 'de',
  });
  for (const balance of ['60', '49']) {
    facts.balances.set(ada, usd(balance));
    await round();
  }
  assert.deepEqual(mailed(mails), ['ada@example.test test: Niedriges Guthaben']);
  await admin.change(ada, { choices: [{ kind: 'low_balance', channels: [], threshold: '50' }], language: 'de' });
  for (const balance of ['60', '49']) {
    facts.balances.set(ada, usd(balance));
    await round();
  }
  assert.equal(mails.length, 1, 'no channel');
  const { kinds, last } = await admin.settings(ada, 'ja');
  const shown = kinds.find(({ kind }) => kind === 'low_balance');
  const chosen = { channels: [], threshold: '50.00', usual: '5.00' };
  assert.deepEqual(shown, { kind: 'low_balance', title: '残高が少なくなっています', unit: 'usd', ...chosen });
  assert.equal(last.length, 1);
  await world.close();
});

test('the age of a key is mailed to accounts that want it alone, once for each of its secrets, by the threshold that each has', async () => {
  const world = await openWorld({ kinds: { key_age: { threshold: 30 } } });
  const { facts, mails, round, admin, clock } = world;
  const wants = (threshold?: string) =>
    admin.change(ada, { choices: [{ kind: 'key_age', channels: ['mail'], threshold }], language: 'en' });
  const look = async () => {
    clock.advance(3_600_000);
    await round();
    return mails.length;
  };
  const since = clock.clock.now();
  facts.keySince = since - 31 * day;
  assert.equal(await look(), 0, 'no channel is chosen');
  await wants('40');
  assert.equal(await look(), 0, 'it is younger');
  await wants();
  assert.equal(await look(), 1);
  assert.match(mails[0]!.text, /The key "build" \(sk-1…\) has its secret since 20\d\d-\d\d-\d\d /);
  assert.equal(await look(), 1);
  facts.keySince = since;
  assert.equal(await look(), 1, 'another secret');
  clock.advance(30 * day);
  assert.equal(await look(), 2);
  await wants('3650');
  await assert.rejects(wants('3651'), { field: 'kinds.0.threshold' });
  await world.close();
});

test('a month of a credit line is mailed once when it is overdue, with the amount, and not while it is only due', async () => {
  const world = await openWorld();
  const { facts, mails, round, clock } = world;
  const look = async () => {
    clock.advance(3_600_000);
    await round();
    return mails.length;
  };
  const amounts = { used: parseUsd('7.5'), paid: parseUsd('2') };
  const month = { month: '2026-10', until: 0, dueAt: Date.UTC(2026, 10, 15), ...amounts, state: 'due' as const };
  facts.unpaid = [month];
  assert.equal(await look(), 0);
  facts.unpaid = [{ ...month, state: 'overdue' }];
  assert.equal(await look(), 1);
  assert.match(mails[0]!.text, /\$5\.50 for 2026-10 was to be paid by 2026-11-15 00:00 UTC\./);
  assert.equal(await look(), 1);
  facts.unpaid = [
    { ...month, state: 'overdue' },
    { ...month, month: '2026-11', dueAt: Date.UTC(2026, 11, 15), state: 'overdue' },
  ];
  assert.equal(await look(), 2);
  assert.match(mails[1]!.text, /2026-11/);
  await world.close();
});

test('movements are read in parts, and the place among them is kept', async () => {
  const world = await openWorld();
  const { facts, mails, round, store } = world;
  const place = async () =>
    (
      await rowsOf<{ movement: string }>(store.orm, sql`select movement::text from ${tableOf(store, 'notice_look')}`)
    )[0]!.movement;
  facts.balances = new Map([
    [ada, usd('9')],
    [bob, usd('9')],
  ]);
  facts.moved = [ada, ada, ada, bob, bob];
  await round();
  assert.equal(await place(), '4', 'what is committed late is read by the next look');
  facts.balances = new Map([
    [ada, usd('1')],
    [bob, usd('1')],
  ]);
  // The last movement of the look before is read again; ada has moved no more.
  await round();
  assert.deepEqual(mailed(mails), ['bob@example.test test: Low balance']);
  assert.equal(await place(), '5');
  facts.moved = [...facts.moved, bob, bob, ada];
  await round();
  assert.deepEqual(mailed(mails).slice(1), ['ada@example.test test: Low balance']);
  await world.close();
});

test('a choice that cannot be is refused by its field', async () => {
  const world = await openWorld();
  const { admin } = world;
  const choice = (kind: string, threshold?: string) =>
    admin.change(ada, { choices: [{ kind, channels: ['mail'], threshold }], language: 'en' });
  await assert.rejects(choice('missing'), { kind: 'invalid_request', field: 'kinds.0.kind' });
  await assert.rejects(choice('cap_share', '1.01'), { field: 'kinds.0.threshold' });
  await assert.rejects(choice('key_expiry', '91'), { field: 'kinds.0.threshold' });
  await assert.rejects(choice('price_change', '1'), { field: 'kinds.0.threshold' });
  await assert.rejects(choice('low_balance', '0'), { field: 'kinds.0.threshold' });
  for (const url of ['http://127.0.0.1:9/x', 'http://[::1]/', 'http://10.0.0.1:8000/', 'http://169.254.169.254/'])
    await assert.rejects(admin.change(ada, { url, language: 'en' }), { kind: 'invalid_request', field: 'url' });
  await world.close();
});

test('a crossing that several processes see is sent once', async () => {
  const world = await openWorld();
  const { facts, mails } = world;
  const others = await Promise.all([world.node(), world.node()]);
  const rounds = () => Promise.all([world.round(), ...others.map((other) => other.round())]);
  facts.balances.set(ada, usd('9'));
  await rounds();
  facts.balances.set(ada, usd('1'));
  await rounds();
  await rounds();
  assert.equal(mails.length, 1);
  // The same crossing, observed by all at once.
  const seen = { kind: 'key_expiry', subject: 'k', period: 'p', value: 1n, of: 86_400_000n };
  const fields = { key: 'k', prefix: 'sk', ends_at: '2026-12-01T00:00:00.000Z' };
  const senders = [world.sender, ...others.map(({ host }) => host.get(noticeSender))];
  await Promise.all(senders.map((sender) => sender.observe(ada, [{ ...seen, fields }])));
  await rounds();
  assert.equal(mails.length, 2);
  await world.close();
});

test('a webhook is signed by its secret and the one before, tried again with the same id, and given up on 410', async () => {
  const [world, receiver] = await Promise.all([openWorld({ allow_private: true }), openReceiver()]);
  const { admin, facts, round, store } = world;
  const choices = [{ kind: 'low_balance', channels: ['webhook' as const], threshold: undefined }];
  await admin.change(ada, { choices, url: receiver.url, language: 'en' });
  const before = (await admin.settings(ada, 'en')).webhook!.secret;
  await admin.change(ada, { newSecret: true, language: 'en' });
  const { secret } = (await admin.settings(ada, 'en')).webhook!;
  assert.notEqual(secret, before);
  receiver.answer.status = 500;
  const cross = async () => {
    for (const balance of ['9', '1']) {
      facts.balances.set(ada, usd(balance));
      await round();
    }
  };
  await cross();
  assert.equal(receiver.got.length, 1);
  assert.deepEqual(
    (await admin.settings(ada, 'en')).last.map(({ fault, waits, sentAt }) => ({ fault, waits, sentAt })),
    [{ fault: 'it answered 500', waits: true, sentAt: undefined }],
  );
  const dueNow = () =>
    store.orm.execute(sql`update ${tableOf(store, 'notice_messages')} set due_at = now() where due_at is not null`);
  await dueNow();
  receiver.answer.status = 204;
  await round();
  assert.equal(receiver.got.length, 2);
  const [first, second] = receiver.got;
  assert.equal(first!.headers['webhook-id'], second!.headers['webhook-id']);
  for (const key of [secret, before]) {
    const at = new Date(Number(second!.headers['webhook-timestamp']) * 1_000);
    const signature = new Webhook(key).sign(second!.headers['webhook-id']!, at, second!.text);
    assert.ok(second!.headers['webhook-signature']!.split(' ').includes(signature));
  }
  const body = JSON.parse(second!.text) as Record<string, unknown>;
  assert.deepEqual([body['type'], body['data']], ['notice.low_balance', [{ balance: '1.00' }]]);
  receiver.answer.status = 410;
  await cross();
  const { last } = await admin.settings(ada, 'en');
  assert.deepEqual({ fault: last[0]!.fault, waits: last[0]!.waits }, { fault: 'it answered 410', waits: false });
  receiver.close();
  await world.close();
});

test('a test is sent at once, and says why it was not taken without quoting the address', async () => {
  const [world, receiver] = await Promise.all([openWorld({ allow_private: true }), openReceiver()]);
  const { admin } = world;
  assert.deepEqual(await admin.test(ada, 'webhook', 'en'), { fault: 'the account has no webhook any more' });
  await admin.change(ada, { url: receiver.url, language: 'en' });
  assert.deepEqual(await admin.test(ada, 'webhook', 'zh'), { fault: undefined });
  assert.match(receiver.got[0]!.text, /"type":"notice\.test".*测试通知/);
  receiver.answer.status = 418;
  assert.deepEqual(await admin.test(ada, 'webhook', 'en'), { fault: 'it answered 418' });
  assert.deepEqual(await admin.test(ada, 'mail', 'en'), { fault: undefined });
  assert.deepEqual(mailed(world.mails), ['ada@example.test test: A test notice']);
  receiver.close();
  await world.close();
});

test('an address that became private after it was written gets nothing', async () => {
  const [world, receiver] = await Promise.all([openWorld(), openReceiver()]);
  const { admin, store } = world;
  await admin.change(ada, { url: 'https://hooks.example.test/x', language: 'en' });
  await store.orm.execute(sql`update ${tableOf(store, 'notice_settings')} set url = ${receiver.url}`);
  assert.deepEqual(await admin.test(ada, 'webhook', 'en'), { fault: 'its host is not a public address' });
  assert.deepEqual(receiver.got, []);
  receiver.close();
  await world.close();
});

test('without traffic no statement is sent between two hourly looks', async () => {
  const world = await openWorld();
  const { host, clock } = world;
  await world.round();
  const look = host.intervals.find(({ name }) => name === 'look for notices')!;
  // What has ended may be written late.
  for (let rounds = 0; rounds < 3; rounds++) {
    clock.advance(60_000);
    await look.work();
  }
  for (let rounds = 0; rounds < 50; rounds++) {
    clock.advance(60_000);
    assert.equal(look.work(), undefined);
  }
  clock.advance(3_600_000);
  const hourly = look.work();
  assert.ok(hourly instanceof Promise);
  await hourly;
  await world.close();
});
