/** Projects by the API of clients and operators, on a whole gateway: made, changed, archived, and never another account's. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ledgerQueries } from '../../../plugins/common/domain/admin/ledger.ts';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import type { Browser } from './browser.ts';
import { caller } from './caller.ts';
import { fakeConsole } from './fake-console.ts';
import { clientAccount } from './fakes/world.ts';
import { clientOf, operatorOf, startConsole, type TestConsole } from './start-console.ts';

let testbed: TestConsole;
let [operator, ada, ben]: Browser[] = [];
before(async () => {
  testbed = await startConsole();
  operator = await operatorOf(testbed);
  ada = await clientOf(testbed);
  ben = await clientOf(testbed, 'ben@example.test');
});
after(() => testbed?.stop());

const call = async (who: Browser | undefined, path: string, method = 'GET', body?: unknown) =>
  who!.send(path, { method, ...(body === undefined ? {} : { body }) });

test('a client makes a project, its keys follow its name, and an operator reads it on the account', async () => {
  const me = (await call(ada, '/me')).json;
  const made = (await call(ada, '/projects', 'POST', { name: 'eval', models: ['one'], owner: me.person.id })).json;
  assert.deepEqual(
    [made.name, made.models, made.owner, made.keys, made.archivedAt],
    ['eval', ['one'], me.person.id, 0, null],
  );
  const key = (await call(ada, '/keys', 'POST', { name: 'k', project: 'eval' })).json;
  const changed = await call(ada, `/projects/${made.id}`, 'PATCH', { name: 'evaluation' });
  assert.deepEqual([changed.json.name, changed.json.models, changed.json.keys], ['evaluation', null, 1]);
  const [row] = (await call(ada, '/keys')).json.rows;
  assert.deepEqual([row.id, row.project, row.person], [key.id, 'evaluation', me.person.id]);
  const seen = (await call(operator, `/admin/accounts/${me.account.id}/projects`)).json.rows;
  assert.deepEqual(
    seen.map(({ id, name }: { id: string; name: string }) => [id, name]),
    [[made.id, 'evaluation']],
  );
  const [audit] = (await call(operator, '/admin/audit?action=project.change')).json.rows;
  assert.deepEqual([audit.subject, audit.result], ['eval', 'done']);
});

test('an archived project is listed apart, takes no key until it is restored, and its name is refused twice', async () => {
  const { id } = (await call(ada, '/projects', 'POST', { name: 'old' })).json;
  assert.notEqual((await call(ada, `/projects/${id}/archive`, 'POST')).json.archivedAt, null);
  const refused = await call(ada, '/keys', 'POST', { name: 'k', project: 'old' });
  assert.deepEqual(
    [refused.status, refused.json.error.code, refused.json.error.field],
    [409, 'project_archived', 'project'],
  );
  const names = async (archived: boolean) =>
    (await call(ada, `/projects?archived=${archived}`)).json.rows.map(({ name }: { name: string }) => name);
  assert.deepEqual([await names(true), (await names(false)).includes('old')], [['old'], false]);
  assert.equal((await call(ada, `/projects/${id}/restore`, 'POST')).json.archivedAt, null);
  assert.equal((await call(ada, '/keys', 'POST', { name: 'k', project: 'old' })).status, 200);
  assert.equal((await call(ada, '/projects', 'POST', { name: 'old' })).status, 409);
});

test("another account's project is not found by any route, as one that is not there", async () => {
  const { id } = (await call(ada, '/projects', 'POST', { name: 'secret' })).json;
  assert.deepEqual((await call(ben, '/projects')).json.rows, []);
  for (const [path, method, body] of [
    ['', 'PATCH', { name: 'mine' }],
    ['/archive', 'POST', undefined],
    ['/restore', 'POST', undefined],
  ] as const) {
    const [theirs, none] = await Promise.all(
      [id, crypto.randomUUID()].map((one) => call(ben, `/projects/${one}${path}`, method, body)),
    );
    assert.deepEqual([theirs!.status, theirs!.text], [404, none!.text], path);
  }
  const [left] = (await call(ada, '/projects?archived=false')).json.rows.filter((row: { id: string }) => row.id === id);
  assert.equal(left.name, 'secret');
});

test('the owner of a project is a member of its account, may change, and is named where projects are listed', async () => {
  const [mine, bens] = [(await call(ada, '/me')).json.person, (await call(ben, '/me')).json.person];
  const refused = await call(ada, '/projects', 'POST', { name: 'owned', owner: bens.id });
  assert.deepEqual([refused.status, refused.json.error.field], [400, 'owner']);
  const { id, owner } = (await call(ada, '/projects', 'POST', { name: 'owned' })).json;
  assert.equal(owner, null);
  const change = (to: string | null) => call(ada, `/projects/${id}`, 'PATCH', { name: 'owned', owner: to });
  assert.equal((await change(bens.id)).status, 400);
  assert.equal((await change(mine.id)).json.owner, mine.id);
  const [row] = (await call(ada, '/projects')).json.rows.filter((one: { id: string }) => one.id === id);
  assert.deepEqual([row.owner, row.ownerName], [mine.id, mine.name]);
  assert.equal((await change(null)).json.owner, null);
});

test('the cost of a project is that of the calls that name it less their refunds, for clients and operators, and zero where none does', async () => {
  const services = fakeConsole();
  const asked: unknown[] = [];
  const client = caller(services, 'client');
  const [first, second] = (await client('GET /projects')).json.rows as { id: string }[];
  services.host.provide(ledgerQueries, {
    ...services.host.get(ledgerQueries),
    async spend({ accountId, from, until }, by) {
      asked.push([accountId, by, until - from]);
      const sums = {
        requests: 3,
        cost: parseUsd('1.50'),
        refunded: parseUsd('0.25'),
        ownCost: parseUsd('1'),
        usage: {},
      };
      return [{ group: first!.id, ...sums }];
    },
  });
  const wanted = [
    [first!.id, '1.25'],
    [second!.id, '0.00'],
  ];
  for (const reply of [
    await client('GET /projects'),
    await caller(services, 'auditor')(`GET /admin/accounts/${clientAccount}/projects`),
  ])
    assert.deepEqual(
      reply.json.rows.map(({ id, cost30d }: { id: string; cost30d: string }) => [id, cost30d]),
      wanted,
    );
  const query = [clientAccount, 'project', 30 * 86_400_000 + 1];
  assert.deepEqual(asked, [query, query]);
});
