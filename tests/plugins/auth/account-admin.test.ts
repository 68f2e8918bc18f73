/** What people see of accounts and keys, and what they change of them, in force at once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { PluginInstance } from '../../../core/contract/contract.ts';
import type { GatewayError } from '../../../core/contract/errors.ts';
import auth from '../../../plugins/auth/index.ts';
import { accounts, type Caller, caller } from '../../../plugins/common/domain/accounts.ts';
import { type AccountAdmin, accountAdmin, type KeyTerms } from '../../../plugins/common/domain/admin/accounts.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { priceFloor } from '../../../plugins/common/domain/models.ts';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';
import { type FakeHost, fakeExchange, fakeHost, okAnswer, setUp } from '../../helpers/fakes.ts';

interface Setup {
  readonly host: FakeHost;
  readonly store: TestDatabase;
  readonly part: PluginInstance;
  readonly admin: AccountAdmin;
  account(name: string, plan?: string): Promise<string>;
  send(key: string, remoteAddress?: string): Promise<Caller>;
  refusal(key: string, remoteAddress?: string): Promise<GatewayError>;
}

async function openSetup(shared?: TestDatabase): Promise<Setup> {
  const store = shared ?? (await openDatabase({ plugins: ['auth'] }));
  const host = fakeHost({ schema: store.schema });
  host.provide(database, store);
  const part = await setUp(auth, host, {});
  const send = async (key: string, remoteAddress = '192.0.2.1') => {
    const exchange = fakeExchange({ request: { headers: { authorization: `Bearer ${key}` }, remoteAddress } });
    await part.handle!(exchange, async () => okAnswer);
    return exchange.get(caller);
  };
  return {
    host,
    store,
    part,
    admin: host.get(accountAdmin),
    account: async (name, plan = 'free') => (await host.get(accounts).create(name, plan)).id,
    send,
    refusal: (key, remoteAddress) =>
      send(key, remoteAddress).then(
        () => assert.fail('was admitted'),
        (error) => error as GatewayError,
      ),
  };
}

const everything: KeyTerms = {
  name: 'laptop',
  models: ['one', 'two'],
  expiresAt: 1_900_000_000_000,
  addresses: ['192.0.2.0/24', '2001:db8::/32'],
  limits: { rpm: 60, tpm: 100_000, concurrency: 3 },
  cap: { amount: parseUsd('12.345678901'), every: 'month' },
  images: 'wait',
};

test('accounts are searched by part of a name, id, plan and state, page by page in the order of names', async () => {
  const { admin, account, store } = await openSetup();
  const ids = new Map<string, string>();
  for (const name of ['delta', 'Alpha', 'beta', 'al%pha', 'gamma'])
    ids.set(name, await account(name, name === 'beta' ? 'pro' : 'free'));
  await admin.setDisabled(ids.get('gamma')!, true);
  const all: string[] = [];
  for (let after: string | undefined, pages = 0; pages < 10; pages++) {
    const page = await admin.search({}, { limit: 2, after });
    all.push(...page.rows.map(({ name }) => name));
    after = page.next;
    if (after === undefined) break;
  }
  assert.deepEqual(all.toSorted(), ['Alpha', 'al%pha', 'beta', 'delta', 'gamma']);
  assert.equal(new Set(all).size, 5);
  const names = async (filter: Parameters<AccountAdmin['search']>[0]) =>
    (await admin.search(filter, { limit: 10 })).rows.map(({ name }) => name).toSorted();
  assert.deepEqual(await names({ text: 'ALPHA' }), ['Alpha']);
  assert.deepEqual(await names({ text: '%' }), ['al%pha'], 'no pattern');
  assert.deepEqual(await names({ text: ids.get('beta')! }), ['beta']);
  assert.deepEqual(await names({ text: 'delta', ids: [ids.get('gamma')!] }), ['delta', 'gamma']);
  assert.deepEqual(await names({ text: 'missing', ids: [ids.get('gamma')!], plan: 'pro' }), []);
  assert.deepEqual(await names({ plan: 'pro' }), ['beta']);
  assert.deepEqual(await names({ disabled: true }), ['gamma']);
  assert.deepEqual(await names({ disabled: false, text: 'a', plan: 'free' }), ['Alpha', 'al%pha', 'delta']);
  await store.close();
});

test('an unreadable cursor and a wrong page length are refused by name', async () => {
  const { admin, store } = await openSetup();
  for (const after of ['x', Buffer.from('["a","b"]').toString('base64url'), Buffer.from('[1]').toString('base64url')])
    await assert.rejects(admin.search({}, { limit: 10, after }), { kind: 'invalid_request', field: 'after' });
  const foreign = Buffer.from('["yesterday","1"]').toString('base64url');
  await assert.rejects(admin.keys(undefined, { limit: 10, after: foreign }), { field: 'after' });
  for (const limit of [0, 501, 1.5, Number.NaN])
    await assert.rejects(admin.keys(undefined, { limit }), { kind: 'invalid_request', field: 'limit' });
  await store.close();
});

test('an account is renamed, disabled and given a ratio; an unknown one is not found', async () => {
  const { admin, account, store, host } = await openSetup();
  const [id, other] = [await account('acme'), await account('other')];
  await admin.rename(id, ' Acme Ltd ');
  assert.equal((await admin.find(id))!.name, 'Acme Ltd');
  await admin.rename(id, 'Acme Ltd');
  await assert.rejects(admin.rename(id, 'other'), { kind: 'conflict', field: 'name' });
  await assert.rejects(admin.rename(id, other), { kind: 'invalid_request' });
  await assert.rejects(
    admin.rename(id, 'ben@example.test 14d96147be60f'),
    { kind: 'invalid_request', field: 'name' },
    'it would be found as the one that was made for a person',
  );
  await admin.setMultiplier(id, '0.9');
  assert.equal((await admin.find(id))!.multiplier, '0.9');
  await admin.setMultiplier(id, '1.0');
  assert.equal((await admin.find(id))!.multiplier, undefined);
  await assert.rejects(admin.setMultiplier(id, '-1'), { kind: 'invalid_request', field: 'multiplier' });
  host.provide(priceFloor, { losses: ({ numerator }) => (numerator < 5n ? ['m: is sold below its cost'] : []) });
  await assert.rejects(admin.setMultiplier(id, '0.4'), /m: is sold below its cost/);
  await admin.setMultiplier(id, '0.6');
  for (const missing of ['3f0c3b7e-0000-4000-8000-000000000000', 'missing']) {
    assert.equal(await admin.find(missing), undefined);
    await assert.rejects(admin.rename(missing, 'x'), { kind: 'not_found' });
    await assert.rejects(admin.setDisabled(missing, true), { kind: 'not_found' });
    await assert.rejects(admin.createKey(missing, { name: 'x' }), { kind: 'not_found' });
    assert.deepEqual(await admin.keys(missing, { limit: 10 }), { rows: [], next: undefined });
  }
  await store.close();
});

test('when two accounts take a name at once, one gets it and the other a conflict', async () => {
  const { admin, account, store } = await openSetup();
  const [first, second] = [await account('first'), await account('second')];
  const accountRows = sql`${sql.identifier(store.schema)}.${sql.identifier('accounts')}`;
  let late: Promise<void> | undefined;
  await store.orm.transaction(async (transaction) => {
    await transaction.execute(sql`update ${accountRows} set name = 'wanted' where id = ${first}`);
    late = admin.rename(second, 'wanted');
    late.catch(() => undefined);
    // On a server it has found the name free by now, and waits for this transaction.
    await new Promise((resolve) => setTimeout(resolve, 100));
  });
  await assert.rejects(late!, { kind: 'conflict', field: 'name' });
  assert.deepEqual([(await admin.find(first))!.name, (await admin.find(second))!.name], ['wanted', 'second']);
  for (let round = 0; round < 10; round++) {
    const name = `round ${round}`;
    const reply = await Promise.allSettled([first, second].map((id) => admin.rename(id, name)));
    const lost = reply.filter((one) => one.status === 'rejected').map(({ reason }) => (reason as GatewayError).kind);
    assert.deepEqual(lost, ['conflict'], name);
  }
  await store.close();
});

test('two concurrent changes of a key: the later applies whole, and a revoked key stays revoked', async () => {
  const { admin, account, store } = await openSetup();
  const id = await account('acme');
  const made = await admin.createKey(id, everything);
  const wanted: KeyTerms[] = [
    { name: 'one', limits: { rpm: 1 } },
    { name: 'two', limits: { rpm: 2 } },
  ];
  await Promise.all(wanted.map((terms) => admin.updateKey(id, made.id, terms)));
  const [row] = (await admin.keys(id, { limit: 1 })).rows;
  assert.ok(wanted.some(({ name, limits }) => row!.name === name && row!.limits!.rpm === limits!.rpm));
  await Promise.allSettled([admin.revokeKey(id, made.id), admin.updateKey(id, made.id, wanted[0]!)]);
  assert.notEqual((await admin.keys(id, { limit: 1 })).rows[0]!.revokedAt, undefined);
  await store.close();
});

test('a new key has all of its terms, is shown once, and is listed without secret and hash', async () => {
  const { admin, account, store, send } = await openSetup();
  const id = await account('acme');
  const made = await admin.createKey(id, everything);
  assert.ok(made.key.startsWith(made.prefix));
  const { rows } = await admin.keys(id, { limit: 10 });
  const { createdAt, ...view } = rows[0]!;
  assert.equal(createdAt, 1_800_000_000_000);
  const unused = { lastUsedAt: undefined, revokedAt: undefined, rotatedAt: undefined, replaced: [], person: undefined };
  assert.deepEqual(view, { ...everything, id: made.id, accountId: id, prefix: made.prefix, ...unused });
  assert.ok(!JSON.stringify(rows, (_name, value) => String(value)).includes(made.key.slice(20)));
  const who = await send(made.key);
  assert.deepEqual(who.models, new Set(['one', 'two']));
  assert.deepEqual(who.keyLimits, everything.limits);
  assert.deepEqual(who.cap, everything.cap);
  assert.equal(who.waitsForImages, true);
  const plain = await send((await admin.createKey(id, { name: 'plain' })).key);
  assert.deepEqual([plain.models, plain.keyLimits, plain.cap, plain.waitsForImages], Array(4).fill(undefined));
  await store.close();
});

test('keys are listed newest first, of one account or of all, page by page, also when made in the same moment', async () => {
  const { admin, account, store, host } = await openSetup();
  const [one, two] = [await account('one'), await account('two')];
  const made: string[] = [];
  for (let index = 0; index < 7; index++) {
    if (index % 3 === 0) host.advance(5);
    made.push((await admin.createKey(index < 5 ? one : two, { name: `key ${index}` })).id);
  }
  const walk = async (accountId: string | undefined) => {
    const found: string[] = [];
    let last = Number.POSITIVE_INFINITY;
    for (let after: string | undefined; ; ) {
      const page = await admin.keys(accountId, { limit: 2, after });
      for (const { id, createdAt } of page.rows) {
        found.push(id);
        assert.ok(createdAt <= last);
        last = createdAt;
      }
      after = page.next;
      if (after === undefined) return found;
    }
  };
  assert.deepEqual((await walk(undefined)).toSorted(), made.toSorted());
  assert.deepEqual((await walk(one)).toSorted(), made.slice(0, 5).toSorted());
  await store.close();
});

test('keys with one project name are a project, of one account or of all, also once they are revoked', async () => {
  const { admin, account, part, store } = await openSetup();
  const [acme, other] = [await account('acme'), await account('other')];
  const made = async (accountId: string, project?: string) =>
    (await admin.createKey(accountId, { name: 'a key', project })).id;
  const [web, also, none, theirs] = [
    await made(acme, ' web '),
    await made(acme, 'web'),
    await made(acme),
    await made(other, 'web'),
  ];
  const projects = async (accountId?: string) =>
    (await admin.projects(accountId)).map(({ project, keyIds }) => [project, keyIds.toSorted()]);
  assert.deepEqual(await projects(acme), [['web', [web, also].toSorted()]]);
  assert.deepEqual(await projects(), [['web', [web, also, theirs].toSorted()]]);
  await admin.revokeKey(acme, also);
  assert.equal((await admin.setProject(acme, also, 'old')).project, 'old');
  assert.equal((await admin.setProject(acme, web, undefined)).project, undefined);
  assert.deepEqual(await projects(acme), [
    ['old', [also]],
    ['web', []],
  ]);
  assert.deepEqual(
    [...(await admin.namesOf([web, also, none, theirs, 'nonsense']))]
      .map(([id, { project }]) => [id, project])
      .toSorted(),
    [
      [web, undefined],
      [none, undefined],
      [also, 'old'],
      [theirs, 'web'],
    ].toSorted(),
  );
  await assert.rejects(admin.setProject(acme, theirs, 'mine'), { kind: 'not_found' });
  for (const project of ['-', '', 'a\u0007', 'x'.repeat(101)])
    await assert.rejects(admin.setProject(acme, web, project), { kind: 'invalid_request', field: 'project' }, project);
  const command = part.commandLine!.commands!.find(({ name }) => name === 'keys project')!;
  assert.match((await command.run({ key: web, project: 'shop' })).text ?? '', /is in project "shop"/);
  assert.match((await command.run({ key: web })).text ?? '', /is in no project/);
  await store.close();
});

test('calls are attributed to the person and the project of their key, to another project from the next call on', async () => {
  const { admin, account, store, send } = await openSetup();
  const [acme, other] = [await account('acme'), await account('other')];
  const terms = { name: 'a key', project: 'web' };
  const [first, service, theirs] = [
    await admin.createKey(acme, terms, 'ann'),
    await admin.createKey(acme, terms),
    await admin.createKey(other, terms, 'ben'),
  ];
  const [ofFirst, ofService, ofTheirs] = await Promise.all(
    [first, service, theirs].map(async ({ key }) => (await send(key)).attribution),
  );
  assert.deepEqual(ofFirst, { person: 'ann', project: ofService!.project });
  assert.equal(ofService!.person, undefined);
  assert.notEqual(ofTheirs!.project, ofFirst!.project);
  await admin.setProject(acme, first.id, 'shop');
  const moved = (await send(first.key)).attribution!;
  assert.equal(moved.person, 'ann');
  assert.ok(![ofFirst!.project, ofTheirs!.project, undefined].includes(moved.project));
  await admin.setProject(acme, first.id, undefined);
  assert.deepEqual((await send(first.key)).attribution, { person: 'ann', project: undefined });
  await admin.setProject(acme, service.id, undefined);
  assert.equal((await send(service.key)).attribution, undefined);
  assert.equal((await admin.keys(acme, { limit: 2 })).rows.find(({ id }) => id === first.id)!.person, 'ann');
  await store.close();
});

test('impossible terms are refused by field, and nothing is made', async () => {
  const { admin, account, store } = await openSetup();
  const id = await account('acme');
  const cap = (amount: string, every: string) => ({ cap: { amount: parseUsd(amount), every: every as 'day' } });
  const wrong: [Partial<KeyTerms>, string][] = [
    [{ name: ' ' }, 'name'],
    [{ name: 'a\u001b[2J' }, 'name'],
    [{ models: [] }, 'models'],
    [{ expiresAt: 1_000 }, 'expiresAt'],
    [{ expiresAt: Number.NaN }, 'expiresAt'],
    [{ addresses: [] }, 'addresses'],
    [{ addresses: ['192.0.2.1', 'home'] }, 'addresses'],
    [{ addresses: ['192.0.2.0/33'] }, 'addresses'],
    [{ addresses: ['192.0.2.0/'] }, 'addresses'],
    [{ addresses: ['2001:db8::/129'] }, 'addresses'],
    [{ addresses: ['::ffff:192.0.2.0/120'] }, 'addresses'],
    [{ addresses: ['fe80::1%eth0'] }, 'addresses'],
    [{ addresses: Array.from({ length: 101 }, () => '192.0.2.1') }, 'addresses'],
    [{ limits: { rpm: 0 } }, 'limits.rpm'],
    [{ limits: { tpm: 1.5 } }, 'limits.tpm'],
    [{ limits: { rpd: 100_000_001 } }, 'limits.rpd'],
    [cap('0', 'day'), 'cap.amount'],
    [cap('1000000000.000000001', 'day'), 'cap.amount'],
    [cap('1', 'year'), 'cap.every'],
  ];
  for (const [terms, field] of wrong)
    await assert.rejects(admin.createKey(id, { name: 'x', ...terms }), { kind: 'invalid_request', field });
  assert.deepEqual((await admin.keys(id, { limit: 10 })).rows, []);
  await store.close();
});

test('a key works from its addresses only, and the refusal names none of them', async () => {
  const { admin, account, store, send, refusal } = await openSetup();
  const id = await account('acme');
  const { key } = await admin.createKey(id, {
    name: 'office',
    addresses: ['192.0.2.7', '198.51.100.9/24', '2001:db8:1::/48', '::ffff:203.0.113.5'],
  });
  const inside = [
    '192.0.2.7',
    '::ffff:192.0.2.7',
    '198.51.100.200',
    '::FFFF:198.51.100.1',
    '2001:db8:1:2::3',
    '203.0.113.5',
  ];
  for (const address of inside) await send(key, address);
  for (const address of ['192.0.2.8', '198.51.101.1', '2001:db8:2::1', '::1', '', 'nonsense', '::ffff:192.0.2.8']) {
    const error = await refusal(key, address);
    assert.deepEqual([error.status, error.code], [403, 'address_not_allowed']);
    assert.equal(error.message, 'This API key may not be used from this address.');
  }
  await store.close();
});

test('changed terms of a key, and its revocation, apply in every process', async () => {
  const first = await openSetup();
  const second = await openSetup(await openDatabase({ schema: first.store.schema }));
  const id = await first.account('acme');
  const { id: keyId, key } = await first.admin.createKey(id, everything);
  assert.deepEqual((await second.send(key)).keyLimits, everything.limits);
  const view = await first.admin.updateKey(id, keyId, {
    name: 'renamed',
    limits: { rpm: 5 },
    addresses: ['10.0.0.0/8'],
  });
  assert.deepEqual([view.name, view.models, view.cap, view.expiresAt], ['renamed', undefined, undefined, undefined]);
  assert.deepEqual((await first.admin.keys(id, { limit: 1 })).rows, [view]);
  await second.store.poll();
  assert.equal((await second.refusal(key)).status, 403);
  assert.deepEqual((await second.send(key, '10.1.2.3')).keyLimits, { rpm: 5 });
  const revoked = await first.admin.revokeKey(id, keyId);
  assert.equal(revoked.revokedAt, first.host.clock.now());
  await second.store.poll();
  assert.equal((await second.refusal(key, '10.1.2.3')).status, 401);
  await assert.rejects(first.admin.updateKey(id, keyId, { name: 'again' }), { kind: 'conflict' });
  await second.store.close();
  await first.store.close();
});

test("every operation on another account's key answers that it is not found", async () => {
  const { admin, account, store, send } = await openSetup();
  const [mine, theirs] = [await account('mine'), await account('theirs')];
  const { id, key } = await admin.createKey(theirs, { name: 'x' });
  await assert.rejects(admin.updateKey(mine, id, { name: 'mine now' }), { kind: 'not_found' });
  await assert.rejects(admin.revokeKey(mine, id), { kind: 'not_found' });
  await assert.rejects(admin.revokeKey(theirs, 'nonsense'), { kind: 'not_found' });
  await send(key);
  await store.close();
});

test('a renamed expired key stays expired, and a new end makes it valid again', async () => {
  const { admin, account, store, host, send, refusal } = await openSetup();
  const id = await account('acme');
  const expiresAt = host.clock.now() + 1_000;
  const made = await admin.createKey(id, { name: 'x', expiresAt });
  host.advance(2_000);
  await admin.updateKey(id, made.id, { name: 'y', expiresAt });
  assert.equal((await refusal(made.key)).status, 401);
  await assert.rejects(admin.updateKey(id, made.id, { name: 'y', expiresAt: expiresAt + 1 }), { field: 'expiresAt' });
  await admin.updateKey(id, made.id, { name: 'y', expiresAt: host.clock.now() + 1_000 });
  await send(made.key);
  await store.close();
});

test('the command line makes keys with addresses, limits and a cap', async () => {
  const { part, account, store, admin } = await openSetup();
  const id = await account('acme');
  const create = (values: Record<string, string>) =>
    part.commandLine!.commands!.find(({ name }) => name === 'keys create')!.run({ account: 'acme', ...values });
  await create({ addresses: '192.0.2.1, 2001:db8::/32', rpm: '60', tpm: '40k', cap: '5/day' });
  const { rows } = await admin.keys(id, { limit: 10 });
  assert.deepEqual(rows[0]!.addresses, ['192.0.2.1', '2001:db8::/32']);
  assert.deepEqual(rows[0]!.limits, { rpm: 60, tpm: 40_000 });
  assert.deepEqual(rows[0]!.cap, { amount: parseUsd('5'), every: 'day' });
  const listed = await part.commandLine!.commands!.find(({ name }) => name === 'keys list')!.run({});
  assert.match(listed.text, / from 192\.0\.2\.1 2001:db8::\/32, rpm 60, tpm 40000, 5\.00\/day {2}/);
  await assert.rejects(create({ cap: '5/year' }), /not an amount of USD/);
  await assert.rejects(create({ rpm: 'many' }), /not a whole number/);
  await store.close();
});

test('a text that no database can store is not found, and is no error', async () => {
  const { admin, account, store } = await openSetup();
  const id = await account('acme');
  await admin.createKey(id, { name: 'x' });
  for (const filter of [{ text: 'a\0' }, { plan: '\0' }])
    assert.deepEqual((await admin.search(filter, { limit: 5 })).rows, []);
  const cursor = (...values: string[]) => Buffer.from(JSON.stringify(values)).toString('base64url');
  assert.deepEqual((await admin.search({}, { limit: 5, after: cursor('\0') })).rows, []);
  const far = cursor('+033658-09-27T01:46:39.999Z', '3f0c3b7e-0000-4000-8000-000000000000');
  assert.equal((await admin.keys(id, { limit: 5, after: far })).rows.length, 1);
  await store.close();
});

test('the number of keys of an account is bounded, and a revoked one makes room', async () => {
  const { admin, account, store } = await openSetup();
  const [id, other] = [await account('acme'), await account('other')];
  const first = await admin.createKey(id, { name: 'first' });
  const keys = sql`${sql.identifier(store.schema)}.keys`;
  await store.orm.execute(sql`insert into ${keys} (account_id, name, prefix, hash, created_at)
    select ${id}::uuid, 'made', 'made', 'hash ' || number, now() from generate_series(1, 999) as number`);
  await assert.rejects(admin.createKey(id, { name: 'one more' }), { kind: 'conflict', message: /at most 1000 keys/ });
  await admin.createKey(other, { name: 'of another' });
  await admin.revokeKey(id, first.id);
  await admin.createKey(id, { name: 'one more' });
  await store.close();
});

test('keys that expire within a time are listed, soonest first, without revoked ones', async () => {
  const { admin, account, host } = await openSetup();
  const id = await account('expiring');
  const hourMs = 3_600_000;
  const now = host.clock.now();
  const prefixes = new Map<number | undefined, string>();
  for (const hours of [3, 1, undefined, 2]) {
    const expires = hours === undefined ? {} : { expiresAt: now + hours * hourMs };
    const made = await admin.createKey(id, { name: 'a key', ...expires });
    const { rows } = await admin.keys(id, { limit: 10 });
    prefixes.set(hours, rows.find((row) => row.id === made.id)!.prefix);
    if (hours === 2) await admin.revokeKey(id, made.id);
  }
  const listed = (hours: number[]) =>
    hours.map((each) => ({ prefix: prefixes.get(each), expiresAt: now + each * hourMs }));
  assert.deepEqual(await admin.expiringKeys(4 * hourMs, 10), listed([1, 3]));
  assert.deepEqual(await admin.expiringKeys(4 * hourMs, 1), listed([1]));
  assert.deepEqual(await admin.expiringKeys(2 * hourMs, 10), listed([1]));
  assert.deepEqual(await admin.expiringKeys(hourMs / 2, 10), []);
});
