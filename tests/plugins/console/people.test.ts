/** Signing in and out, roles, links, throttling: the console's doors, on a gateway that runs. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, test } from 'node:test';
import { base32 } from '@better-auth/utils/base32';
import { createOTP } from '@better-auth/utils/otp';
import { sql } from 'drizzle-orm';
import { accounts } from '../../../plugins/common/domain/accounts.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { access } from '../../../plugins/console/api/routing/access.ts';
import { clientOf, firstToken, operator, signIn, startConsole, type TestConsole } from './start-console.ts';

let testbed: TestConsole;
before(async () => {
  testbed = await startConsole();
});
after(() => testbed.stop());

test('the first start prints a link that makes one operator, once', async () => {
  const token = firstToken(testbed);
  // Where no terminal reads it, a line of the log.
  const logged = testbed.lines.map((line) => JSON.parse(line)).filter(({ url }) => url !== undefined);
  assert.deepEqual(
    logged.map(({ level, url, msg }) => [level, url, msg]),
    [
      [
        'info',
        `${testbed.origin.replace('127.0.0.1', 'localhost')}/console/first?token=${token}`,
        'the console has no operator yet: this link makes one, once, within 24 hours',
      ],
    ],
  );
  assert.equal((await testbed.browser().send('/info')).json.firstOperatorMissing, true);
  const wrong = await testbed.browser().send('/first-operator', { body: { token: 'x'.repeat(43), ...operator } });
  assert.deepEqual([wrong.status, wrong.json.error.code], [403, 'link_is_over']);
  const both = await Promise.all([
    testbed.browser().send('/first-operator', { body: { token, ...operator } }),
    testbed.browser().send('/first-operator', { body: { token, ...operator, email: 'rival@example.test' } }),
  ]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 403]);
  assert.equal((await testbed.browser().send('/info')).json.firstOperatorMissing, false);
  const late = await testbed.browser().send('/first-operator', { body: { token, ...operator } });
  assert.equal(late.status, 403);
  const winner = both[0].status === 200 ? operator : { ...operator, email: 'rival@example.test' };
  const browser = testbed.browser();
  assert.equal((await signIn(browser, winner)).status, 200);
  assert.equal((await browser.send('/me')).json.role, 'operator');
});

test('the command makes another link for an operator', async () => {
  const command = testbed.gateway.commands.find(({ name }) => name === 'console operator-link')!;
  const { json, text } = await command.run({});
  const { path } = json as { path: string };
  assert.ok(text.includes(path));
  const token = new URL(path, testbed.origin).searchParams.get('token')!;
  const second = { email: 'second@example.test', password: 'the second operator', name: 'Second' };
  const taken = await testbed
    .browser()
    .send('/first-operator', { body: { token, ...second, email: (await theOperator()).email } });
  assert.deepEqual([taken.status, taken.json.error.field], [409, 'email']);
  assert.equal((await testbed.browser().send('/first-operator', { body: { token, ...second } })).status, 200);
  const browser = testbed.browser();
  await signIn(browser, second);
  assert.equal((await browser.send('/me')).json.role, 'operator');
});

test('a sign-up makes a client, whatever role it names', async () => {
  const browser = testbed.browser();
  const body = {
    email: 'eve@example.test',
    password: 'a password of eve',
    name: 'Eve',
    role: 'operator',
    blocked: false,
  };
  assert.equal((await browser.send('/auth/sign-up/email', { body })).status, 200);
  for (const update of [{ role: 'operator' }, { gatewayAccountId: 'another' }, { emailVerified: true }])
    assert.equal((await browser.send('/auth/update-user', { body: update })).status, 400, JSON.stringify(update));
  const changed = await browser.send('/me', { method: 'PATCH', body: { name: 'Eve', role: 'operator' } });
  assert.deepEqual([changed.status, changed.json.error.code], [400, 'invalid_request']);
  const me = await browser.send('/me');
  assert.equal(me.json.role, 'client');
  assert.equal((await browser.send('/admin/people')).status, 403);
});

test('names and addresses are bounded, in whatever encoding they arrive', async () => {
  const browser = testbed.browser();
  const who = { email: 'long@example.test', password: 'a password of long', name: 'L'.repeat(101) };
  assert.equal((await browser.send('/auth/sign-up/email', { body: who })).json.error.code, 'too_long');
  const far = { ...who, name: 'Long', email: `${'l'.repeat(200)}@example.test` };
  assert.equal((await browser.send('/auth/sign-up/email', { body: far })).status, 400);
  assert.equal((await browser.send('/auth/sign-up/email', { body: { ...who, name: 'Long' } })).status, 200);
  assert.equal((await browser.send('/auth/update-user', { body: { name: 'L'.repeat(101) } })).status, 400);
  assert.equal((await browser.send('/auth/sign-up/email', { body: { ...who, name: 'x'.repeat(70_000) } })).status, 413);
});

test('a person gets one account on first use, with any number of concurrent requests', async () => {
  const browser = await clientOf(testbed, 'twins@example.test');
  const reply = await Promise.all(Array.from({ length: 6 }, () => browser.send('/me')));
  const ids = new Set(reply.map(({ json }) => json.account.id));
  assert.equal(ids.size, 1);
  const all = await testbed.gateway.find(accounts)!.list();
  assert.equal(all.filter(({ name }) => name.startsWith('twins@example.test')).length, 1);
  assert.equal(reply[0]!.json.account.plan, 'free');
});

test('a crash between account and person leaves nothing behind', async () => {
  const browser = await clientOf(testbed, 'crash@example.test');
  const { id } = (await browser.send('/auth/get-session')).json.user;
  const made = await testbed.gateway.find(accounts)!.create(`crash@example.test ${id.slice(0, 13)}`, 'free');
  assert.equal((await browser.send('/me')).json.account.id, made.id);
});

test('an interrupted sign-up can be repeated, and removes no other person', async () => {
  const store = testbed.gateway.find(database)!;
  const people = sql`${sql.identifier(store.schema)}.console_people`;
  const cut = (email: string, createdAt: Date) =>
    store.orm.execute(sql`insert into ${people} (id, name, email, created_at, updated_at)
      values (${email}, 'Cut', ${email}, ${createdAt}, ${createdAt})`);
  const signUp = (email: string) =>
    testbed.browser().send('/auth/sign-up/email', { body: { email, password: 'a password again', name: 'Again' } });
  const longAgo = new Date(Date.now() - 120_000);
  await cut('cut@example.test', longAgo);
  assert.equal((await signUp('cut@example.test')).status, 200);
  assert.equal((await signUp('cut@example.test')).status, 422);
  // One that is being made by another request just now.
  await cut('now@example.test', new Date());
  assert.equal((await signUp('now@example.test')).status, 422);
});

test('an account named like a mail address does not belong to that address', async () => {
  const owned = await testbed.gateway.find(accounts)!.create('owned@example.test', 'free');
  const browser = await clientOf(testbed, 'owned@example.test');
  assert.notEqual((await browser.send('/me')).json.account.id, owned.id);
});

test('the session cookie is HttpOnly, is new at each sign-in, and ends with signing out', async () => {
  const browser = await clientOf(testbed, 'cookie@example.test');
  const [line] = browser.setCookies;
  assert.match(line!, /^console-\w+\.session_token=[^;]+; Max-Age=604800; Path=\/; HttpOnly; SameSite=Strict$/i);
  const planted = browser.cookieHeader();
  const again = testbed.browser();
  for (const [name, value] of browser.cookies) again.cookies.set(name, value);
  await signIn(again, { email: 'cookie@example.test', password: 'another long password' });
  assert.notEqual(again.cookieHeader(), planted);
  const old = again.cookieHeader();
  assert.equal((await again.send('/auth/sign-out', { body: {} })).status, 200);
  // What is left says that this account was here, and opens nothing.
  assert.ok([...again.cookies.keys()].every((name) => name.includes('.device_')));
  assert.equal((await testbed.browser().send('/me', { headers: { cookie: old } })).status, 401);
});

test('changing or resetting a password ends all other sessions', async () => {
  const email = 'change@example.test';
  const one = await clientOf(testbed, email);
  const other = testbed.browser();
  await signIn(other, { email, password: 'another long password' });
  assert.equal((await other.send('/me')).status, 200);
  const short = { currentPassword: 'another long password', newPassword: 'too short' };
  assert.equal((await one.send('/auth/change-password', { body: short })).status, 400);
  const body = { currentPassword: 'another long password', newPassword: 'a second password' };
  assert.equal((await one.send('/auth/change-password', { body })).status, 200);
  assert.equal((await one.send('/me')).status, 200);
  assert.equal((await other.send('/me')).status, 401);

  const boss = testbed.browser();
  await signIn(boss, await theOperator());
  const { id } = (await boss.send('/admin/people?text=change')).json.rows[0];
  const reply = await boss.send(`/admin/people/${id}/reset`, { body: { reason: 'forgotten' } });
  assert.equal(reply.json.mailed, false);
  assert.ok(reply.json.link.startsWith(`${testbed.origin}/console/reset-password?token=`));
  const token = new URL(reply.json.link).searchParams.get('token');
  const reset = { newPassword: 'a third password', token };
  assert.equal((await testbed.browser().send('/auth/reset-password', { body: reset })).status, 200);
  assert.equal((await testbed.browser().send('/auth/reset-password', { body: reset })).status, 400);
  assert.equal((await one.send('/me')).status, 401);
  assert.equal((await signIn(testbed.browser(), { email, password: 'a third password' })).status, 200);
});

test('sessions are listed and ended by values that cannot open them', async () => {
  const email = 'sessions@example.test';
  const one = await clientOf(testbed, email);
  const other = testbed.browser();
  await signIn(other, { email, password: 'another long password' });
  const rows = (await one.send('/auth/list-sessions')).json as { token: string; id: string }[];
  assert.equal(rows.length, 2);
  for (const { token } of rows) assert.match(token, /^h\./);
  const mine = (await one.send('/auth/get-session')).json.session.id;
  const theirs = rows.find(({ id }) => id !== mine)!;
  const stranger = await clientOf(testbed, 'stranger@example.test');
  await stranger.send('/auth/revoke-session', { body: { token: theirs.token } });
  assert.equal((await other.send('/me')).status, 200);
  await one.send('/auth/revoke-session', { body: { token: theirs.token } });
  assert.equal((await other.send('/me')).status, 401);
  assert.equal((await one.send('/me')).status, 200);
});

test("guessing an account's password is slowed down, and a right password resets the count", async () => {
  const email = 'guessed@example.test';
  await clientOf(testbed, email);
  const wrong = { email, password: 'not this password' };
  for (let attempt = 0; attempt < 9; attempt++) assert.equal((await signIn(testbed.browser(), wrong)).status, 401);
  assert.equal((await signIn(testbed.browser(), { email, password: 'another long password' })).status, 200);
  for (let attempt = 0; attempt < 10; attempt++) assert.equal((await signIn(testbed.browser(), wrong)).status, 401);
  const refused = await signIn(testbed.browser(), { email, password: 'another long password' });
  assert.deepEqual([refused.status, refused.json.error.code], [429, 'too_many_attempts']);
  assert.ok(Number(refused.headers.get('retry-after')) > 0);
});

test('blocking ends sessions at once and prevents new ones', async () => {
  const email = 'blocked@example.test';
  const browser = await clientOf(testbed, email);
  const boss = testbed.browser();
  await signIn(boss, await theOperator());
  const { id } = (await boss.send('/admin/people?text=blocked%40')).json.rows[0];
  const body = { blocked: true, reason: 'abuse' };
  assert.equal((await boss.send(`/admin/people/${id}`, { method: 'PATCH', body })).json.blocked, true);
  assert.equal((await browser.send('/me')).status, 401);
  const refused = await signIn(browser, { email, password: 'another long password' });
  assert.deepEqual([refused.status, refused.json.error.code], [403, 'blocked']);
  const own = (await boss.send('/me')).json.person.id;
  assert.equal((await boss.send(`/admin/people/${own}`, { method: 'PATCH', body })).status, 409);
});

test('a token has the rights of its role, and the database has no usable session, password or token', async () => {
  const browser = await clientOf(testbed, 'reader@example.test');
  const boss = testbed.browser();
  await signIn(boss, await theOperator());
  const { token } = (await boss.send('/admin/tokens', { body: { name: 'export' } })).json;
  assert.equal(
    (await testbed.browser().send('/me', { headers: { authorization: `Bearer ${token}` } })).json.role,
    'operator',
  );
  const reading = await boss.send('/admin/tokens', { body: { name: 'figures', role: 'auditor' } });
  const bearer = { headers: { authorization: `Bearer ${reading.json.token}` } };
  assert.equal((await testbed.browser().send('/admin/people', bearer)).status, 200);
  const change = await testbed.browser().send('/admin/tokens', { ...bearer, body: { name: 'more' } });
  assert.equal(change.status, 403, 'a token of an auditor changes nothing');
  const store = testbed.gateway.find(database)!;
  const tables = ['people', 'sessions', 'identities', 'verifications', 'links', 'tokens', 'audit'];
  let dump = '';
  for (const name of tables) {
    const table = sql`${sql.identifier(store.schema)}.${sql.identifier(`console_${name}`)}`;
    dump += JSON.stringify(await store.orm.execute(sql`select to_jsonb(t) as row from ${table} t`));
  }
  const session = decodeURIComponent([...browser.cookies.values()][0]!).split('.')[0]!;
  for (const secret of [session, token, 'another long password']) assert.equal(dump.includes(secret), false);
  // Not even who has the secret as well comes in by a hash.
  const settings = sql`${sql.identifier(store.schema)}.console_settings`;
  const [setting] = (await store.orm.execute(sql`select value from ${settings}`)) as unknown as { value: string }[];
  const forge = (name: string) => {
    const signature = createHmac('sha256', setting!.value).update(name).digest('base64');
    const forged = testbed.browser();
    forged.cookies.set([...browser.cookies.keys()][0]!, encodeURIComponent(`${name}.${signature}`));
    return forged.send('/me');
  };
  assert.equal((await forge(session)).status, 200);
  assert.equal((await forge(/h\.[\w-]{43}/.exec(dump)![0])).status, 401);
});

test('the audit log accepts no changes and no deletions', async () => {
  const store = testbed.gateway.find(database)!;
  const audit = sql`${sql.identifier(store.schema)}.console_audit`;
  await assert.rejects(store.orm.execute(sql`delete from ${audit}`));
  await assert.rejects(store.orm.execute(sql`update ${audit} set actor = 'missing'`));
  for (const [column, value] of [
    ['actor_id', 'somebody'],
    ['changes', '[]'],
  ] as const)
    await assert.rejects(store.orm.execute(sql`update ${audit} set ${sql.identifier(column)} = ${value}`));
  await assert.rejects(store.orm.execute(sql`update ${audit} set result = 'begun' where result = 'done'`));
});

test('a second factor is required once it is set, and backup codes work once', async () => {
  const email = 'factor@example.test';
  const browser = await clientOf(testbed, email);
  const begun = await browser.send('/auth/two-factor/enable', { body: { password: 'another long password' } });
  assert.equal(begun.status, 200);
  const secret = new URL(begun.json.totpURI).searchParams.get('secret')!;
  const code = () => createOTP(Buffer.from(base32.decode(secret)).toString()).totp();
  const codeAt = async (at: number) => {
    const { hotp } = createOTP(Buffer.from(base32.decode(secret)).toString());
    return hotp(Math.floor(at / 30_000));
  };
  const first = await code();
  assert.equal((await browser.send('/auth/two-factor/verify-totp', { body: { code: first } })).status, 200);
  assert.equal((await browser.send('/me')).json.person.twoFactor, true);

  const next = testbed.browser();
  assert.equal((await signIn(next, { email, password: 'another long password' })).json.twoFactorRedirect, true);
  assert.equal((await next.send('/me')).status, 401);
  assert.equal((await next.send('/auth/two-factor/verify-totp', { body: { code: '000000' } })).status, 401);
  assert.equal(
    (await next.send('/auth/two-factor/verify-totp', { body: { code: first } })).status,
    401,
    'the code that has set it up was used',
  );
  assert.equal((await next.send('/me')).status, 401);
  // A code is good for the period before and after its own too.
  const later = await codeAt(Date.now() + 30_000);
  const signingIn = [testbed.browser(), testbed.browser()];
  for (const one of signingIn) await signIn(one, { email, password: 'another long password' });
  const answers = await Promise.all(
    signingIn.map((one) => one.send('/auth/two-factor/verify-totp', { body: { code: later } })),
  );
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401], 'of two sign-ins at once one has the code');

  const backup = { code: begun.json.backupCodes[0] };
  for (const wanted of [200, 401]) {
    const lost = testbed.browser();
    await signIn(lost, { email, password: 'another long password' });
    assert.equal((await lost.send('/auth/two-factor/verify-backup-code', { body: backup })).status, wanted);
  }
});

test("the audit log has operators' sign-ins, and changes of sign-in methods", async () => {
  const boss = testbed.browser();
  await signIn(boss, await theOperator());
  const { rows } = (await boss.send('/admin/audit?limit=500')).json as {
    rows: { action: string; actor: string; role: string; result: string; address: string }[];
  };
  const first = rows.find(({ action }) => action === 'operator.first')!;
  assert.deepEqual([first.role, first.result], ['operator', 'done']);
  assert.ok(rows.some(({ action, role }) => action === 'self.sign-in' && role === 'operator'));
  assert.equal(
    rows.some(({ action, role }) => action === 'self.sign-in' && role === 'client'),
    false,
  );
  const changed = rows.find(({ action }) => action === 'self.password')!;
  assert.deepEqual([changed.actor, changed.address], ['change@example.test', '127.0.0.1']);
  assert.ok(rows.some(({ action, actor }) => action === 'self.second-factor' && actor === 'factor@example.test'));
  // In pages of two each row comes once.
  const paged: unknown[] = [];
  for (let after = ''; paged.length < rows.length; ) {
    const { json } = await boss.send(`/admin/audit?limit=2${after}`);
    paged.push(...json.rows);
    if (typeof json.next !== 'string') break;
    after = `&after=${encodeURIComponent(json.next)}`;
  }
  assert.deepEqual(paged, rows);
});

test('a passkey is requested for the host that the browser sees', async () => {
  const browser = await clientOf(testbed, 'passkey@example.test');
  const options = await browser.send('/auth/passkey/generate-register-options');
  assert.equal(options.status, 200);
  assert.equal(options.json.rp.id, '127.0.0.1');
  assert.ok(options.json.challenge.length > 20);
  assert.equal((await testbed.browser().send('/auth/passkey/generate-register-options')).status, 401);
});

test('changes need our header and our origin, for signing in too', async () => {
  const body = { email: 'x@example.test', password: 'does not matter' };
  const browser = testbed.browser();
  for (const headers of [
    { 'x-console': '' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
  ] as Record<string, string>[]) {
    const reply = await browser.send('/auth/sign-in/email', { body, headers });
    assert.deepEqual([reply.status, reply.json.error.code], [403, 'csrf'], JSON.stringify(headers));
  }
  const tls = await browser.send('/auth/sign-in/email', {
    body,
    headers: { origin: testbed.origin.replace('http:', 'https:') },
  });
  assert.match(tls.json.error.message, /console\.origin/);
});

/** The one who won the race for the printed link. */
async function theOperator() {
  for (const email of [operator.email, 'rival@example.test']) {
    const who = { ...operator, email };
    if ((await signIn(testbed.browser(), who)).status === 200) return who;
  }
  throw new Error('there is no operator');
}

test('U+0000 is a 404 in ids and a 400 in queries and bodies, on each route that reads', async () => {
  const boss = testbed.browser();
  await signIn(boss, await theOperator());
  const wrong: string[] = [];
  const note = async (wanted: readonly number[], path: string, options: object = {}, field?: string) => {
    const { status, json } = await boss.send(path, options);
    if (!wanted.includes(status)) wrong.push(`${path}: ${status}`);
    const { message = '', field: named } = json?.error ?? {};
    const isNamed = named === field && message.includes(`"${field}"`);
    if (field !== undefined && message.includes('U+0000') && !isNamed) wrong.push(`${path}: ${field}, ${message}`);
  };
  for (const route of Object.keys(access)) {
    const [method, path] = route.split(' ') as [string, string];
    if (method !== 'GET' || path.includes('stream') || path.includes('live')) continue;
    if (path.includes('{') || path.includes(':')) await note([404], path.replace(/\{\w+\}|:\w+/g, 'a%00b'));
    else {
      const names = ['after', 'search', 'account', 'model', 'provider', 'key', 'plan', 'text', 'operation'];
      for (const name of names.slice(0, path.startsWith('/admin') ? 9 : 2))
        await note([200, 400, 404], `${path}?${name}=a%00b`, {}, name);
    }
  }
  await note([400], '/me', { method: 'PATCH', body: { name: 'a\0b' } }, 'name');
  await note([400], '/keys', { body: { name: 'a\0b' } }, 'name');
  const signing = { email: 'a\0b@example.test', password: 'another long password' };
  await note([400], '/auth/sign-in/email', { body: signing }, 'email');
  await note(
    [400],
    '/auth/sign-up/email',
    {
      body: { email: 'n@example.test', name: 'a\0b', password: 'a long password' },
    },
    'name',
  );
  assert.deepEqual(wrong, []);
});

test('views of a page are saved under a name for the person alone, replaced, deleted, and at most 50', async () => {
  const [ada, bob] = [
    await clientOf(testbed, 'views-ada@example.test'),
    await clientOf(testbed, 'views-bob@example.test'),
  ];
  const save = (name: string, query = 'span=7d', page = '/usage') =>
    ada.send('/views', { body: { page, name, query } });
  assert.equal((await save('Failures', 'result=upstream_error')).status, 200);
  assert.equal((await save('Failures', 'result=client_error')).status, 200);
  const rows = async (browser: typeof ada, page = '/usage') => (await browser.send(`/views?page=${page}`)).json.rows;
  assert.deepEqual(await rows(ada), [{ name: 'Failures', query: 'result=client_error' }]);
  assert.deepEqual([await rows(ada, '/wallet'), await rows(bob)], [[], []]);
  for (const [name, query, page] of [
    ['', 'a=b', '/usage'],
    ['x'.repeat(61), 'a=b', '/usage'],
    ['x', 'x'.repeat(1_001), '/usage'],
    ['x', 'a=\n', '/usage'],
    ['x', 'a=b', 'https://elsewhere.example'],
  ] as const)
    assert.equal((await save(name, query, page)).status, 400, `${name} ${query} ${page}`);
  const all = await Promise.all(Array.from({ length: 52 }, (_, index) => save(`view ${index}`, '', '/wallet')));
  assert.equal(all.filter(({ status }) => status === 200).length, 49);
  assert.equal(all.find(({ status }) => status !== 200)!.status, 409);
  assert.equal((await save('Failures', 'span=1h')).status, 200, 'one that is there can be replaced');
  assert.equal((await ada.send('/views/delete', { body: { page: '/usage', name: 'Failures' } })).status, 200);
  assert.deepEqual(await rows(ada), []);
  assert.equal((await testbed.browser().send('/views?page=/usage')).status, 401);
});
