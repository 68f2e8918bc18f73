/** Ways in that lead through others: invitations, mails, and a provider that vouches for people. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import type { AddressInfo, Server as TcpServer } from 'node:net';
import { after, before, test } from 'node:test';
import { type FakeProvider, startProvider } from '../../helpers/fake-oidc.ts';
import { smtpSink } from '../../helpers/smtp-sink.ts';
import type { Browser } from './browser.ts';
import { operator, operatorOf, startConsole, type TestConsole } from './start-console.ts';

let testbed: TestConsole;
let boss: Browser;
let mails: string[];
let smtp: TcpServer;
let provider: FakeProvider;

before(async () => {
  mails = [];
  smtp = smtpSink(mails);
  const smtpPort = await listen(smtp);
  provider = await startProvider();
  testbed = await startConsole(
    `origin: http://gateway.test
sign_up: invite
smtp: { host: 127.0.0.1, port: ${smtpPort}, encryption: none, from: 'Gateway <gateway@example.test>' }
oidc:
  - { id: acme, name: Acme, issuer: "${provider.issuer}", client_id: gateway, client_secret: shared }`,
  );
  boss = await operatorOf(testbed);
});
after(async () => {
  await testbed.stop();
  smtp.close();
  provider.close();
});

test('sign-up needs an invitation, which is for one address, once', async () => {
  const visitor = testbed.browser();
  const who = { email: 'ivy@example.test', password: 'the password of ivy', name: 'Ivy' };
  const refused = await visitor.send('/auth/sign-up/email', { body: who });
  assert.deepEqual([refused.status, refused.json.error.code], [400, 'sign_up_not_allowed'], refused.text);

  const reply = await boss.send('/admin/invitations', { body: { email: 'Ivy@example.test' } });
  assert.deepEqual([reply.json.mailed, reply.json.link], [true, null]);
  const link = new URL(await linkIn('ivy@example.test'));
  assert.equal(link.origin, 'http://gateway.test');
  const invite = link.searchParams.get('invite')!;
  const stranger = { ...who, email: 'other@example.test', invite };
  assert.equal((await visitor.send('/auth/sign-up/email', { body: stranger })).status, 400);
  assert.equal((await visitor.send('/auth/sign-up/email', { body: { ...who, invite } })).status, 200);
  const again = await testbed
    .browser()
    .send('/auth/sign-up/email', { body: { ...who, email: 'ivy@example.test', invite } });
  assert.equal((await testbed.browser().send('/me')).status, 401);
  assert.equal(again.json?.token ?? null, null);
});

test('with mail, an address is confirmed before its first sign-in', async () => {
  await boss.send('/admin/invitations', { body: { email: 'vera@example.test' } });
  const invite = new URL(await linkIn('vera@example.test')).searchParams.get('invite')!;
  const who = { email: 'vera@example.test', password: 'the password of vera', name: 'Vera', invite };
  mails.length = 0;
  const browser = testbed.browser();
  assert.equal((await browser.send('/auth/sign-up/email', { body: who })).json.token, null);
  assert.equal((await browser.send('/auth/sign-in/email', { body: who })).status, 403);
  const link = new URL(await linkIn('vera@example.test'));
  assert.equal(link.pathname, '/console/verify');
  const confirmed = await browser.send(`/auth/verify-email?token=${link.searchParams.get('token')}`);
  assert.equal(confirmed.status, 200, confirmed.text);
  assert.equal((await browser.send('/me')).json.person.emailVerified, true);
});

test('a request for a new password has the same answer for known and unknown addresses, and mails the known one', async () => {
  mails.length = 0;
  const visitor = testbed.browser();
  const requestOf = (email: string) => visitor.send('/auth/request-password-reset', { body: { email } });
  const [known, unknown] = [await requestOf(operator.email), await requestOf('unknown@example.test')];
  assert.deepEqual([known.status, known.text], [unknown.status, unknown.text]);
  const link = new URL(await linkIn(operator.email));
  assert.equal(link.href.startsWith('http://gateway.test/console/reset-password?token='), true);
  assert.equal(
    mails.some((mail) => mail.includes('unknown@example.test')),
    false,
  );
});

test('an invited person that an identity provider confirms is signed in, without a password', async () => {
  await boss.send('/admin/invitations', { body: { email: 'pat@example.test' } });
  await linkIn('pat@example.test');
  const stranger = await throughProvider({
    sub: '1',
    email: 'strange@example.test',
    email_verified: true,
    name: 'Strange',
  });
  assert.equal((await stranger.send('/me')).status, 401);
  const pat = await throughProvider({
    sub: '2',
    email: 'pat@example.test',
    email_verified: true,
    name: 'Pat',
    role: 'operator',
  });
  const me = await pat.send('/me');
  assert.deepEqual([me.status, me.json?.person?.email, me.json?.role], [200, 'pat@example.test', 'client']);
});

test('an address that the provider has not verified does not sign in its person', async () => {
  const browser = await throughProvider({ sub: '3', email: operator.email, email_verified: false, name: 'Mallory' });
  assert.equal((await browser.send('/me')).status, 401);
});

test('a provider that was down at first is found once it is up', async () => {
  const late = await startConsole(
    `origin: http://gateway.test
sign_up: open
oidc:
  - { id: acme, name: Acme, issuer: "${provider.issuer}", client_id: gateway, client_secret: shared }`,
  );
  try {
    provider.isDown = true;
    const send = () =>
      late.browser().send('/auth/sign-in/social', { body: { provider: 'acme', callbackURL: '/console/' } });
    assert.equal((await send()).status, 404);
    await operatorOf(late);
    provider.isDown = false;
    // The gateway looks again ten seconds later; its clock is the machine's here, so the throttle is what is waited for.
    const reply = await eventually(send, ({ status }) => status === 200);
    assert.equal(new URL(reply.json.url).origin, provider.issuer);
  } finally {
    provider.isDown = false;
    await late.stop();
  }
});

async function eventually<T>(send: () => Promise<T>, isRight: (value: T) => boolean): Promise<T> {
  for (let attempt = 0; attempt < 80; attempt++) {
    const value = await send();
    if (isRight(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error('it did not come to pass');
}

/** The first address in the newest mail to somebody. */
async function linkIn(to: string): Promise<string> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const mail = mails.findLast((text) => text.includes(`To: ${to}`));
    const link =
      mail === undefined ? undefined : /http:\/\/\S+/.exec(mail.replaceAll('=\r\n', '').replaceAll('=3D', '='))?.[0];
    if (link !== undefined) return link;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`no mail came to ${to}`);
}

function listen(server: TcpServer): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

/** Follows the redirects to the provider and back as the person that it vouches for. */
async function throughProvider(claims: Record<string, unknown>): Promise<Browser> {
  const browser = testbed.browser();
  const begun = await browser.send('/auth/sign-in/social', {
    body: { provider: 'acme', callbackURL: '/console/' },
  });
  assert.equal(begun.status, 200, begun.text);
  const leave = new URL(begun.json.url);
  assert.equal(leave.origin, provider.issuer);
  provider.claims = claims;
  provider.nonce = leave.searchParams.get('nonce') ?? undefined;
  provider.challenge = leave.searchParams.get('code_challenge') ?? undefined;
  const back = new URL(leave.searchParams.get('redirect_uri')!);
  assert.equal(back.origin, 'http://gateway.test');
  const state = encodeURIComponent(leave.searchParams.get('state')!);
  const landed = await browser.send(`${back.pathname}?code=one&state=${state}`, {
    headers: { 'sec-fetch-site': 'cross-site' },
  });
  assert.equal(landed.status, 302);
  assert.ok(landed.headers.get('location')!.includes('/console/'), landed.headers.get('location')!);
  return browser;
}

test('a session signed by an older secret is valid for sign-in methods and pages alike, and one of another secret for neither', async () => {
  const [newer, older] = ['a newer secret of the console, 1', 'an older secret of the console, 2'];
  const own = await startConsole(`sign_up: open\nsecret: ["${newer}", "${older}"]`);
  try {
    const { cookies } = await operatorOf(own);
    const [name, value] = [...cookies].find(([cookie]) => cookie.endsWith('.session_token'))!;
    const token = decodeURIComponent(value).split('.')[0]!;
    const comesIn = async (secret: string) => {
      const browser = own.browser();
      const signature = createHmac('sha256', secret).update(token).digest('base64');
      browser.cookies.set(name, encodeURIComponent(`${token}.${signature}`));
      const session = await browser.send('/auth/get-session');
      return [session.json?.user?.email, (await browser.send('/me')).status];
    };
    assert.deepEqual(await comesIn(newer), [operator.email, 200]);
    assert.deepEqual(await comesIn(older), [operator.email, 200]);
    assert.deepEqual(await comesIn('a secret that this console never had'), [undefined, 401]);
  } finally {
    await own.stop();
  }
});
