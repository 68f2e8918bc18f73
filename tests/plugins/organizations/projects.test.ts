/** Projects by a key of the organization, over HTTP: OpenAI's shapes, no other account's, and neither kind of key in the other's place. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser } from '../console/browser.ts';
import { clientOf, operatorOf, startConsole, type TestConsole } from '../console/start-console.ts';

let testbed: TestConsole;
let [ada, ben]: Browser[] = [];
const keys: Record<'admin' | 'calls' | 'stranger', string> = { admin: '', calls: '', stranger: '' };
before(async () => {
  testbed = await startConsole(undefined, '', ['organizations']);
  await operatorOf(testbed);
  ada = await clientOf(testbed);
  ben = await clientOf(testbed, 'ben@example.test');
  const keyOf = async (who: Browser, access?: string) =>
    (await who.send('/keys', { method: 'POST', body: { name: 'k', ...(access && { access }) } })).json.key as string;
  keys.admin = await keyOf(ada, 'organization');
  keys.calls = await keyOf(ada);
  keys.stranger = await keyOf(ben, 'organization');
});
after(() => testbed?.stop());

interface Project {
  readonly id: string;
  readonly object: string;
  readonly name: string;
  readonly created_at: number;
  readonly archived_at: number | null;
  readonly status: string;
}
/** An answer: a project, a page of them, or an error. */
interface Json extends Project {
  readonly data: readonly Project[];
  readonly first_id: string | null;
  readonly last_id: string | null;
  readonly has_more: boolean;
  readonly error: { readonly code: string; readonly param: string | null };
}

async function ask(who: keyof typeof keys, path: string, body?: object) {
  const reply = await fetch(`${testbed.origin}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${keys[who]}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: reply.status, json: (await reply.json()) as Json };
}
const root = '/v1/organization/projects';

test('projects are made, listed page by page, renamed and archived in the shapes of OpenAI', async () => {
  const made = (await ask('admin', root, { name: 'eval' })).json;
  assert.deepEqual(
    { ...made, id: '', created_at: 0 },
    {
      ...{ id: '', object: 'organization.project', name: 'eval', created_at: 0, archived_at: null, status: 'active' },
    },
  );
  assert.ok(Math.abs(made.created_at - Date.now() / 1000) < 60);
  const other = (await ask('admin', root, { name: 'web' })).json;
  const first = (await ask('admin', `${root}?limit=1`)).json;
  assert.deepEqual(
    [first.object, first.data, first.first_id, first.last_id, first.has_more],
    ['list', [made], made.id, made.id, true],
  );
  const second = (await ask('admin', `${root}?limit=1&after=${made.id}`)).json;
  assert.deepEqual([second.data, second.has_more], [[other], false]);
  const renamed = (await ask('admin', `${root}/${made.id}`, { name: 'evaluation' })).json;
  assert.deepEqual(renamed, { ...made, name: 'evaluation' });
  const archived = (await ask('admin', `${root}/${made.id}/archive`, {})).json;
  assert.deepEqual([archived.status, typeof archived.archived_at], ['archived', 'number']);
  assert.deepEqual((await ask('admin', `${root}/${made.id}`)).json, archived);
  const ids = async (query: string) => (await ask('admin', root + query)).json.data.map(({ id }: { id: string }) => id);
  assert.deepEqual([await ids(''), await ids('?include_archived=true')], [[other.id], [made.id, other.id]]);
  assert.equal((await ada!.send('/projects?archived=true')).json.rows[0].name, 'evaluation');
});

test('a key for calls is refused there, a key of the organization everywhere else, and neither becomes the other', async () => {
  const refused = await ask('calls', root);
  assert.deepEqual([refused.status, refused.json.error.code], [403, 'organization_key_required']);
  const { rows } = (await ada!.send('/keys')).json;
  assert.deepEqual(
    rows.map(({ access }: { access: string | null }) => access),
    [null, 'organization'],
  );
  for (const [index, access] of [null, 'organization'].entries()) {
    const path = `/keys/${rows[index].id}`;
    const changed = await ada!.send(path, {
      method: 'PATCH',
      body: { name: 'other', access: access === null ? 'organization' : null },
    });
    assert.deepEqual([changed.status, changed.json.access], [200, access]);
  }
  assert.equal((await ask('calls', root)).status, 403);
  assert.equal((await ask('admin', root)).status, 200);
});

test("another account's projects are not found by any address, and faults are named by field", async () => {
  const { id } = (await ask('admin', root, { name: 'secret' })).json;
  assert.deepEqual((await ask('stranger', `${root}?include_archived=true`)).json.data, []);
  for (const [path, body] of [
    [`/${id}`, undefined],
    [`/${id}`, { name: 'mine' }],
    [`/${id}/archive`, {}],
    [`?after=${id}`, undefined],
  ] as const)
    assert.equal((await ask('stranger', root + path, body)).status, 404, path);
  assert.deepEqual((await ask('admin', `${root}/${id}`)).json.name, 'secret');
  for (const [path, body, status, field] of [
    ['', { name: 'secret' }, 409, 'name'],
    ['', { name: 7 }, 400, 'name'],
    ['', {}, 400, 'name'],
    ['', { name: 'x', geography: 'EU' }, 400, 'geography'],
    ['?limit=101', undefined, 400, 'limit'],
    ['?limit=x', undefined, 400, 'limit'],
    ['/nothing', undefined, 404, 'project_id'],
  ] as const) {
    const reply = await ask('admin', root + path, body);
    assert.deepEqual([reply.status, reply.json.error.param], [status, field], JSON.stringify([path, body]));
  }
});
