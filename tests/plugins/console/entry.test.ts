/** Ways in that lead through mails: invitations, confirmed addresses, new passwords. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import type { AddressInfo, Server as TcpServer } from 'node:net';
import { after, before, test } from 'node:test';
import { smtpSink } from '../../helpers/smtp-sink.ts';
import { until } from '../../helpers/until.ts';
import type { Browser } from './browser.ts';
import { operator, operatorOf, startConsole, type TestConsole } from './start-console.ts';

let testbed: TestConsole;
let boss: Browser;
let mails: string[];
let smtp: TcpServer;

before(async () => {
  mails = [];
  smtp = smtpSink(mails);
  const smtpPort = await listen(smtp);
  testbed = await startConsole(
    `origin: http://gateway.test
sign_up: invite
smtp: { host: 127.0.0.1, port: ${smtpPort}, encryption: none, from: 'Gateway <gateway@example.test>' }`,
  );
  boss = await operatorOf(testbed);
});
after(async () => {
  await testbed.stop();
  smtp.close();
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

test("an invitation to an account is mailed to its address with the inviter's address, and a second mail ends the first one's link", async () => {
  const body = { email: 'Max@example.test', role: 'developer' };
  const reply = await boss.send('/members/invitations', { body });
  assert.deepEqual(reply.json, { mailed: true, link: null });
  const link = new URL(await linkIn('max@example.test'));
  assert.deepEqual([link.origin, link.pathname], ['http://gateway.test', '/console/sign-up']);
  assert.ok(mails.some((mail) => mail.includes('max@example.test') && mail.includes(operator.email)));
  const { rows } = (await boss.send('/members/invitations')).json;
  mails.length = 0;
  assert.equal((await boss.send(`/members/invitations/${rows[0].id}/resend`, { body: {} })).json.mailed, true);
  const second = new URL(await linkIn('max@example.test'));
  const look = async ({ searchParams }: URL) =>
    (await testbed.browser().send(`/members/join?token=${searchParams.get('join')}`)).status;
  assert.deepEqual([await look(link), await look(second)], [403, 200]);
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

/** The first address in the newest mail to somebody. */
function linkIn(to: string): Promise<string> {
  return until(`a mail to ${to}`, () => {
    const mail = mails.findLast((text) => text.includes(`To: ${to}`));
    return mail === undefined
      ? undefined
      : /http:\/\/\S+/.exec(mail.replaceAll('=\r\n', '').replaceAll('=3D', '='))?.[0];
  });
}

function listen(server: TcpServer): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
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
