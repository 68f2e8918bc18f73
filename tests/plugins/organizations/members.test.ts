/** Members, invitations and the log by a key of the organization, over HTTP, as OpenAI's own client asks for them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import type { Browser } from '../console/browser.ts';
import { clientOf, operatorOf, startConsole, type TestConsole } from '../console/start-console.ts';

let testbed: TestConsole;
let [ada, ben]: Browser[] = [];
let [own, strange]: string[] = [];
before(async () => {
  testbed = await startConsole(undefined, '', ['organizations']);
  await operatorOf(testbed);
  ada = await clientOf(testbed);
  ben = await clientOf(testbed, 'ben@example.test');
  const keyOf = async (who: Browser) =>
    (await who.send('/keys', { body: { name: 'k', access: 'organization' } })).json.key as string;
  own = await keyOf(ada);
  strange = await keyOf(ben);
});
after(() => testbed?.stop());

const clientWith = (key: string) =>
  new OpenAI({ baseURL: `${testbed.origin}/v1`, apiKey: key, adminAPIKey: key, maxRetries: 0 }).admin.organization;

async function ask(key: string, path: string, method = 'GET', body?: object) {
  const reply = await fetch(`${testbed.origin}/v1/organization${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  return { status: reply.status, json: (await reply.json()) as any };
}

test("OpenAI's client invites, lists, changes and removes members, and reads the log", async () => {
  const { users, invites, auditLogs } = clientWith(own!);
  const made = await invites.create({ email: 'Ben@example.test', role: 'developer' as 'reader' });
  assert.deepEqual(
    [made.object, made.email, made.role, made.status],
    ['organization.invite', 'ben@example.test', 'developer', 'pending'],
  );
  const { link } = made as unknown as { link: string };
  const { status } = await ben!.send('/members/join', { body: { token: new URL(link).searchParams.get('join') } });
  assert.equal(status, 200, 'the link that is handed over opens the account');
  assert.equal((await invites.retrieve(made.id)).status, 'accepted');
  const all = [];
  for await (const one of users.list({ limit: 1 })) all.push(one);
  assert.deepEqual(
    all.map(({ email, role, name }) => [email, role, name]),
    [
      ['ada@example.test', 'owner', 'Ada'],
      ['ben@example.test', 'developer', 'Ada'],
    ],
  );
  const [owner, member] = all as [(typeof all)[0], (typeof all)[0]];
  assert.ok(Math.abs(member.added_at - Date.now() / 1000) < 60);
  assert.equal((await users.update(member.id, { role: 'viewer' })).role, 'viewer');
  assert.equal((await users.retrieve(member.id)).role, 'viewer');
  assert.deepEqual(await users.delete(member.id), {
    object: 'organization.user.deleted',
    id: member.id,
    deleted: true,
  });
  assert.equal((await ask(own!, `/users/${member.id}`)).status, 404);
  assert.equal((await ask(own!, `/users/${owner.id}`, 'DELETE')).json.error.code, 'role_not_included');
  const lines = [];
  for await (const one of auditLogs.list({ limit: 2 })) lines.push(`${one.type} ${one.actor?.type}`);
  assert.deepEqual(lines, [
    // The refused one too.
    'member.remove api_key',
    'member.remove api_key',
    'member.change api_key',
    'member.join session',
    'member.invite api_key',
    'key.create session',
  ]);
});

test('an invitation is taken back once, and what a body says wrong is named by its field', async () => {
  const { invites } = clientWith(own!);
  const made = await invites.create({ email: 'eve@example.test', role: 'viewer' as 'reader' });
  assert.deepEqual(await invites.delete(made.id), {
    object: 'organization.invite.deleted',
    id: made.id,
    deleted: true,
  });
  for (const [path, method, body, status, field] of [
    [`/invites/${made.id}`, 'DELETE', undefined, 404, 'invite_id'],
    ['/invites', 'POST', { email: 'x', role: 'viewer' }, 400, 'email'],
    ['/invites', 'POST', { email: 'x@example.test', role: 'reader' }, 400, 'role'],
    ['/invites', 'POST', { email: 'x@example.test', role: 'owner' }, 403, null],
    ['/invites', 'POST', { email: 'x@example.test', role: 'viewer', projects: [] }, 400, 'projects'],
    ['/users?limit=0', 'GET', undefined, 400, 'limit'],
    ['/users?after=nothing', 'GET', undefined, 404, 'after'],
    ['/audit_logs?effective_at[gte]=soon', 'GET', undefined, 400, 'effective_at[gte]'],
  ] as const) {
    const reply = await ask(own!, path, method, body);
    assert.deepEqual([reply.status, reply.json.error.param ?? null], [status, field], `${method} ${path}`);
  }
});

test("another account's members, invitations and log are not found by any address", async () => {
  const { id: person } = (await ada!.send('/me')).json.person;
  const { invites } = clientWith(own!);
  const { id: waiting } = await invites.create({ email: 'gus@example.test', role: 'viewer' as 'reader' });
  for (const [path, method, body] of [
    [`/users/${person}`, 'GET', undefined],
    [`/users/${person}`, 'POST', { role: 'viewer' }],
    [`/users/${person}`, 'DELETE', undefined],
    [`/invites/${waiting}`, 'GET', undefined],
    [`/invites/${waiting}`, 'DELETE', undefined],
    [`/users?after=${person}`, 'GET', undefined],
  ] as const)
    assert.equal((await ask(strange!, path, method, body)).status, 404, `${method} ${path}`);
  for (const path of ['/users', '/invites', '/audit_logs'])
    assert.equal(JSON.stringify((await ask(strange!, path)).json).includes('ada@example.test'), false, path);
  assert.equal((await invites.retrieve(waiting)).status, 'pending');
});

test('a key of the organization ends with the role of the admin who made it, and their keys for calls go on', async () => {
  const { link } = (await ada!.send('/members/invitations', { body: { email: 'ben@example.test', role: 'admin' } }))
    .json;
  await ben!.send('/members/join', { body: { token: new URL(link).searchParams.get('join') } });
  const { key } = (await ben!.send('/keys', { body: { name: 'admin', access: 'organization' } })).json;
  const { id: calls } = (await ben!.send('/keys', { body: { name: 'calls' } })).json;
  assert.equal((await ask(key, '/users')).status, 200);
  const { id } = (await ben!.send('/me')).json.person;
  await ada!.send(`/members/${id}`, { method: 'PATCH', body: { role: 'developer' } });
  assert.equal((await ask(key, '/users')).status, 401);
  const { rows } = (await ada!.send('/keys')).json;
  assert.equal(rows.find((row: { id: string }) => row.id === calls).revokedAt, null);
});

test("OpenAI's client lists the keys of the organization that work with who made them, and sees no other key and no secret", async () => {
  const { adminAPIKeys } = clientWith(own!);
  await ada!.send('/keys', { body: { name: 'for calls' } });
  const made = (await ada!.send('/keys', { body: { name: 'second', access: 'organization' } })).json;
  const all = [];
  for await (const one of adminAPIKeys.list({ limit: 1 })) all.push(one);
  assert.deepEqual(
    all.map(({ object, name, owner }) => [object, name, owner!.type, owner!.role]),
    [
      ['organization.admin_api_key', 'k', 'user', 'owner'],
      ['organization.admin_api_key', 'second', 'user', 'owner'],
    ],
  );
  const [first, second] = all as [(typeof all)[0], (typeof all)[0]];
  assert.equal(own!.startsWith(first.redacted_value.replace('...', '')), true);
  assert.equal(JSON.stringify(all).includes(made.key.slice(20)), false);
  assert.ok(Math.abs(second.created_at - Date.now() / 1000) < 60);
  assert.deepEqual(await adminAPIKeys.retrieve(second.id), second);
  const newest = await ask(own!, '/admin_api_keys?order=desc');
  assert.deepEqual([newest.json.first_id, newest.json.last_id, newest.json.has_more], [second.id, first.id, false]);
  assert.equal((await ask(own!, '/admin_api_keys?order=up')).json.error.param, 'order');
  assert.equal((await ask(strange!, `/admin_api_keys/${second.id}`)).status, 404);
  await ada!.send(`/keys/${second.id}`, { method: 'DELETE' });
  assert.equal((await ask(own!, `/admin_api_keys/${second.id}`)).status, 404);
  assert.equal((await ask(made.key, '/admin_api_keys')).status, 401);
});
