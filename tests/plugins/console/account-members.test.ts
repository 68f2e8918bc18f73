/** Operators and the members of any account, on the whole demo gateway: who is in it, other roles, removal with keys, invitations, both logs. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eq } from 'drizzle-orm';
import { authTables } from '../../../plugins/auth/tables.ts';
import { accounts } from '../../../plugins/common/domain/accounts.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import type { Browser } from './browser.ts';
import { operator, operatorOf, startDemo, type TestConsole } from './start-console.ts';

let testbed: TestConsole;
let [boss, ada, ben, cleo]: Browser[] = [];
let [adas, bens]: string[] = [];
let [benId, cleoId, adaId]: string[] = [];
const password = 'another long password';
const reason = 'asked for by phone';

before(async () => {
  testbed = await startDemo('demo', 'console: { sign_up: open }');
  boss = await operatorOf(testbed);
  const signedUp = async (name: string) => {
    const browser = testbed.browser();
    const body = { email: `${name}@example.test`, password, name };
    assert.equal((await browser.send('/auth/sign-up/email', { body })).status, 200);
    return browser;
  };
  [ada, ben, cleo] = [await signedUp('ada'), await signedUp('ben'), await signedUp('cleo')];
  const [one, two, three] = await Promise.all([ada, ben, cleo].map(async (who) => (await who.send('/me')).json));
  [adas, bens] = [one.account.id, two.account.id];
  [adaId, benId, cleoId] = [one, two, three].map(({ person }) => person.id);
});
after(() => testbed?.stop());

const at = (account: string, path = '') => `/admin/accounts/${account}/members${path}`;
const membersOf = async (account: string) => (await boss!.send(at(account))).json.rows;
const rolesIn = async (account: string) =>
  (await membersOf(account)).map(({ name, role }: Record<string, string>) => `${name} ${role}`);
const invite = (account: string, email: string, role: string) =>
  boss!.send(at(account, '/invitations'), { body: { email, role, reason } });
const tokenOf = (link: string) => new URL(link).searchParams.get('join')!;
const join = (who: Browser, link: string) => who.send('/members/join', { body: { token: tokenOf(link) } });
const setRole = (account: string, person: string, role: string) =>
  boss!.send(at(account, `/${person}`), { method: 'PATCH', body: { role, reason } });
const remove = (account: string, person: string, keys: unknown) =>
  boss!.send(at(account, `/${person}`), { method: 'DELETE', body: { keys, reason } });
const bring = async (who: Browser, email: string, role: string) => {
  const { status, json, text } = await invite(adas!, email, role);
  assert.equal(status, 200, text);
  assert.equal((await join(who, json.link)).status, 200);
};
const call = async (key: string) => {
  const reply = await fetch(`${testbed.origin}/v1/files`, { headers: { authorization: `Bearer ${key}` } });
  await reply.arrayBuffer();
  return reply.status;
};
const refused = async (reply: Promise<{ status: number; json: { error: { code: string; field?: string } } }>) => {
  const { status, json } = await reply;
  return [status, json.error.code, json.error.field];
};

test('an operator sees who is in an account, with roles, last sign-in and use, and a client sees none of it', async () => {
  await bring(ben!, 'ben@example.test', 'developer');
  const { key } = (await ben!.send('/keys', { body: { name: 'b' } })).json;
  assert.equal(await call(key), 200);
  const rows = await membersOf(adas!);
  assert.deepEqual(
    rows.map(({ email, role, keys }: Record<string, unknown>) => [email, role, keys]),
    [
      ['ada@example.test', 'owner', 0],
      ['ben@example.test', 'developer', 1],
    ],
  );
  for (const { signedInAt } of rows) assert.ok(Date.parse(signedInAt) > Date.now() - 3_600_000, signedInAt);
  for (const path of ['', '/invitations'])
    assert.deepEqual(await refused(ada!.send(at(adas!, path))), [403, 'forbidden', undefined]);
});

test('an operator changes a role in force at once, as an owner may, and both logs have it, with the reason in the own one', async () => {
  assert.equal((await ben!.send('/members')).json.error.code, 'role_not_included');
  assert.equal((await setRole(adas!, benId!, 'admin')).status, 200);
  assert.equal((await ben!.send('/members')).status, 200);
  const { gateway } = (await ada!.send('/me')).json;
  const [theirs] = (await ada!.send('/members/audit')).json.rows;
  const changes = [{ field: 'role', before: 'developer', after: 'admin' }];
  assert.deepEqual(
    [theirs.actor, theirs.action, theirs.subject, theirs.result, theirs.changes],
    [gateway.name, 'member.change', 'ben@example.test', 'done', changes],
  );
  assert.equal(JSON.stringify(theirs).includes(reason), false);
  const [own] = (await boss!.send('/admin/audit?action=member.change')).json.rows;
  assert.deepEqual([own.actor, own.reason, own.subject], [operator.email, reason, 'ben@example.test']);
  assert.deepEqual(own.changes, [{ field: 'accountId', before: null, after: adas }, ...changes]);
  for (const body of [{ role: 'admin' }, { role: 'admin', reason: ' ' }, { role: 'root', reason }])
    assert.equal((await boss!.send(at(adas!, `/${benId}`), { method: 'PATCH', body })).status, 400);
});

test('the last owner stays whatever an operator wants, and a second one lets the first go', async () => {
  assert.deepEqual(await refused(setRole(adas!, adaId!, 'viewer')), [409, 'last_owner', 'id']);
  assert.deepEqual(await refused(remove(adas!, adaId!, 'revoke')), [409, 'last_owner', 'id']);
  assert.equal((await setRole(adas!, benId!, 'owner')).status, 200);
  assert.equal((await setRole(adas!, adaId!, 'viewer')).status, 200);
  assert.deepEqual(await rolesIn(adas!), ['ada viewer', 'ben owner']);
  assert.equal((await setRole(adas!, adaId!, 'owner')).status, 200);
});

test('a removed member sees and calls nothing of the account at once, and keys go where the operator says', async () => {
  await bring(cleo!, 'cleo@example.test', 'admin');
  const made = async (name: string, access?: string) => {
    const { status, json, text } = await cleo!.send('/keys', { body: { name, ...(access && { access }) } });
    assert.equal(status, 200, text);
    return json as { id: string; key: string };
  };
  const [plain, organization] = [await made('plain'), await made('administers', 'organization')];
  assert.equal(await call(plain.key), 200);
  assert.equal((await setRole(adas!, adaId!, 'viewer')).status, 200);
  assert.deepEqual(await refused(remove(adas!, cleoId!, { handTo: adaId })), [409, 'conflict', 'keys']);
  for (const handTo of [cleoId, 'nothing'])
    assert.deepEqual(await refused(remove(adas!, cleoId!, { handTo })), [404, 'not_found', 'keys']);
  assert.equal((await setRole(adas!, adaId!, 'developer')).status, 200);
  assert.equal((await cleo!.send('/members')).status, 200, 'refusals have changed nothing');
  assert.equal((await remove(adas!, cleoId!, { handTo: adaId })).status, 200);
  assert.equal(await call(plain.key), 200, 'goes on in the name of another');
  const keys = (await boss!.send(`/admin/accounts/${adas}/keys`)).json.rows;
  const keyOf = (id: string) => keys.find((row: { id: string }) => row.id === id);
  assert.deepEqual([keyOf(plain.id).person, keyOf(plain.id).revokedAt], [adaId, null]);
  assert.notEqual(keyOf(organization.id).revokedAt, null, 'a developer gets no key that administers the account');
  assert.notEqual((await cleo!.send('/me')).json.account.id, adas);
  const [row] = (await boss!.send('/admin/audit?action=member.remove')).json.rows;
  assert.deepEqual(row.changes.at(-1), { field: 'keys', before: null, after: 'ada@example.test' });

  await bring(cleo!, 'cleo@example.test', 'developer');
  const { key } = (await cleo!.send('/keys', { body: { name: 'again' } })).json;
  assert.equal((await remove(adas!, cleoId!, 'revoke')).status, 200);
  assert.equal(await call(key), 401);
  assert.equal((await cleo!.send('/members/choose', { body: { accountId: adas } })).status, 404);
});

test('a command lists members, changes a role and removes with keys, and refuses a change without a reason and the end of the last owner', async () => {
  const command = testbed.gateway.commands.find(({ name }) => name === 'console members')!;
  const run = async (values: Record<string, string | boolean>) => command.run({ account: adas!, ...values });
  await bring(cleo!, 'cleo@example.test', 'developer');
  const { key } = (await cleo!.send('/keys', { body: { name: 'left' } })).json;
  const rows = (await run({})).json as Record<string, unknown>[];
  assert.deepEqual(
    rows.map(({ email, role }) => `${email} ${role}`),
    ['ada@example.test developer', 'ben@example.test owner', 'cleo@example.test developer'],
  );
  const member = 'Cleo@example.test';
  for (const [values, field] of [
    [{ member, role: 'admin' }, 'reason'],
    [{ member, reason }, 'role'],
    [{ member, role: 'root', reason }, 'role'],
    [{ member: 'eve@example.test', role: 'admin', reason }, 'member'],
    [{ member, remove: true, keysTo: 'eve@example.test', reason }, 'keysTo'],
    [{ member: 'ben@example.test', role: 'viewer', reason }, 'id'],
  ] as const)
    await assert.rejects(run(values), (error: { field?: string }) => error.field === field, JSON.stringify(values));
  const [changed] = (await run({ member, role: 'admin', reason })).text.match(/^cleo@example\.test +\w+/m)!;
  assert.match(changed, / admin$/);
  assert.equal((await cleo!.send('/members')).status, 200);
  await run({ member, remove: true, keysTo: 'ben@example.test', reason });
  assert.equal(await call(key), 200);
  assert.notEqual((await cleo!.send('/me')).json.account.id, adas);
  const [row] = (await ben!.send('/members/audit')).json.rows;
  const { gateway } = (await ben!.send('/me')).json;
  assert.deepEqual([row.actor, row.action, row.subject], [gateway.name, 'member.remove', 'cleo@example.test']);
  assert.equal(JSON.stringify(row).includes(reason), false);
});

test('an account that a command has made gets its first owner by the link of an operator, and links taken back open nothing', async () => {
  const { id } = await testbed.gateway.find(accounts)!.create('shop', 'free');
  assert.deepEqual(await membersOf(id), []);
  const { mailed, link } = (await invite(id, 'Cleo@example.test', 'owner')).json;
  assert.equal(mailed, false);
  assert.deepEqual(await refused(invite(id, 'cleo@example.test', 'viewer')), [409, 'conflict', 'email']);
  const [waiting] = (await boss!.send(at(id, '/invitations'))).json.rows;
  assert.deepEqual([waiting.email, waiting.role, waiting.invitedBy], ['cleo@example.test', 'owner', null]);
  const again = await boss!.send(at(id, `/invitations/${waiting.id}/resend`), { body: { reason } });
  assert.equal(again.status, 200, again.text);
  assert.equal((await join(cleo!, link)).json.error.code, 'link_is_over');
  assert.equal((await join(cleo!, again.json.link)).status, 200);
  assert.deepEqual(await rolesIn(id), ['cleo owner']);
  const other = (await invite(id, 'dan@example.test', 'viewer')).json;
  const [open] = (await boss!.send(at(id, '/invitations'))).json.rows;
  const taken = await boss!.send(at(id, `/invitations/${open.id}`), { method: 'DELETE', body: { reason } });
  assert.equal(taken.status, 200, taken.text);
  assert.equal((await join(ben!, other.link)).json.error.code, 'link_is_over');
  const { rows } = (await cleo!.send('/members/audit')).json;
  assert.deepEqual(
    rows.map(({ action, result }: Record<string, string>) => `${action} ${result}`),
    [
      'member.uninvite done',
      'member.invite done',
      'member.join done',
      'member.invite_again done',
      'member.invite conflict',
      'member.invite done',
    ],
  );
});

test('the person whom an account was made for is its owner in the list of operators before they use it', async () => {
  const { orm, schema } = testbed.gateway.find(database)!;
  const { members } = authTables(schema);
  await orm.delete(members).where(eq(members.accountId, bens!));
  assert.deepEqual(await rolesIn(bens!), ['ben owner']);
  await orm.delete(members).where(eq(members.accountId, bens!));
  assert.deepEqual(await refused(remove(bens!, benId!, 'revoke')), [409, 'last_owner', 'id']);
});

test('an unknown account is not found, and a member or an invitation of another account is not either', async () => {
  const { json } = await invite(bens!, 'eve@example.test', 'viewer');
  assert.ok(json.link);
  const [theirs] = (await boss!.send(at(bens!, '/invitations'))).json.rows;
  assert.deepEqual(await refused(setRole(bens!, adaId!, 'viewer')), [404, 'not_found', 'id']);
  assert.deepEqual(await refused(remove(bens!, adaId!, 'revoke')), [404, 'not_found', 'id']);
  for (const unknown of ['nothing', crypto.randomUUID()]) {
    for (const path of ['', '/invitations'])
      assert.deepEqual(await refused(boss!.send(at(unknown, path))), [404, 'not_found', 'id']);
    assert.deepEqual(await refused(invite(unknown, 'eve@example.test', 'viewer')), [404, 'not_found', 'id']);
  }
  const elsewhere = at(adas!, `/invitations/${theirs.id}`);
  const gone = boss!.send(elsewhere, { method: 'DELETE', body: { reason } });
  assert.deepEqual(await refused(gone), [404, 'not_found', 'id']);
  const again = boss!.send(`${elsewhere}/resend`, { body: { reason } });
  assert.deepEqual(await refused(again), [404, 'not_found', 'id']);
  assert.equal((await join(testbed.browser(), json.link)).status, 401, 'the link still waits for its person');
});
