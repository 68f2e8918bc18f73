/** Signing in by providers: a real one that belongs to a company, and one whose answers are wrong in every way. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { database } from '../../../plugins/common/domain/database.ts';
import { type FakeProvider, startProvider } from '../../helpers/fake-oidc.ts';
import { type StandInProxy, startHttpProxy } from '../../helpers/network-stand-ins.ts';
import { type RealProvider, startRealProvider } from '../../helpers/real-oidc.ts';
import type { Browser } from './browser.ts';
import { operator, operatorOf, startConsole, type TestConsole } from './start-console.ts';

const origin = 'http://gateway.test';
let testbed: TestConsole;
let boss: Browser;
let acme: RealProvider;
let other: FakeProvider;
let far: FakeProvider;
let proxy: StandInProxy;

before(async () => {
  acme = await startRealProvider(`${origin}/console/api/auth/callback/acme`, `${origin}/console/sign-in`);
  other = await startProvider();
  far = await startProvider('http://sso.test');
  proxy = await startHttpProxy({ to: far.port });
  testbed = await startConsole(
    `origin: ${origin}
sign_up: invite
throttle: { per_address: 1000 }
domains:
  acme.test: { passwords: off }
  open.test: { sign_up: closed }
oidc:
  acme:
    name: Acme
    issuer: "${acme.issuer}"
    client_id: gateway
    client_secret: shared
    domains: [acme.test]
    sign_out: provider
    roles:
      - { claim: groups, value: admins, role: operator }
      - { claim: groups, value: audit, role: auditor }
    plans: [{ claim: groups, value: research, plan: pro }]
  other: { name: Other, issuer: "${other.issuer}", client_id: gateway, client_secret: shared }
  far: { name: Far, issuer: "${far.issuer}", client_id: gateway, client_secret: shared }
  lost: { name: Lost, issuer: "http://127.0.0.1:1", client_id: gateway, client_secret: shared }`,
    `outbound: { proxy: "http://127.0.0.1:${proxy.port}", direct: [127.0.0.1] }
plans: { default: free, offers: { free: { price: 0 }, pro: { price: 0 } } }`,
  );
  // Nothing listens there. One that was down is looked for again some seconds later.
  const down = await testbed.browser().send('/auth/sign-in/social', { body: { provider: 'lost' } });
  assert.deepEqual([down.status, down.json.error.code], [503, 'provider_unreachable']);
  boss = await operatorOf(testbed);
});
after(async () => {
  await testbed.stop();
  acme.close();
  other.close();
  far.close();
  await proxy.close();
});

async function begin(browser: Browser, provider: string): Promise<URL> {
  const begun = await browser.send('/auth/sign-in/social', {
    body: { provider, callbackURL: '/console/', errorCallbackURL: '/console/sign-in' },
  });
  assert.equal(begun.status, 200, begun.text);
  return new URL(begun.json.url);
}

/** Comes back as a browser does, by a link from elsewhere; resolves with where it is led. */
async function land(browser: Browser, back: URL): Promise<string> {
  assert.equal(back.origin, origin);
  const landed = await browser.send(back.pathname + back.search, { headers: { 'sec-fetch-site': 'cross-site' } });
  assert.equal(landed.status, 302, landed.text);
  return landed.headers.get('location')!;
}

/** Signs a person in by the company's provider. */
async function byAcme(person: RealProvider['person'], browser = testbed.browser()): Promise<Arrived> {
  acme.person = { email_verified: true, name: 'Somebody', ...person };
  const led = await land(browser, await acme.walk((await begin(browser, 'acme')).href));
  return arrived(browser, led);
}

async function byOther(claims: Record<string, unknown>, wrong: FakeProvider['wrong'] = {}): Promise<Arrived> {
  const browser = testbed.browser();
  other.claims = { email_verified: true, name: 'Somebody', ...claims };
  other.wrong = wrong;
  return arrived(browser, await land(browser, backFrom(await begin(browser, 'other'))));
}

/** The way back that the page of a stand-in would lead. */
function backFrom(leave: URL, by = other): URL {
  by.nonce = leave.searchParams.get('nonce') ?? undefined;
  by.challenge = leave.searchParams.get('code_challenge') ?? undefined;
  const back = new URL(leave.searchParams.get('redirect_uri')!);
  back.search = new URLSearchParams({ code: 'one', state: leave.searchParams.get('state')! }).toString();
  return back;
}

interface Arrived {
  readonly browser: Browser;
  /** The code in the address of the sign-in page; undefined: signed in. */
  readonly error: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: as in other tests of answers
  readonly me: any;
}

async function arrived(browser: Browser, led: string): Promise<Arrived> {
  const to = new URL(led, origin);
  assert.equal(to.origin, origin);
  const error = to.searchParams.get('error') ?? undefined;
  assert.equal(to.pathname, error === undefined ? '/console/' : '/console/sign-in', led);
  const me = await browser.send('/me');
  assert.equal(me.status, error === undefined ? 200 : 401);
  return { browser, error, me: me.json };
}

const rows = (text: string) =>
  testbed.gateway
    .find(database)!
    .orm.execute(sql.raw(text.replaceAll('{schema}', testbed.gateway.find(database)!.schema)));

test('a person of a company comes in by its provider without an invitation, with the role and plan of their groups', async () => {
  const ann = await byAcme({
    sub: 'ann',
    email: 'Ann@acme.test',
    name: 'Ann',
    groups: ['research', 'audit', 'admins'],
  });
  assert.deepEqual(
    [ann.me.person.email, ann.me.person.emailVerified, ann.me.role, ann.me.account.plan],
    ['ann@acme.test', true, 'operator', 'pro'],
  );
  const again = await byAcme({ sub: 'ann', email: 'ann@acme.test', groups: ['audit'] });
  assert.deepEqual([again.me.person.id, again.me.role], [ann.me.person.id, 'auditor']);
  assert.equal((await ann.browser.send('/me')).status, 401, 'the session of the former role');
  const left = await byAcme({ sub: 'ann', email: 'ann@acme.test', groups: [] });
  assert.deepEqual([left.me.role, left.me.account.plan], ['client', 'free']);
  const audit = await boss.send('/admin/audit?actor=ann@acme.test');
  const noted = audit.json.rows.map(({ action, reason, result }: Record<string, string>) => [action, reason, result]);
  assert.deepEqual(
    noted.filter(([action]: string[]) => action !== 'self.sign-in'),
    [
      ['self.role', 'acme: auditor → client', 'done'],
      ['self.plan', 'acme: –', 'done'],
      ['self.role', 'acme: operator → auditor', 'done'],
      ['self.plan', 'acme: pro', 'done'],
      ['self.role', 'acme: client → operator', 'done'],
    ],
  );
});

test('a role that an operator has given stays while the groups stay the same', async () => {
  const eve = await byAcme({ sub: 'eve', email: 'eve@acme.test', groups: ['nothing'] });
  const given = await boss.send(`/admin/people/${eve.me.person.id}`, {
    method: 'PATCH',
    body: { role: 'auditor', reason: 'she asked' },
  });
  assert.equal(given.status, 200, given.text);
  assert.equal((await byAcme({ sub: 'eve', email: 'eve@acme.test' })).me.role, 'auditor');
});

test('claims that the provider leaves out as too many change nothing', async () => {
  const many = { sub: 'max', email: 'max@acme.test' };
  assert.equal((await byAcme({ ...many, groups: ['audit'] })).me.role, 'auditor');
  other.claims = {};
  const { firstMatch } = await import('../../../plugins/console/people/providers/claims.ts');
  const rules = [{ claim: 'groups', value: 'audit' }];
  assert.equal(firstMatch(rules, { _claim_names: { groups: 'src1' } }), 'unknown');
  const nested = [
    { claim: 'realm_access.roles', value: 'b' },
    { claim: ['https://acme.test/app', 'roles'], value: 'c' },
    { claim: 'a.b', value: 'whole' },
  ];
  const found = (claims: object) => (firstMatch(nested, claims as never) as { value?: string } | undefined)?.value;
  assert.equal(found({ realm_access: { roles: ['a', 'b'] } }), 'b');
  assert.equal(found({ 'https://acme.test/app': { roles: 'c' } }), 'c');
  assert.equal(found({ 'a.b': 'whole', a: { b: 'member' } }), 'whole');
  assert.equal(found({ realm_access: { roles: ['bb'] }, constructor: 'b' }), undefined);
});

test('the last operator keeps the role that the groups no longer give', async () => {
  const amy = await byAcme({ sub: 'amy', email: 'amy@acme.test', groups: ['admins'] });
  assert.equal(amy.me.role, 'operator');
  await rows(`update {schema}.console_people set role = 'auditor' where email = '${operator.email}'`);
  try {
    assert.equal((await byAcme({ sub: 'amy', email: 'amy@acme.test' })).me.role, 'operator');
  } finally {
    await rows(`update {schema}.console_people set role = 'operator' where email = '${operator.email}'`);
  }
  assert.equal((await byAcme({ sub: 'amy', email: 'amy@acme.test' })).me.role, 'client');
});

test('each person whom a provider may not sign in reads why', async () => {
  const wrongDomain = { sub: 'x1', email: 'x@elsewhere.test' };
  assert.equal((await byAcme(wrongDomain)).error, 'wrong_domain');
  assert.equal((await byAcme({ sub: 'x2', email: 'x@sub.acme.test' })).error, 'wrong_domain');
  assert.equal((await byAcme({ sub: 'x3', email: 'x@acme.test', email_verified: false })).error, 'email_not_verified');
  assert.equal(
    (await byAcme({ sub: 'x4', email: 'x@acme.test', email_verified: undefined })).error,
    'email_not_verified',
  );
  assert.equal((await byAcme({ sub: 'x5', email: undefined })).error, 'email_not_found');
  assert.equal((await byOther({ sub: 'x6', email: 'x@acme.test' })).error, 'other_provider');
  assert.equal((await byOther({ sub: 'x7', email: 'x@elsewhere.test' })).error, 'SIGN_UP_NOT_ALLOWED');
  assert.equal((await byOther({ sub: 'x8', email: 'x@open.test' })).error, 'SIGN_UP_NOT_ALLOWED');
  acme.denies = true;
  assert.equal((await byAcme({ sub: 'x9', email: 'x@acme.test' })).error, 'access_denied');
  acme.denies = false;
  const bob = await byAcme({ sub: 'bob', email: 'bob@acme.test' });
  await boss.send(`/admin/people/${bob.me.person.id}`, { method: 'PATCH', body: { blocked: true, reason: 'left' } });
  assert.equal((await byAcme({ sub: 'bob', email: 'bob@acme.test' })).error, 'BLOCKED');
  const browser = testbed.browser();
  assert.equal(
    await land(browser, new URL(`${origin}/console/api/auth/callback/nowhere?code=1&state=2`)),
    '/console/sign-in?error=oauth_provider_not_found',
  );
  const left = await rows(`select email from {schema}.console_people where email like 'x@%'`);
  assert.deepEqual([...((left as { rows?: unknown[] }).rows ?? (left as never))], []);
});

test('an address is joined with an account by a verified mail alone, never with another identity or with rights', async () => {
  const unverified = { sub: 'm1', email: operator.email, email_verified: false };
  assert.equal((await byOther(unverified)).error, 'email_not_verified');
  // The operator's domain belongs to no provider.
  assert.equal((await byOther({ sub: 'm2', email: operator.email })).error, 'account_not_linked');
  const kelvin = { sub: 'm3', email: operator.email.replace('o', '\u{43e}') };
  assert.equal((await byOther(kelvin)).error, 'email_not_usable');
  assert.equal((await byOther({ sub: 'm4', email: 'mi\u{212a}e@elsewhere.test' })).error, 'email_not_usable');
  assert.equal((await byOther({ sub: 'm5', email: '"x@elsewhere.test"@acme.test' })).error, 'email_not_usable');
  // An account that came to be with an address that was never confirmed may be another person's.
  await boss
    .send('/admin/invitations', { body: { email: 'pat@elsewhere.test' } })
    .then(({ json }) => assert.equal(json.mailed, false));
  const pat = await byOther({
    sub: 'p1',
    email: 'Pat@Elsewhere.test',
    role: 'operator',
    name: ' \u0000Pat\u0007'.repeat(60),
  });
  assert.deepEqual(
    [pat.me.person.email, pat.me.role, pat.me.person.name.length <= 100],
    ['pat@elsewhere.test', 'client', true],
  );
  // The same address, given to somebody else at the provider.
  assert.equal((await byOther({ sub: 'p2', email: 'pat@elsewhere.test' })).error, 'other_identity');
  // The same person with another address, however it is written.
  const moved = await byOther({ sub: 'p1', email: 'patricia@elsewhere.test' });
  assert.deepEqual([moved.me.person.id, moved.me.person.email], [pat.me.person.id, 'pat@elsewhere.test']);
});

test('answers of a provider that are not signed by it, for us, for this sign-in and now begin no session', async () => {
  const dora = { sub: 'd1', email: 'dora@elsewhere.test' };
  await boss.send('/admin/invitations', { body: { email: dora.email } });
  const now = Math.floor(Date.now() / 1_000);
  const wrongs: FakeProvider['wrong'][] = [
    { claims: { iss: acme.issuer } },
    { claims: { aud: 'another' } },
    { claims: { aud: ['gateway', 'another'], azp: 'another' } },
    { claims: { aud: ['gateway', 'another'] } },
    { claims: { nonce: 'of another sign-in' } },
    { claims: { nonce: undefined } },
    { claims: { exp: now - 600 } },
    { claims: { exp: undefined } },
    { claims: { sub: undefined } },
    { claims: { sub: 's'.repeat(300) } },
    { claims: { groups: 'g'.repeat(200_000) } },
    { signed: 'none' },
    { signed: 'other key' },
    { signed: 'not at all' },
  ];
  for (const wrong of wrongs)
    assert.equal((await byOther(dora, wrong)).error, 'unable_to_get_user_info', JSON.stringify(wrong).slice(0, 100));
  assert.equal((await byOther(dora)).me.person.email, dora.email);
});

test('a way back is good once, in the browser that left, for its provider, and leads nowhere else', async () => {
  const browser = testbed.browser();
  acme.person = { sub: 'tim', email: 'tim@acme.test', email_verified: true };
  const back = await acme.walk((await begin(browser, 'acme')).href);
  const victim = testbed.browser();
  assert.match(await land(victim, back), /error=state_mismatch/);
  const own = testbed.browser();
  const fresh = await acme.walk((await begin(own, 'acme')).href);
  const before = new Map(own.cookies);
  assert.equal((await arrived(own, await land(own, fresh))).me.person.email, 'tim@acme.test');
  const thief = testbed.browser();
  for (const [name, value] of before) thief.cookies.set(name, value);
  assert.match(await land(thief, fresh), /error=state_mismatch/);
  // Its own code, with the state of a sign-in that began for another provider.
  const mixed = testbed.browser();
  const code = (await acme.walk((await begin(testbed.browser(), 'acme')).href)).searchParams.get('code')!;
  const way = backFrom(await begin(mixed, 'other'));
  way.searchParams.set('code', code);
  way.pathname = way.pathname.replace('other', 'acme');
  assert.match(await land(mixed, way), /error=invalid_code/);
  for (const to of [
    'https://evil.test/',
    '//evil.test',
    '/\\evil.test',
    'javascript:alert(1)',
    `${origin}.evil.test/`,
  ]) {
    const refused = await own.send('/auth/sign-in/social', { body: { provider: 'acme', callbackURL: to } });
    assert.equal(refused.status, 403, to);
    const error = await own.send('/auth/sign-in/social', {
      body: { provider: 'acme', callbackURL: '/console/', errorCallbackURL: to },
    });
    assert.equal(error.status, 403, to);
  }
  const token = { provider: 'acme', idToken: { token: 'x.y.z', nonce: 'n' } };
  assert.equal((await own.send('/auth/sign-in/social', { body: token })).status, 404);
  assert.equal(
    (await own.send('/auth/link-social', { body: { provider: 'acme', callbackURL: '/console/' } })).status,
    404,
  );
});

test('signing in by a provider begins a session of its own, and keeps no token but the one for signing out', async () => {
  const browser = await clientOfOther('fix@elsewhere.test');
  const fixed = new Map(browser.cookies);
  const kim = await byAcme({ sub: 'kim', email: 'kim@acme.test' }, browser);
  assert.equal(kim.me.person.email, 'kim@acme.test');
  const session = [...fixed].find(([name]) => name.endsWith('.session_token'))!;
  assert.notEqual(browser.cookies.get(session[0]), session[1]);
  const kept = await rows(
    `select provider_id, access_token, refresh_token, id_token is null as bare from {schema}.console_identities where provider_id in ('acme', 'other')`,
  );
  const all = ((kept as { rows?: Record<string, unknown>[] }).rows ?? (kept as never)) as Record<string, unknown>[];
  assert.ok(all.length > 3);
  for (const { provider_id, access_token, refresh_token, bare } of all)
    assert.deepEqual([access_token, refresh_token, bare], [null, null, provider_id === 'other']);
});

async function clientOfOther(email: string): Promise<Browser> {
  await boss.send('/admin/invitations', { body: { email } });
  return (await byOther({ sub: email, email })).browser;
}

test('signing out ends the session here, and at the provider that it began at', async () => {
  const sue = await byAcme({ sub: 'sue', email: 'sue@acme.test' });
  const forged = await sue.browser.send('/auth/sign-out', { body: {}, headers: { origin: 'http://evil.test' } });
  assert.equal(forged.status, 403);
  assert.equal((await sue.browser.send('/me')).status, 200);
  const led = await sue.browser.send('/auth/sign-out', { body: { callbackURL: 'https://evil.test/' } });
  assert.equal(led.status, 403);
  const out = await sue.browser.send('/auth/sign-out', { body: {} });
  assert.equal((await sue.browser.send('/me')).status, 401);
  const url = new URL(out.json.url);
  assert.deepEqual(
    [url.origin, url.searchParams.get('post_logout_redirect_uri'), url.searchParams.has('id_token_hint')],
    [acme.issuer, `${origin}/console/sign-in`, true],
  );
  const page = await fetch(url);
  assert.equal(page.status, 200);
  const done = await acme.submit(page, { logout: 'yes' });
  assert.equal(done.headers.get('location'), `${origin}/console/sign-in`);
  const plain = await (await clientOfOther('out@elsewhere.test')).send('/auth/sign-out', { body: {} });
  assert.equal(plain.json.url, undefined);
});

test('people of a domain without passwords find their provider wherever they would use or get one', async () => {
  const email = 'new@acme.test';
  const visitor = testbed.browser();
  const password = 'a long enough password';
  for (const [path, body] of [
    ['/auth/sign-in/email', { email, password }],
    ['/auth/sign-up/email', { email: 'New@ACME.test', password, name: 'New' }],
    ['/auth/request-password-reset', { email }],
  ] as const) {
    const reply = await visitor.send(path, { body });
    assert.deepEqual([reply.status, reply.json.error.code], [400, 'use_provider'], path);
    assert.match(reply.json.error.message, /sign in with Acme/);
  }
  const invited = await boss.send('/admin/invitations', { body: { email } });
  assert.equal(invited.json.link, `${origin}/console/sign-in`);
  const added = await boss.send('/admin/people', { body: { email, name: 'New', role: 'auditor' } });
  assert.equal(added.json.handover.link, `${origin}/console/sign-in`);
  const reset = await boss.send(`/admin/people/${added.json.person.id}/reset`, { body: { reason: 'forgot it' } });
  assert.deepEqual([reset.status, reset.json.error.code], [409, 'use_provider']);
  const here = await byAcme({ sub: 'new', email });
  assert.deepEqual([here.me.role, here.me.person.id], ['auditor', added.json.person.id]);
  for (const path of ['/auth/change-password', '/auth/passkey/verify-registration'])
    assert.equal(
      (await here.browser.send(path, { body: { currentPassword: password, newPassword: password } })).json.error.code,
      'use_provider',
    );
});

test('the link of the command lets an operator in while the provider of all others is down, by an address of another domain', async () => {
  const command = testbed.gateway.commands.find(({ name }) => name === 'console operator-link')!;
  const { path } = (await command.run({})).json as { path: string };
  const token = new URL(path, origin).searchParams.get('token')!;
  const rescue = { token, password: 'the password of a rescue', name: 'Rescue' };
  const own = await testbed.browser().send('/first-operator', { body: { ...rescue, email: 'rescue@acme.test' } });
  assert.deepEqual([own.status, own.json.error.field, own.json.error.code], [409, 'email', 'use_provider']);
  const browser = testbed.browser();
  assert.equal(
    (await browser.send('/first-operator', { body: { ...rescue, email: 'rescue@elsewhere.test' } })).status,
    200,
  );
  const entered = await browser.send('/auth/sign-in/email', {
    body: { email: 'rescue@elsewhere.test', password: rescue.password },
  });
  assert.equal(entered.status, 200, entered.text);
  assert.equal((await browser.send('/me')).json.role, 'operator');
});

test('operators see what to register at a provider and whether it answers, on the page and by the command', async () => {
  const { rows: shown } = (await boss.send('/admin/sign-in')).json;
  assert.deepEqual(
    shown.map(({ id, redirectUri, withoutPasswords }: Record<string, unknown>) => [id, redirectUri, withoutPasswords]),
    [
      ['acme', `${origin}/console/api/auth/callback/acme`, ['acme.test']],
      ['other', `${origin}/console/api/auth/callback/other`, []],
      ['far', `${origin}/console/api/auth/callback/far`, []],
      ['lost', `${origin}/console/api/auth/callback/lost`, []],
    ],
  );
  assert.equal(shown[0].client_secret, undefined);
  const test = async (id: string) => (await boss.send(`/admin/sign-in/${id}/test`, { body: {} })).json;
  assert.deepEqual([await test('acme'), await test('other')], [{ problem: null }, { problem: null }]);
  const command = testbed.gateway.commands.find(({ name }) => name === 'console providers')!;
  const { text, exitCode } = await command.run({});
  assert.match(text, /callback\/acme\n {2}address after signing out: http:\/\/gateway\.test\/console\/sign-in/);
  assert.match(text, /^other \(Other\): answers as it should$/m);
  assert.match(text, /^lost \(Lost\): it could not be reached/m);
  assert.equal(exitCode, 1);
  other.isDown = true;
  assert.deepEqual(await test('other'), { problem: 'it answered 500' });
  other.isDown = false;
  assert.equal((await boss.send('/admin/sign-in/nowhere/test', { body: {} })).status, 404);
});

test('an operator releases an account for the person who has the address now, and confirms an address', async () => {
  const rob = await byOther({ sub: 'p1', email: 'pat@elsewhere.test' });
  assert.equal((await byOther({ sub: 'p3', email: 'pat@elsewhere.test' })).error, 'other_identity');
  const path = `/admin/people/${rob.me.person.id}`;
  assert.equal((await boss.send(`${path}/release`, { body: { reason: 'Pat left' } })).status, 200);
  assert.equal((await rob.browser.send('/me')).status, 401);
  assert.equal((await byOther({ sub: 'p3', email: 'pat@elsewhere.test' })).me.person.id, rob.me.person.id);
  await rows(`update {schema}.console_people set email_verified = false where id = '${rob.me.person.id}'`);
  await boss.send(`${path}/release`, { body: { reason: 'again' } });
  assert.equal((await byOther({ sub: 'p4', email: 'pat@elsewhere.test' })).error, 'account_not_linked');
  const confirmed = await boss.send(path, { method: 'PATCH', body: { emailVerified: true, reason: 'I know Pat' } });
  assert.equal(confirmed.json.emailVerified, true, confirmed.text);
  assert.equal((await byOther({ sub: 'p4', email: 'pat@elsewhere.test' })).me.person.id, rob.me.person.id);
});

test('a provider that the proxy of outbound requests alone can reach signs people in; people by a provider have no password', async () => {
  far.claims = { sub: 'far', email: 'far@away.test', email_verified: true, name: 'Far' };
  await boss.send('/admin/invitations', { body: { email: 'far@away.test' } });
  const browser = testbed.browser();
  const { me, error } = await arrived(browser, await land(browser, backFrom(await begin(browser, 'far'), far)));
  assert.deepEqual([error, me.person.email], [undefined, 'far@away.test']);
  assert.deepEqual([...new Set(proxy.requested)], ['sso.test:80']);
  const ways = ({ person }: typeof me) => [person.hasPassword, person.providerOnly];
  assert.deepEqual(ways(me), [false, false]);
  assert.deepEqual(ways((await byAcme({ sub: 'ways', email: 'ways@acme.test' })).me), [false, true]);
  assert.deepEqual(ways((await boss.send('/me')).json), [true, false]);
});
