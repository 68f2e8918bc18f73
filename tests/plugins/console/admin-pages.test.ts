/** Pages that plugins add: their routes with the table's roles, schemas and audit rows, and what does not fit. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { z } from '../../../core/contract/schema.ts';
import {
  type AdminPage,
  type AdminRoute,
  adminRoute,
  type ClientPage,
  clientPageRoute,
} from '../../../plugins/common/domain/admin/admin-pages.ts';
import { accessWith } from '../../../plugins/console/api/admin/plugin-pages.ts';
import { moduleAnswer } from '../../../plugins/console/modules.ts';
import { type AddedPage, problemsOf } from '../../../plugins/console/page-problems.ts';
import { caller, everybody } from './caller.ts';
import { fakeConsole } from './fake-console.ts';
import { clientAccount } from './fakes/world.ts';

const module = new URL('../../examples/notes/page.js', import.meta.url);
const plain: AdminRoute = { method: 'GET', path: '', summary: 'Rows', access: 'read', handle: () => ({ rows: [] }) };
const page = (more: Partial<AdminPage> = {}): AdminPage => ({
  name: 'shelves',
  title: { en: 'Shelves' },
  group: 'system',
  access: 'read',
  module,
  routes: [
    plain,
    adminRoute({
      method: 'POST',
      path: '/rows/:id',
      summary: 'Change one',
      access: 'act',
      body: z.strictObject({ size: z.number(), reason: z.string() }),
      handle({ params, body, actor }) {
        if (body.size > 9) throw new GatewayError('invalid_request', 'Too large.', { field: 'size' });
        return { id: params['id'], size: body.size, by: actor.label };
      },
    }),
    adminRoute({
      method: 'GET',
      path: '/found',
      summary: 'Find',
      access: 'read',
      query: z.object({ text: z.string().min(2) }),
      handle: ({ query }) => ({ text: query.text }),
    }),
  ],
  ...more,
});
const placed = (pages: readonly AdminPage[]) => pages.map((one): AddedPage => ({ place: 'admin', page: one }));
const consoleWith = (...pages: AdminPage[]) => ({ ...fakeConsole(), addedPages: () => placed(pages) });

test('a route is for the roles that it names', async () => {
  const shown = consoleWith(page());
  const [reads, acts] = [[] as number[], [] as number[]];
  for (const who of everybody) {
    const send = caller(shown, who);
    reads.push((await send('GET /admin/shelves')).status);
    acts.push((await send('POST /admin/shelves/rows/7', { size: 1, reason: 'why' })).status);
  }
  assert.deepEqual(everybody, ['anonymous', 'client', 'auditor', 'operator', 'token']);
  assert.deepEqual(reads, [401, 403, 200, 200, 200]);
  assert.deepEqual(acts, [401, 403, 403, 200, 200]);
});

test('a change is validated, audited with its reason and outcome, and refused in the common shape of errors', async () => {
  const shown = consoleWith(page());
  const send = caller(shown, 'operator');
  const done = await send('POST /admin/shelves/rows/a%2Fb', { size: 3, reason: 'room' });
  assert.equal(done.json.id, 'a/b');
  assert.equal(done.json.size, 3);
  const wrong = await send('POST /admin/shelves/rows/7', { size: 'x', reason: 'r' });
  assert.deepEqual([wrong.status, wrong.json.error.field], [400, 'size']);
  const refused = await send('POST /admin/shelves/rows/7', { size: 10, reason: 'more' });
  assert.deepEqual(refused.json, { error: { code: 'invalid_request', message: 'Too large.', field: 'size' } });
  const { rows } = await shown.audit.list({ action: 'shelves.post' }, { limit: 10 });
  assert.deepEqual(
    rows.map(({ subject, reason, result }) => [subject, reason, result]),
    [
      ['7', 'more', 'invalid_request'],
      ['a/b', 'room', 'done'],
    ],
  );
});

test('a query is validated by its schema, and the description has the routes', async () => {
  const send = caller(consoleWith(page()), 'auditor');
  assert.equal((await send('GET /admin/shelves/found?text=abc')).json.text, 'abc');
  assert.equal((await send('GET /admin/shelves/found?text=a')).json.error.field, 'text');
  const { paths } = (await send('GET /openapi.json')).json;
  assert.equal(paths['/admin/shelves/rows/{id}'].post.description, 'For operators.');
});

test('a page is listed for the roles that may see it, with the address of its module', async () => {
  const shown = consoleWith(page(), page({ name: 'keys-of-all', access: 'act', routes: [] }));
  const listed = async (who: 'client' | 'auditor' | 'operator') =>
    (await caller(shown, who)('GET /me')).json.pages.map(({ name }: { name: string }) => name);
  assert.deepEqual(await listed('client'), []);
  assert.deepEqual(await listed('auditor'), ['shelves']);
  assert.deepEqual(await listed('operator'), ['shelves', 'keys-of-all']);
  const [first] = (await caller(shown, 'operator')('GET /me')).json.pages;
  assert.equal(first.module, '/console/modules/shelves.js');
});

test('each inconsistency of a page is one sentence', () => {
  const sentences = (...pages: AdminPage[]) => problemsOf(placed(pages)).map(({ message }) => message);
  assert.deepEqual(sentences(page()), []);
  assert.deepEqual(sentences(page({ name: 'requests' })), [
    'the admin page "requests" has a name that the console uses itself: give it another',
  ]);
  assert.match(sentences(page({ name: '../x' }))[0]!, /needs a name of small letters, digits and dashes$/);
  const twice = [
    { ...plain, path: '/:id' },
    { ...plain, path: '/:name' },
    { ...plain, path: '/a b' },
  ];
  assert.deepEqual(sentences(page({ routes: twice })), [
    'the admin page "shelves" brings the route GET /admin/shelves/:name twice',
    'the admin page "shelves" has a route with the path "/a b": write it such as "/rows/:id"',
  ]);
  const gone = page({ module: new URL('./gone.js', import.meta.url) });
  assert.match(sentences(gone)[0]!, /^the module of the admin page "shelves" is not there: \/.*gone\.js$/);
});

test("a plugin's name is never a member of the table of access", () => {
  const rows = accessWith(placed([page()]));
  assert.equal(rows['GET /admin/shelves'], 'read');
  assert.equal(rows['constructor'], undefined);
});

const ownPage: ClientPage = {
  name: 'keys',
  title: { en: 'Budget' },
  module,
  routes: [
    { method: 'GET', path: '', summary: 'The budget', handle: ({ accountId, actor }) => ({ accountId, actor }) },
    clientPageRoute({
      method: 'POST',
      path: '/:month',
      summary: 'Change it',
      body: z.strictObject({ amount: z.number() }),
      handle: ({ params, body, accountId }) => ({ ...params, ...body, accountId }),
    }),
  ],
};
const consoleWithOwn = () => ({ ...fakeConsole(), addedPages: () => [{ place: 'pages', page: ownPage } as const] });

test("a client's page: its routes are for people with an account, and are given that account alone", async () => {
  const shown = consoleWithOwn();
  const statuses = await Promise.all(
    everybody.map(async (who) => (await caller(shown, who)('GET /pages/keys')).status),
  );
  assert.deepEqual(statuses, [401, 200, 403, 200, 403]);
  const send = caller(shown, 'client');
  const { accountId, actor } = (await send('GET /pages/keys?accountId=another')).json;
  assert.equal(accountId, clientAccount);
  assert.deepEqual(Object.keys(actor), ['label', 'id']);
  const changed = await send('POST /pages/keys/2027-01', { amount: 5 });
  assert.deepEqual(changed.json, { month: '2027-01', amount: 5, accountId: clientAccount });
  assert.equal((await send('POST /pages/keys/2027-01', { amount: 5, accountId: 'another' })).status, 400);
  assert.equal(
    (await send('POST /pages/keys/2027-01', { amount: 5 }, { origin: 'https://elsewhere.test' })).status,
    403,
  );
  const { rows } = await shown.audit.list({ action: 'keys.post' }, { limit: 10 });
  assert.deepEqual(
    rows.map(({ subject, result }) => [subject, result]),
    [['2027-01', 'done']],
  );
});

test("a client's page is listed for people with an account, among their own, under an address of its own", async () => {
  const shown = consoleWithOwn();
  const pagesOf = async (who: 'client' | 'auditor') => (await caller(shown, who)('GET /me')).json.pages;
  assert.deepEqual(await pagesOf('auditor'), []);
  const { title, intro, ...rest } = (await pagesOf('client'))[0];
  assert.deepEqual([title, intro], [{ en: 'Budget' }, null]);
  const address = '/console/modules/pages/keys.js';
  assert.deepEqual(rest, { name: 'keys', path: '/pages/keys', group: null, module: address });
  const added = [{ place: 'pages', page: ownPage } as const];
  assert.equal((await moduleAnswer(added, 'modules/pages/keys.js', ''))?.status, 200);
  assert.equal(await moduleAnswer(added, 'modules/keys.js', ''), undefined);
  assert.deepEqual(problemsOf(added), []);
});
