/** Companies that sign in by their own provider: domains by DNS, whom it lets in and as what, and what it cannot reach. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { accounts } from '../../../../plugins/common/domain/accounts.ts';
import { database } from '../../../../plugins/common/domain/database.ts';
import { type FakeDns, startDns } from '../../../helpers/fake-dns.ts';
import { type FakeProvider, startProvider } from '../../../helpers/fake-oidc.ts';
import { type RealProvider, startRealProvider } from '../../../helpers/real-oidc.ts';
import type { Browser } from '../browser.ts';
import { clientOf, operatorOf, startConsole, type TestConsole } from '../start-console.ts';

const origin = 'http://gateway.test';
let testbed: TestConsole;
let dns: FakeDns;
let acme: RealProvider;
let other: FakeProvider;
let [owner, rival]: Browser[] = [];
let boss: Browser;
let company: { id: string; account: string };

before(async () => {
  dns = await startDns();
  other = await startProvider();
  testbed = await startConsole(
    `origin: ${origin}
sign_up: open
throttle: { per_address: 1000 }
companies: { private_providers: true, dns: ["${dns.address}"] }
domains: { staff.test: { sign_up: invite } }
oidc:
  globex: { name: Globex, issuer: "${other.issuer}", client_id: gateway, client_secret: shared, domains: [globex.test], account: globex, member: viewer, members: [{ claim: groups, value: dev, role: developer, project: tools }] }`,
  );
  boss = await operatorOf(testbed);
  owner = await clientOf(testbed, 'olga@example.test');
  rival = await clientOf(testbed, 'rita@example.test');
  const { redirectUri } = await signInOf(owner);
  acme = await startRealProvider(redirectUri, `${origin}/console/sign-in`);
  company = { id: redirectUri.split('/').at(-1), account: (await owner.send('/me')).json.account.id };
  await owner.send('/projects', { body: { name: 'search' } });
});
after(async () => {
  await testbed.stop();
  acme.close();
  other.close();
  dns.close();
});

const signInOf = async (who: Browser) => (await who.send('/members/sign-in')).json;
const recordFor = async (who: Browser, domain: string) =>
  (await signInOf(who)).domains.find((one: { domain: string }) => one.domain === domain).record;
const publish = async (...of: { name: string; value: string }[]) => {
  for (const [name, records] of Map.groupBy(of, (record) => record.name))
    dns.texts.set(
      name,
      records.map(({ value }) => value),
    );
};
const verify = (who: Browser, domain: string) =>
  who.send(`/members/sign-in/domains/${domain}/verify`, { method: 'POST' });
const add = (who: Browser, domain: string) => who.send('/members/sign-in/domains', { body: { domain } });

const provider = (more: object = {}) => ({
  ...{ name: 'Acme', issuer: acme.issuer, clientId: 'gateway', clientSecret: 'shared', role: 'viewer' },
  groups: [
    { claim: 'groups', value: 'admins', role: 'admin' },
    { claim: 'groups', value: 'search', role: 'developer', project: 'search' },
  ],
  ...more,
});

const rows = async (text: string) => {
  const { orm, schema } = testbed.gateway.find(database)!;
  const found = await orm.execute(sql.raw(text.replaceAll('{schema}', schema)));
  return ((found as { rows?: unknown[] }).rows ?? found) as Record<string, unknown>[];
};

async function begin(browser: Browser, id: string): Promise<URL> {
  const body = { provider: id, callbackURL: '/console/', errorCallbackURL: '/console/sign-in' };
  const begun = await browser.send('/auth/sign-in/social', { body });
  assert.equal(begun.status, 200, begun.text);
  return new URL(begun.json.url);
}

async function land(browser: Browser, back: URL) {
  const landed = await browser.send(back.pathname + back.search, { headers: { 'sec-fetch-site': 'cross-site' } });
  assert.equal(landed.status, 302, landed.text);
  const to = new URL(landed.headers.get('location')!, origin);
  const error = to.searchParams.get('error') ?? undefined;
  return { browser, error, me: (await browser.send('/me')).json };
}

async function byAcme(person: RealProvider['person']) {
  const browser = testbed.browser();
  acme.person = { email_verified: true, name: 'Somebody', ...person };
  return land(browser, await acme.walk((await begin(browser, company.id)).href));
}

test('a domain is verified by the record that the page names, for one account, and another gets it when that record is gone', async () => {
  assert.equal((await add(owner!, 'Acme.test.')).status, 200);
  assert.equal((await add(owner!, 'no domain')).json.error.field, 'domain');
  assert.equal((await verify(owner!, 'acme.test')).json.error.code, 'domain_not_verified');
  const own = await recordFor(owner!, 'acme.test');
  assert.equal(own.name, '_gateway-verification.acme.test');
  await publish({ ...own, value: `${own.value}x` });
  assert.equal((await verify(owner!, 'acme.test')).json.error.code, 'domain_not_verified');
  await publish(own);
  assert.ok((await verify(owner!, 'acme.test')).json.domains[0].verifiedAt !== null);
  await add(rival!, 'acme.test');
  const theirs = await recordFor(rival!, 'acme.test');
  assert.notEqual(theirs.value, own.value);
  assert.equal((await verify(rival!, 'acme.test')).json.error.code, 'domain_not_verified');
  await publish(own, theirs);
  assert.equal((await verify(rival!, 'acme.test')).json.error.code, 'domain_taken');
  await publish(theirs);
  assert.equal((await verify(rival!, 'acme.test')).status, 200);
  assert.equal((await signInOf(owner!)).domains[0].verifiedAt, null, 'who has lost the record has lost the domain');
  await publish(own);
  assert.equal((await verify(owner!, 'acme.test')).status, 200);
  for (const domain of ['globex.test', 'staff.test'])
    assert.equal((await add(rival!, domain)).json.error.code, 'domain_taken', 'the operator has set it up');
});

test('an owner sets a provider up, which is read first, and the secret is shown nowhere and stored encrypted', async () => {
  const lost = provider({ issuer: 'http://127.0.0.1:1' });
  const refused = await owner!.send('/members/sign-in/provider', { body: lost });
  assert.deepEqual([refused.status, refused.json.error.field], [400, 'issuer']);
  const { clientSecret: _, ...without } = provider();
  const missing = await owner!.send('/members/sign-in/provider', { body: without });
  assert.equal(missing.json.error.field, 'clientSecret');
  const saved = await owner!.send('/members/sign-in/provider', { body: provider() });
  assert.equal(saved.status, 200, saved.text);
  assert.doesNotMatch(saved.text, /shared/);
  const [row] = await rows(`select * from {schema}.console_company_providers`);
  assert.doesNotMatch(JSON.stringify(row), /shared/);
  assert.equal((await owner!.send('/members/sign-in/provider', { body: without })).status, 200, 'it keeps the secret');
  assert.equal((await owner!.send('/members/sign-in/test', { method: 'POST' })).json.problem, null);
  const { rows: log } = (await owner!.send('/members/audit')).json;
  assert.deepEqual(
    new Set(log.map(({ action }: { action: string }) => action)),
    new Set(['sign-in.provider', 'sign-in.verify', 'sign-in.domain', 'project.create']),
  );
  assert.doesNotMatch(JSON.stringify(log), /"shared"/);
});

test('people of the domain become members with the role and project of their groups, and what changes at the provider changes here', async () => {
  const eve = await byAcme({ sub: 'eve', email: 'Eve@acme.test' });
  assert.deepEqual(
    [eve.error, eve.me.account.id, eve.me.account.role, eve.me.role],
    [undefined, company.account, 'viewer', 'client'],
  );
  const sam = await byAcme({ sub: 'sam', email: 'sam@acme.test', groups: ['search', 'admins'] });
  assert.equal(sam.me.account.role, 'admin', 'the first rule that holds');
  const dev = await byAcme({ sub: 'sam', email: 'sam@acme.test', groups: ['search'] });
  assert.equal(dev.me.account.role, 'developer');
  const made = await dev.browser.send('/keys', { body: { name: 'mine' } });
  const { rows: keys } = (await dev.browser.send('/keys')).json;
  assert.deepEqual([made.status, keys[0].project], [200, 'search']);
  const elsewhere = await dev.browser.send('/keys', { body: { name: 'other', project: 'other' } });
  assert.deepEqual([elsewhere.status, elsewhere.json.error.code], [403, 'other_project']);
  const moved = await dev.browser.send(`/keys/${keys[0].id}`, {
    method: 'PATCH',
    body: { name: 'mine', project: 'other' },
  });
  assert.equal(moved.json.error.code, 'other_project');
  const members = (await owner!.send('/members')).json.rows;
  const samId = members.find(({ email }: { email: string }) => email === 'sam@acme.test').id;
  await owner!.send(`/members/${samId}`, { method: 'PATCH', body: { role: 'billing' } });
  const same = await byAcme({ sub: 'sam', email: 'sam@acme.test', groups: ['search'] });
  assert.equal(same.me.account.role, 'billing', 'a role given by hand stays while the groups do');
  const log = (await owner!.send('/members/audit')).json.rows.map(
    (row: { action: string; actor: string }) => `${row.action} ${row.actor}`,
  );
  assert.ok(log.includes('member.join eve@acme.test') && log.includes('member.change sam@acme.test'), log.join(', '));
});

test('a session of the company is for its account alone, whatever else its person has or may', async () => {
  const browser = await clientOf(testbed, 'dora@acme.test');
  await rows(`update {schema}.console_people set email_verified = true where email = 'dora@acme.test'`);
  const home = (await browser.send('/me')).json.account.id;
  const { browser: bound, me } = await byAcme({ sub: 'dora', email: 'dora@acme.test' });
  assert.deepEqual(
    [me.account.id, me.accounts.map(({ id }: { id: string }) => id)],
    [company.account, [company.account]],
  );
  assert.equal(me.person.providerOnly, true);
  assert.equal((await bound.send('/members/choose', { body: { accountId: home } })).json.error.code, 'company_session');
  assert.equal((await bound.send('/members/join', { body: { token: 'x' } })).json.error.code, 'company_session');
  for (const path of [
    '/auth/change-password',
    '/auth/passkey/generate-register-options',
    '/auth/two-factor/enable',
    '/auth/update-user',
    '/auth/delete-user',
    '/auth/change-email',
    '/auth/link-social',
  ]) {
    const tried = await bound.send(path, { body: {} });
    assert.deepEqual([path, tried.status, tried.json.error.code], [path, 403, 'company_session']);
  }
  assert.equal((await browser.send('/me')).json.account.id, home, 'their own session is as it was');
  await rows(`update {schema}.console_people set role = 'operator' where email = 'dora@acme.test'`);
  assert.equal((await bound.send('/me')).json.role, 'client');
  assert.equal((await bound.send('/admin/people')).status, 403);
  const removed = (await owner!.send('/members')).json.rows.find(
    ({ email }: { email: string }) => email === 'dora@acme.test',
  ).id;
  await owner!.send(`/members/${removed}/remove`, { body: { keys: 'revoke' } });
  assert.deepEqual((await bound.send('/me')).json.account, null);
  assert.equal((await bound.send('/keys')).json.error.code, 'no_account');
});

test('a provider of a company vouches for its verified domains alone, for confirmed addresses, and joins no account with rights or with an unconfirmed address', async () => {
  const refused = async (person: RealProvider['person']) => (await byAcme(person)).error;
  assert.equal(await refused({ sub: 'x1', email: 'x@elsewhere.test' }), 'wrong_domain');
  assert.equal(await refused({ sub: 'x2', email: 'x@sub.acme.test' }), 'wrong_domain');
  assert.equal(await refused({ sub: 'x3', email: 'x@globex.test' }), 'other_provider');
  assert.equal(await refused({ sub: 'x4', email: 'x@acme.test', email_verified: false }), 'email_not_verified');
  await clientOf(testbed, 'squat@acme.test');
  assert.equal(await refused({ sub: 'x5', email: 'squat@acme.test' }), 'account_not_linked');
  await clientOf(testbed, 'root@acme.test');
  await rows(
    `update {schema}.console_people set email_verified = true, role = 'auditor' where email = 'root@acme.test'`,
  );
  assert.equal(await refused({ sub: 'x6', email: 'root@acme.test' }), 'account_not_linked');
  assert.equal(await refused({ sub: 'x7', email: 'sam@acme.test' }), 'other_identity');
});

test('a person gives their address to find the provider of their company; a lost domain or a removed provider ends it', async () => {
  const find = async (email: string) =>
    (await testbed.browser().send('/company-sign-in', { body: { email } })).json.provider;
  assert.deepEqual(await find('New@Acme.test'), { id: company.id, name: 'Acme' });
  assert.equal(await find('new@elsewhere.test'), null);
  assert.equal((await testbed.browser().send('/info')).json.companies, true);
  const before = await byAcme({ sub: 'eve', email: 'eve@acme.test' });
  await owner!.send('/members/sign-in/domains/acme.test', { method: 'DELETE' });
  assert.equal(await find('new@acme.test'), null);
  const gone = await testbed.browser().send('/auth/sign-in/social', { body: { provider: company.id } });
  assert.deepEqual([gone.status, gone.json.error.code], [404, 'oauth_provider_not_found']);
  await add(owner!, 'acme.test');
  await publish(await recordFor(owner!, 'acme.test'));
  await verify(owner!, 'acme.test');
  assert.equal((await byAcme({ sub: 'eve', email: 'eve@acme.test' })).error, undefined);
  assert.equal((await before.browser.send('/me')).status, 200);
  await owner!.send('/members/sign-in/provider', { method: 'DELETE' });
  assert.equal((await before.browser.send('/me')).status, 401, 'sessions that began by it end');
  assert.equal(
    (await rows(`select id from {schema}.console_identities where provider_id = '${company.id}'`)).length,
    0,
  );
});

test("only owners see and set the sign-in of their account, and an account of one's own has none", async () => {
  const { link } = (await owner!.send('/members/invitations', { body: { email: 'ann@example.test', role: 'admin' } }))
    .json;
  const ann = await clientOf(testbed, 'ann@example.test');
  await ann.send('/members/join', { body: { token: new URL(link).searchParams.get('join') } });
  const looked = await ann.send('/members/sign-in');
  assert.deepEqual([looked.status, looked.json.error.code], [403, 'role_not_included']);
  const { domains } = await signInOf(rival!);
  assert.deepEqual(
    domains.map(({ domain, verifiedAt }: { domain: string; verifiedAt: string | null }) => [domain, verifiedAt]),
    [['acme.test', null]],
  );
});

test("an operator's provider for an account makes its people members of it by their groups", async () => {
  await boss.send('/admin/people');
  const { rows: people } = (await boss.send('/admin/people')).json;
  assert.ok(people.length > 3);
  const walk = async (claims: Record<string, unknown>) => {
    const browser = testbed.browser();
    other.claims = { email_verified: true, name: 'Gil', ...claims };
    const leave = await begin(browser, 'globex');
    other.nonce = leave.searchParams.get('nonce') ?? undefined;
    other.challenge = leave.searchParams.get('code_challenge') ?? undefined;
    const back = new URL(leave.searchParams.get('redirect_uri')!);
    back.search = new URLSearchParams({ code: 'one', state: leave.searchParams.get('state')! }).toString();
    return land(browser, back);
  };
  const lost = await testbed.browser().send('/auth/sign-in/social', { body: { provider: 'globex' } });
  assert.equal(lost.json.error.code, 'no_account');
  await testbed.gateway.find(accounts)!.create('globex', 'free');
  const gil = await walk({ sub: 'gil', email: 'gil@globex.test', groups: ['dev'] });
  assert.deepEqual([gil.me.account.name, gil.me.account.role, gil.me.role], ['globex', 'developer', 'client']);
  const guy = await walk({ sub: 'guy', email: 'guy@globex.test' });
  assert.equal(guy.me.account.role, 'viewer');
});
