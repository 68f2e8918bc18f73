/** Every role of a member on every route of the chosen account: what the table of rights says is what the API does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  accountRights,
  includes,
  type MemberRole,
  mayManage,
  memberRoles,
} from '../../../plugins/common/domain/organizations/rights.ts';
import { access, rightOf } from '../../../plugins/console/api/routing/access.ts';
import { caller } from './caller.ts';
import { type FakeConsole, fakeConsole } from './fake-console.ts';
import { clientAccount } from './fakes/world.ts';

const own = Object.entries(access).flatMap(([route, needed]) => {
  const right = rightOf(needed);
  return right === undefined ? [] : [{ route, right }];
});

function as(role: MemberRole): { services: FakeConsole; send: ReturnType<typeof caller> } {
  const services = fakeConsole();
  services.world.memberRole = role;
  return { services, send: caller(services, 'client') };
}

for (const role of memberRoles)
  test(`each route of an account admits or refuses ${role} as the table of rights says`, async () => {
    assert.ok(own.length > 40, `${own.length} routes`);
    for (const { route, right } of own) {
      const reply = await as(role).send(route.replace(/:\w+/g, 'nothing'), route.startsWith('GET ') ? undefined : {});
      const isRefused = reply.status === 403 && reply.json.error.code === 'role_not_included';
      assert.equal(
        isRefused,
        !includes(role, right),
        `${route} as ${role}: ${reply.status} ${reply.text.slice(0, 200)}`,
      );
    }
  });

test('the table of rights is the one written down here by hand', () => {
  const rights = Object.keys(accountRights) as (keyof typeof accountRights)[];
  const table = rights.map((right) => `${right}: ${memberRoles.filter((role) => includes(role, right)).join(' ')}`);
  assert.deepEqual(table, [
    'member: owner admin billing developer viewer',
    'usage: owner admin billing developer viewer',
    'allUsage: owner admin billing viewer',
    'work: owner admin developer',
    'keys: owner admin developer',
    'allKeys: owner admin',
    'projects: owner admin',
    'budgets: owner admin',
    'members: owner admin',
    'signIn: owner',
    'account: owner',
    'audit: owner admin',
    'pages: owner admin',
    'wallet: owner admin billing',
    'notices: owner admin billing',
    'payments: owner billing',
  ]);
  const managed = memberRoles.flatMap((role) =>
    memberRoles.filter((other) => mayManage(role, other)).map((other) => `${role}>${other}`),
  );
  assert.deepEqual(managed, [
    ...memberRoles.map((other) => `owner>${other}`),
    ...memberRoles.filter((other) => other !== 'owner').map((other) => `admin>${other}`),
  ]);
  assert.equal(includes('root' as MemberRole, 'usage'), false);
});

test("a developer sees own keys and their requests alone, and another's get the 404 of unknown ones", async () => {
  const { services, send } = as('developer');
  const { keys, requests } = services.world;
  const own = requests.find(({ accountId }) => accountId === clientAccount)!;
  const mine = own.keyId!;
  const theirs = keys.find(({ id, accountId }) => accountId === clientAccount && id !== mine)!.id;
  requests.push({ ...own, id: 'of-another', keyId: theirs });
  const at = keys.findIndex(({ id }) => id === mine);
  keys[at] = { ...keys[at]!, person: 'person-client' };
  const listed = (await send('GET /keys')).json.rows.map(({ id }: { id: string }) => id);
  assert.deepEqual(listed, [mine]);
  const counts = { mine: requests.filter(({ keyId }) => keyId === mine).length, seen: 0 };
  for (const { keyId } of (await send('GET /usage?limit=500&from=2000-01-01T00:00:00Z&traffic=all')).json.rows) {
    assert.equal(keyId, mine);
    counts.seen += 1;
  }
  assert.ok(counts.seen > 0 && counts.seen <= counts.mine);
  const their = requests.find(({ keyId }) => keyId === theirs)!.id;
  for (const [of, unknown] of [
    [`GET /usage/${their}`, 'GET /usage/unknown'],
    [`GET /usage/${their}/body`, 'GET /usage/unknown/body'],
    [`DELETE /keys/${theirs}`, 'DELETE /keys/unknown'],
    [`POST /keys/${theirs}/rotate`, 'POST /keys/unknown/rotate'],
    [`PATCH /keys/${theirs}`, 'PATCH /keys/unknown'],
  ] as const) {
    const body = of.endsWith('/rotate')
      ? { overlapHours: 1 }
      : of.startsWith('PATCH')
        ? { name: 'mine now' }
        : undefined;
    const [one, other] = [await send(of, body), await send(unknown, body)];
    assert.deepEqual([one.status, one.text], [404, other.text], of);
  }
  const sums = (await send('GET /usage/sums?from=2000-01-01T00:00:00Z')).json.requests;
  services.world.memberRole = 'viewer';
  assert.ok(sums < (await send('GET /usage/sums?from=2000-01-01T00:00:00Z')).json.requests);
});

test('a role without the wallet gets no balance on the first page, and one without all keys makes none of the organization', async () => {
  const { services, send } = as('developer');
  assert.equal((await send('GET /home')).json.pool, null);
  const refused = await send('POST /keys', { name: 'k', access: 'organization' });
  assert.deepEqual([refused.status, refused.json.error.code], [403, 'role_not_included']);
  assert.equal((await send('POST /keys', { name: 'k' })).status, 200);
  const grant = await send('POST /connect/requests/WDJB-MJHT/grant', { name: 'k', access: 'organization' });
  assert.deepEqual([grant.status, grant.json.error.code], [403, 'role_not_included']);
  services.world.memberRole = 'owner';
  assert.notEqual((await send('GET /home')).json.pool, null);
  assert.equal((await send('POST /keys', { name: 'k', access: 'organization' })).status, 200);
});
