/** Members on the whole demo gateway: joining by a link, another account in the same session, what each sees, and going. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { WebSocket } from 'ws';
import { until } from '../../helpers/until.ts';
import type { Browser } from './browser.ts';
import { operatorOf, signIn, startDemo, type TestConsole } from './start-console.ts';

let testbed: TestConsole;
let [boss, ada, ben, eve]: Browser[] = [];
let [adas, bens]: string[] = [];
const password = 'another long password';

before(async () => {
  testbed = await startDemo('demo', 'console: { sign_up: invite }');
  boss = await operatorOf(testbed);
  const invited = async (email: string) => {
    const { link } = (await boss!.send('/admin/invitations', { body: { email } })).json;
    const invite = new URL(link).searchParams.get('invite');
    const browser = testbed.browser();
    await browser.send('/auth/sign-up/email', { body: { email, password, name: email.split('@')[0], invite } });
    return browser;
  };
  ada = await invited('ada@example.test');
  ben = await invited('ben@example.test');
  [adas, bens] = await Promise.all([ada, ben].map(async (who) => (await who.send('/me')).json.account.id as string));
  const headers = { 'idempotency-key': 'members-test-1' };
  await boss.send(`/admin/accounts/${adas}/credit`, { body: { amount: '20', reason: 'an invoice' }, headers });
});
after(() => testbed?.stop());

const invite = (who: Browser, email: string, role: string) =>
  who.send('/members/invitations', { body: { email, role } });
const tokenOf = (link: string) => new URL(link).searchParams.get('join')!;
const join = async (who: Browser, link: string) => who.send('/members/join', { body: { token: tokenOf(link) } });
const roleOf = async (who: Browser) => {
  const { account } = (await who.send('/me')).json;
  return [account.id, account.role];
};
const call = (key: string, more: object = {}, text = 'Hello') =>
  fetch(`${testbed.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-5.4-mini', messages: [{ role: 'user', content: text }], ...more }),
  });

test('somebody with an account joins another by the link once, acts in it at once, and changes back', async () => {
  const { mailed, link } = (await invite(ada!, 'Ben@example.test', 'developer')).json;
  assert.equal(mailed, false);
  const shown = (await testbed.browser().send(`/members/join?token=${tokenOf(link)}`)).json;
  assert.deepEqual([shown.email, shown.role], ['ben@example.test', 'developer']);
  assert.deepEqual((await join(ada!, link)).json.error.code, 'other_address');
  const both = await Promise.all([join(ben!, link), join(ben!, link)]);
  assert.deepEqual(both.map(({ status }) => status).toSorted(), [200, 403]);
  assert.deepEqual(await roleOf(ben!), [adas, 'developer']);
  const { accounts } = (await ben!.send('/me')).json;
  assert.deepEqual(
    new Set(accounts.map(({ id, role }: { id: string; role: string }) => `${id} ${role}`)),
    new Set([`${adas} developer`, `${bens} owner`]),
  );
  await ben!.send('/members/choose', { body: { accountId: bens } });
  assert.deepEqual(await roleOf(ben!), [bens, 'owner']);
  const elsewhere = testbed.browser();
  await signIn(elsewhere, { email: 'ben@example.test', password });
  await elsewhere.send('/members/choose', { body: { accountId: adas } });
  assert.deepEqual(
    [await roleOf(elsewhere), await roleOf(ben!)],
    [
      [adas, 'developer'],
      [bens, 'owner'],
    ],
    'by session',
  );
});

test('requests that name an account act in it, whatever the session has chosen meanwhile, and are refused where it is not theirs', async () => {
  const at = (account: string, path: string, more: object = {}) =>
    ben!.send(path, { ...more, headers: { 'x-account': account } });
  const inTab = async (account: string) => (await at(account, '/me')).json.account.id;
  await ben!.send('/members/choose', { body: { accountId: adas } });
  assert.deepEqual([await inTab(bens!), await inTab(adas!)], [bens, adas]);
  const made = await at(bens!, '/keys', { body: { name: 'of the other tab' } });
  assert.equal(made.status, 200);
  const namesIn = async (account: string) =>
    (await at(account, '/keys')).json.rows.map(({ name }: { name: string }) => name);
  assert.deepEqual([await namesIn(bens!), await namesIn(adas!)], [['of the other tab'], []]);
  const byLink = (await ben!.send(`/keys?account=${bens}`)).json.rows;
  assert.deepEqual(byLink[0].id, made.json.id);
  const stranger = (await boss!.send('/me')).json.account.id;
  for (const account of [stranger, crypto.randomUUID(), 'nothing']) {
    for (const [path, more] of [['/keys'], ['/keys', { body: { name: 'taken' } }], ['/home']] as const) {
      const { status, json } = await at(account, path, more);
      assert.deepEqual([status, json.error.code], [403, 'not_in_account'], `${account} ${path}`);
    }
    assert.equal(await inTab(account), adas, 'the page goes on in the account of the session');
  }
  await ben!.send('/members/choose', { body: { accountId: bens } });
});

test('somebody without an account signs up by the link of a member where an invitation is needed, and joins', async () => {
  const { link } = (await invite(ada!, 'eve@example.test', 'viewer')).json;
  eve = testbed.browser();
  const body = { email: 'eve@example.test', password, name: 'Eve', invite: tokenOf(link) };
  const uninvited = await testbed.browser().send('/auth/sign-up/email', { body: { ...body, email: 'x@example.test' } });
  assert.equal(uninvited.status, 400, 'for one address alone');
  assert.equal((await eve.send('/auth/sign-up/email', { body })).status, 200);
  assert.equal((await join(eve, link)).status, 200);
  assert.deepEqual(await roleOf(eve), [adas, 'viewer']);
  assert.equal((await eve.send('/wallet')).json.error.code, 'role_not_included');
  assert.equal((await eve.send('/home')).json.pool, null);
});

test('an invitation that is taken back lets its address neither sign up nor join', async () => {
  const { link } = (await invite(ada!, 'fay@example.test', 'viewer')).json;
  const { rows } = (await ada!.send('/members/invitations')).json;
  const { id } = rows.find(({ email }: { email: string }) => email === 'fay@example.test');
  const early = await ada!.send(`/members/invitations/${id}/resend`, { body: {} });
  assert.notEqual(tokenOf(early.json.link), tokenOf(link));
  assert.equal((await ada!.send(`/members/invitations/${id}/resend`, { body: {} })).status, 429);
  assert.equal((await ada!.send(`/members/invitations/${id}`, { method: 'DELETE' })).status, 200);
  for (const old of [link, early.json.link]) {
    const reply = await testbed.browser().send(`/members/join?token=${tokenOf(old)}`);
    assert.deepEqual([reply.status, reply.json.error.code], [403, 'link_is_over']);
    const body = { email: 'fay@example.test', password, name: 'Fay', invite: tokenOf(old) };
    assert.equal((await testbed.browser().send('/auth/sign-up/email', { body })).status, 400);
  }
});

test('an account that a person is no member of cannot be chosen', async () => {
  assert.deepEqual(await roleOf(ben!), [bens, 'owner']);
  const stranger = (await boss!.send('/me')).json.account.id;
  for (const unknown of [stranger, crypto.randomUUID(), 'nothing', boss!.origin])
    assert.equal((await ben!.send('/members/choose', { body: { accountId: unknown } })).status, 404, unknown);
  assert.deepEqual(await roleOf(ben!), [bens, 'owner']);
});

test('a removed member sees and calls nothing more at once, while a stream that runs ends as it would have', async () => {
  await ben!.send('/members/choose', { body: { accountId: adas } });
  const { key } = (await ben!.send('/keys', { body: { name: "ben's" } })).json;
  const socket = new WebSocket(`${testbed.origin.replace('http', 'ws')}/console/live`, {
    headers: { cookie: ben!.cookieHeader(), origin: testbed.origin },
  });
  const closed = new Promise<number>((resolve) => socket.once('close', resolve));
  await new Promise((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  const running = await call(key, { stream: true }, '[[sandbox: chunk_delay=100ms chunks=8]] Hello');
  assert.equal(running.status, 200);
  const reader = running.body!.getReader();
  const first = new TextDecoder().decode((await reader.read()).value);
  const { id } = (await ben!.send('/me')).json.person;
  assert.equal((await ben!.send(`/members/${id}/remove`, { body: { keys: 'revoke' } })).status, 403);
  assert.equal((await ada!.send(`/members/${id}/remove`, { body: { keys: 'revoke' } })).status, 200);
  assert.equal((await call(key)).status, 401);
  assert.deepEqual(await roleOf(ben!), [bens, 'owner'], 'the session goes on in the own account');
  assert.equal(await closed, 1012);
  let text = first;
  for (let part = await reader.read(); !part.done; part = await reader.read())
    text += new TextDecoder().decode(part.value);
  assert.match(text, /data: \[DONE\]/);
  assert.equal((await ben!.send('/members/choose', { body: { accountId: adas } })).status, 404);
});

test("members' calls carry the person, and the account's owners read who did what in it and nothing of others", async () => {
  const { link } = (await invite(ada!, 'ben@example.test', 'admin')).json;
  await join(ben!, link);
  const { id } = (await ben!.send('/keys', { body: { name: 'again' } })).json;
  const { person } = (await ben!.send('/me')).json;
  const mine = (await ada!.send('/members')).json.rows.find((row: { id: string }) => row.id === person.id);
  assert.deepEqual([mine.email, mine.role, mine.keys], ['ben@example.test', 'admin', 1]);
  assert.equal(
    (await ada!.send(`/members/${person.id}`, { method: 'PATCH', body: { role: 'developer' } })).status,
    200,
  );
  assert.equal((await ben!.send('/members')).json.error.code, 'role_not_included');
  assert.equal((await ben!.send('/members/leave', { body: {} })).status, 200);
  assert.deepEqual(await roleOf(ben!), [bens, 'owner']);
  const keys = (await ada!.send('/keys')).json.rows;
  assert.notEqual(keys.find((row: { id: string }) => row.id === id).revokedAt, null);
  const { rows } = (await ada!.send('/members/audit?limit=100')).json;
  const lines = rows.map(({ actor, action, subject, result }: Record<string, string>) =>
    [actor, action, subject, result].join(' '),
  );
  for (const line of [
    'ada@example.test member.invite ben@example.test done',
    'ben@example.test member.join ben@example.test done',
    'ben@example.test key.create again done',
    'ada@example.test member.change ben@example.test done',
    'ben@example.test member.leave ben@example.test done',
  ])
    assert.ok(lines.includes(line), `${line}: ${lines.join('\n')}`);
  const bensRows = (await ben!.send('/members/audit')).json.rows;
  assert.equal(
    bensRows.some(({ actor }: { actor: string }) => actor !== 'ben@example.test'),
    false,
  );
  const { status, json } = await ada!.send('/members/leave', { body: {} });
  assert.deepEqual([status, json.error.code], [409, 'last_owner']);
});

test('filters of usage offer people, projects and keys with calls, also those that are gone, and each narrows the list', async () => {
  const { id, key } = (await ada!.send('/keys', { body: { name: 'moved', project: 'spring' } })).json;
  const reply = await call(key);
  assert.equal(reply.status, 200, await reply.text());
  assert.equal((await ada!.send(`/keys/${id}`, { method: 'DELETE' })).status, 200);
  await boss!.send(`/admin/accounts/${adas}/keys/${id}/project`, { body: { project: null, reason: 'a mistake' } });
  const choices = async (who: Browser) => (await who.send('/usage/choices')).json;
  const names = (rows: readonly { name: string }[]) => rows.map(({ name }) => name);
  await until('the call is in the log', async () => (await choices(ada!)).projects.includes('spring'));
  assert.deepEqual((await choices(ada!)).projects, ['spring']);
  const { people, keys } = await choices(ada!);
  assert.deepEqual(names(people), ['ada', 'ben']);
  assert.ok(names(keys).includes("ben's") && names(keys).includes('moved'), names(keys).join());
  const found = async (who: Browser, query: string) => {
    const { rows } = (await who.send(`/usage?limit=500&${query}`)).json;
    return new Set(rows.map(({ keyName }: { keyName: string }) => keyName));
  };
  assert.deepEqual(await found(ada!, 'project=spring'), new Set(['moved']));
  const bensId = people.find(({ name }: { name: string }) => name === 'ben').id;
  assert.deepEqual(await found(ada!, `personId=${bensId}`), new Set(["ben's"]));
  const ofAll = (await boss!.send(`/admin/requests?accountId=${adas}&personId=${bensId}&limit=500`)).json.rows;
  assert.deepEqual(new Set(ofAll.map(({ keyName }: { keyName: string }) => keyName)), new Set(["ben's"]));
  const [stacked] = (await ada!.send('/usage/activity?by=person')).json.groups;
  assert.ok([bensId, people[0].id].includes(stacked.group));
  assert.deepEqual(await choices(eve!), await choices(ada!), 'a viewer reads all usage');
  assert.equal((await boss!.send(`/admin/people?text=${bensId}`)).json.rows[0].id, bensId);
  const { link } = (await invite(ada!, 'ben@example.test', 'developer')).json;
  await join(ben!, link);
  const own = await choices(ben!);
  assert.deepEqual([own.people, names(own.keys).includes('moved'), own.projects], [[], false, []]);
  assert.equal((await ben!.send('/members/leave', { body: {} })).status, 200);
});

test("acts of an operator in an account stand in its log without the operator's address, and a filter finds none", async () => {
  const { json: key } = await ada!.send('/keys', { body: { name: 'for a trial' } });
  const reason = 'asked for by phone';
  const done = async (path: string, method: string, body: object) => {
    const reply = await boss!.send(`/admin/accounts/${adas}${path}`, { method, body: { ...body, reason } });
    assert.equal(reply.status, 200, `${path}: ${reply.text}`);
  };
  await done(`/keys/${key.id}`, 'DELETE', {});
  await done('/budgets', 'POST', { of: 'account', amount: '5', every: 'month' });
  await done('/disable', 'POST', {});
  await done('/enable', 'POST', {});
  const log = async (query = '') => {
    const { rows } = (await ada!.send(`/members/audit?limit=100${query}`)).json;
    return rows.map(({ actor, action, result }: Record<string, string>) => `${actor} ${action} ${result}`) as string[];
  };
  const lines = await log();
  const { gateway } = (await ada!.send('/me')).json;
  for (const action of ['account.key.revoke', 'budget.set', 'account.disable', 'account.enable', 'account.credit'])
    assert.ok(lines.includes(`${gateway.name} ${action} done`), `${action}: ${lines.join('\n')}`);
  const { person } = (await boss!.send('/me')).json;
  assert.equal(
    lines.some((line) => line.includes(person.email)),
    false,
  );
  assert.deepEqual(await log('&actor=oscar'), [], 'whose address has it is no secret that can be tried');
  assert.ok((await log('&actor=ada')).length > 0);
  const { rows } = (await boss!.send('/admin/audit?action=account.key.revoke')).json;
  assert.deepEqual([rows[0].actor, rows[0].reason], [person.email, reason]);
});

test('an owner and an operator rename the account, and each page has the new name at once', async () => {
  const nameOf = async (who: Browser, id: string) => {
    const { account, accounts } = (await who.send('/me')).json;
    return [account.name, accounts.find((one: { id: string }) => one.id === id).name];
  };
  const rename = (who: Browser, name: string) => who.send('/account', { method: 'PATCH', body: { name } });
  assert.equal((await rename(ada!, ' Acme ')).status, 200);
  assert.deepEqual(await nameOf(ada!, adas!), ['Acme', 'Acme']);
  assert.equal((await rename(eve!, 'Mine')).json.error.code, 'role_not_included');
  assert.equal((await rename(ben!, 'Acme')).status, 409);
  for (const wrong of [adas!, 'eve@example.test 14d96147be60f', ' ', 'x'.repeat(101)])
    assert.equal((await rename(ada!, wrong)).status, 400, wrong);
  const { link } = (await invite(ada!, 'hal@example.test', 'viewer')).json;
  assert.equal((await ada!.send(`/members/join?token=${tokenOf(link)}`)).json.account, 'Acme');
  const body = { name: 'Acme Ltd', reason: 'a new register' };
  assert.equal((await boss!.send(`/admin/accounts/${adas}/rename`, { body })).status, 200);
  assert.deepEqual(await nameOf(ada!, adas!), ['Acme Ltd', 'Acme Ltd']);
  assert.equal((await boss!.send(`/admin/accounts/${adas}`)).json.account.name, 'Acme Ltd');
  const { rows } = (await ada!.send('/members/audit')).json;
  assert.deepEqual(rows[0].changes, [{ field: 'name', before: 'Acme', after: 'Acme Ltd' }]);
  assert.equal((await boss!.send('/admin/accounts/nothing/rename', { body })).status, 404);
});

test('ownership is handed on by an invitation that its receiver accepts, and the first owner leaves for good', async () => {
  const { link } = (await invite(ada!, 'eve@example.test', 'owner')).json;
  await join(eve!, link);
  assert.deepEqual(await roleOf(eve!), [adas, 'owner']);
  assert.equal((await ada!.send('/members/leave', { body: {} })).status, 200);
  const { account, accounts } = (await ada!.send('/me')).json;
  assert.deepEqual([account, accounts], [null, []]);
  assert.deepEqual((await ada!.send('/keys')).json.error.code, 'no_account');
  const { rows } = (await boss!.send(`/admin/accounts?text=${adas}`)).json;
  assert.equal(rows[0].person.email, 'eve@example.test');
});
