/** People connect servers with their own accounts there: each calls tools as who they are, and no answer of a server connects another one's. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { Service } from '../../../core/contract/contract.ts';
import { accountAdmin } from '../../../plugins/common/domain/admin/accounts.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { memberAdmin } from '../../../plugins/common/domain/organizations/members.ts';
import { Connections } from '../../../plugins/mcp/connect/connections.ts';
import { endConnections } from '../../../plugins/mcp/connect/ends.ts';
import type { Generation } from '../../../plugins/mcp/generation.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { until } from '../../helpers/until.ts';
import { Browser } from '../console/browser.ts';
import { type GuardedServer, startGuardedServer } from './guarded-server.ts';
import { openWorld, type World } from './world.ts';

interface Person {
  readonly browser: Browser;
  readonly key: string;
}

let server: GuardedServer;
let world: World;
let [ada, bob] = [] as unknown as [Person, Person];

before(async () => {
  server = await startGuardedServer();
  const at = `url: "${server.origin}/mcp", allow_private: true, price: { call: 0, failed: true }`;
  world = await openWorld({
    below: ', console',
    more: 'console: { sign_up: open }',
    apis:
      `    notes: { ${at}, connect: { allow_private: true } }\n` +
      `    team: { ${at}, connect: { per: account, allow_private: true } }\n` +
      `    strict: { ${at}, connect: {} }\n`,
  });
  [ada, bob] = [await personOf('ada'), await personOf('bob')];
});
after(async () => {
  await world.stop();
  await server.stop();
});
beforeEach(() => {
  server.grants.length = 0;
  server.faults.length = 0;
  Object.assign(server, { life: 3_600, tokenStatus: undefined, metadata: {}, resource: {}, person: 'ada' });
});

async function personOf(name: string): Promise<Person> {
  const browser = new Browser(world.gateway.origin);
  const body = { email: `${name}@example.test`, password: 'a long enough password', name };
  assert.equal((await browser.send('/auth/sign-up/email', { body })).status, 200);
  return { browser, key: (await browser.send('/keys', { body: { name } })).json.key };
}

const idsOf = async ({ browser }: Person): Promise<{ readonly account: string; readonly person: string }> => {
  const { json } = await browser.send('/me');
  return { account: json.account.id, person: json.person.id };
};

const begin = async ({ browser }: Person, name = 'notes') =>
  browser.send(`/pages/tools/connections/${name}`, { body: { origin: world.gateway.origin } });

/** What the browser brings back from the server. */
async function allowed(location: string): Promise<Record<string, string>> {
  const answer = await fetch(location, { redirect: 'manual' });
  const back = new URL(answer.headers.get('location')!);
  assert.equal(back.origin + back.pathname, `${world.gateway.origin}/console/pages/tools`);
  return Object.fromEntries(back.searchParams);
}

const finish = ({ browser }: Person, body: object) => browser.send('/pages/tools/answers', { body });

async function connect(person: Person, name = 'notes') {
  const { json } = await begin(person, name);
  return finish(person, await allowed(json.location));
}

async function whoami(key: string, name = 'notes'): Promise<string> {
  const client = await world.client(key, 'legacy');
  try {
    const { content } = await client.callTool({ name: `${name}__whoami` });
    return (content[0] as { text: string }).text;
  } catch (error) {
    return (error as Error).message;
  } finally {
    await client.close();
  }
}

const states = async ({ browser }: Person) =>
  Object.fromEntries(
    (await browser.send('/pages/tools/connections')).json.connections.map((one: Record<string, string>) => [
      one['server'],
      one['state'],
    ]),
  );

test('a person connects a server and calls it as who they are there; without a connection a call says where to connect', async () => {
  assert.match(await whoami(ada.key), /not connected: connect "notes" at http:.*\/console\/pages\/tools/);
  assert.equal((await connect(ada)).status, 200);
  assert.equal(await whoami(ada.key), 'ada');
  assert.match(await whoami(bob.key), /not connected/);
  server.person = 'bob';
  assert.equal((await connect(bob)).status, 200);
  assert.deepEqual([await whoami(ada.key), await whoami(bob.key)], ['ada', 'bob']);
  assert.deepEqual(await states(ada), { notes: 'connected', team: 'none', strict: 'none' });
  const service = await world.account('1');
  assert.match(await whoami(service.key), /this key belongs to none/);
  assert.deepEqual(server.faults, []);
  // Neither tokens nor what they are asked for with stand in the rows or in the log.
  const { orm, schema } = world.gateway.gateway.find(database)!;
  const rows = JSON.stringify(await orm.execute(sql.raw(`select sealed from ${schema}.mcp_connections`)));
  assert.doesNotMatch(rows + world.gateway.lines.join('\n'), /at-[0-9a-f]{8}|rt-[0-9a-f]{8}/);
});

test('a connection of an account serves all of its keys, and no other account', async () => {
  await connect(ada, 'team');
  assert.equal(await whoami(ada.key, 'team'), 'ada');
  assert.match(await whoami(bob.key, 'team'), /not connected/);
});

test('an answer that another person has begun, is brought twice, comes from another issuer or was not allowed connects nothing', async () => {
  await bob.browser.send('/pages/tools/connections/notes', { method: 'DELETE' });
  // Somebody is led to allow what another one has begun.
  const begun = await allowed((await begin(ada)).json.location);
  const stolen = await finish(bob, begun);
  assert.deepEqual([stolen.status, stolen.json.error.field], [404, 'state']);
  assert.equal((await finish(bob, { ...begun, state: 'made up' })).status, 404);
  assert.equal((await finish(ada, begun)).status, 200);
  assert.equal((await finish(ada, begun)).status, 404);
  const mixed = await allowed((await begin(bob)).json.location);
  assert.equal((await finish(bob, { ...mixed, iss: 'https://other.example' })).json.error.code, 'not_connected');
  const { iss: _, ...without } = await allowed((await begin(bob)).json.location);
  assert.equal((await finish(bob, without)).json.error.code, 'not_connected');
  const { state } = await allowed((await begin(bob)).json.location);
  assert.equal((await finish(bob, { state })).status, 409);
  assert.equal((await states(bob))['notes'], 'none');
  assert.ok(!server.grants.includes('refresh_token'));
});

test('a server whose metadata lead elsewhere, or to no https address, is not connected', async () => {
  const refused: [Partial<GuardedServer>, name?: string][] = [
    [{ resource: { resource: 'https://other.example/mcp' } }],
    [{ metadata: { issuer: 'https://other.example' } }],
    [{ metadata: { authorization_endpoint: 'javascript:alert(1)' } }],
    [{ metadata: { code_challenge_methods_supported: ['plain'] } }],
    [{ resource: { authorization_servers: ['http://169.254.169.254/'] } }],
    // The operator has not allowed a service on this machine.
    [{}, 'strict'],
  ];
  for (const [knobs, name] of refused) {
    Object.assign(server, { metadata: {}, resource: {}, ...knobs });
    const { status, json } = await begin(bob, name);
    assert.deepEqual([status, json.error.code], [502, 'not_connected'], JSON.stringify(knobs));
  }
  assert.equal((await begin(bob, 'new')).status, 404);
  assert.equal((await begin(bob, 'constructor')).status, 404);
});

test('a token that ends is replaced once for all calls that wait, and a service that is away ends no connection', async () => {
  server.expire();
  assert.deepEqual(await Promise.all(Array.from({ length: 20 }, () => whoami(ada.key))), Array(20).fill('ada'));
  assert.deepEqual(server.grants, ['refresh_token']);
  server.expire();
  server.tokenStatus = 503;
  assert.match(await whoami(ada.key), /cannot be reached now/);
  assert.equal((await states(ada))['notes'], 'connected');
  server.tokenStatus = undefined;
  assert.equal(await whoami(ada.key), 'ada');
});

test('a connection that the server has ended says so, and is made again', async () => {
  server.forget();
  assert.match(await whoami(ada.key), /not connected: connect "notes" at/);
  assert.equal((await states(ada))['notes'], 'ended');
  assert.equal((await connect(ada)).status, 200);
  assert.equal(await whoami(ada.key), 'ada');
});

test('a person takes a connection away, and its tokens back', async () => {
  const count = server.revoked.length;
  assert.equal((await ada.browser.send('/pages/tools/connections/notes', { method: 'DELETE' })).status, 200);
  assert.match(server.revoked.slice(count).join(), /^rt-/);
  assert.match(await whoami(ada.key), /not connected/);
  assert.equal((await states(ada))['notes'], 'none');
});

const find = <T>(service: Service<T>): T => world.gateway.gateway.find(service)!;
const countConnections = async (): Promise<number> => {
  const { orm, schema } = find(database);
  const rows = await orm.execute(sql.raw(`select count(*)::int as all from ${schema}.mcp_connections`));
  return (rows as unknown as { all: number }[])[0]!.all;
};

test('connections of a member who is removed go with their tokens, those of the account and of others stay', async () => {
  const [home, person] = await Promise.all([idsOf(ada), idsOf(bob)]);
  await find(memberAdmin).join(home.account, person.person, 'admin');
  assert.equal((await bob.browser.send('/members/choose', { body: { accountId: home.account } })).status, 200);
  for (const one of [ada, bob]) assert.equal((await connect(one)).status, 200);
  const [before, revoked] = [await countConnections(), server.revoked.length];
  // A role that changes ends nothing.
  await find(memberAdmin).setRole(home.account, person.person, 'developer', { person: home.person });
  await find(memberAdmin).remove(home.account, person.person, 'revoke', { person: home.person });
  await until('the end of the connection', async () => (await countConnections()) === before - 1);
  await until('its tokens taken back', () => server.revoked.length === revoked + 1);
  assert.equal((await states(ada))['notes'], 'connected');
  assert.equal(await whoami(ada.key), 'ada');
});

test('connections of an account that is disabled go, and are made again when it is enabled', async () => {
  const { account } = await idsOf(ada);
  await connect(ada, 'team');
  const before = await countConnections();
  await find(accountAdmin).setDisabled(account, true);
  await until('the end of both connections', async () => (await countConnections()) === before - 2);
  await find(accountAdmin).setDisabled(account, false);
  assert.match(await whoami(ada.key), /not connected/);
  assert.equal((await connect(ada)).status, 200);
  assert.equal(await whoami(ada.key), 'ada');
});

test('an end that no process has heard of is found by the round of the hour, and other connections stay', async () => {
  const { orm, schema } = find(database);
  const [home, other] = await Promise.all([idsOf(ada), idsOf(bob)]);
  assert.equal((await connect(bob)).status, 200);
  const disable = (is: boolean) =>
    orm.execute(sql.raw(`update ${schema}.accounts set disabled = ${is} where id = '${home.account}'`));
  await disable(true);
  const host = fakeHost({ directory: world.gateway.directory });
  for (const service of [database, accountAdmin, memberAdmin] as Service<unknown>[])
    host.provide(service, find(service));
  const config = { servers: { notes: { connect: { per: 'person' } } } };
  const servers = () => ({ config, changed: async () => {} }) as unknown as Generation;
  endConnections(host, servers, new Connections(host, servers));
  await host.intervals[0]!.work();
  const rows = await orm.execute(sql.raw(`select owner from ${schema}.mcp_connections`));
  const owners = (rows as unknown as { owner: string }[]).map(({ owner }) => owner);
  assert.ok(!owners.some((owner) => owner.includes(home.account)), 'of the disabled account');
  assert.ok(owners.includes(`person ${other.account} ${other.person}`), 'of the other one');
  await disable(false);
  assert.equal((await connect(ada)).status, 200);
});

test('secrets rotate seals connections with the first key, and says how many need another; a key that is gone ends them when they are given up', async () => {
  const file = join(world.gateway.directory, 'secrets.key');
  const [first, next] = [readFileSync(file, 'utf8').trim(), 'another-key-that-seals-connections'];
  const rotate = async (values: Record<string, boolean> = {}) => {
    const command = world.gateway.gateway.commands.find(({ name }) => name === 'secrets rotate')!;
    const all = (await command.run(values)).json as { uses: string; done: number; left: number; advice: string }[];
    const { done, left, advice } = all.find(({ uses }) => uses.startsWith('connections'))!;
    return { done, left, advice };
  };
  const all = await countConnections();
  assert.ok(all > 0);
  writeFileSync(file, `${next}\n${first}\n`);
  assert.deepEqual(await rotate(), { done: all, left: 0, advice: 'the others can be removed' });
  writeFileSync(file, `${next}\n`);
  assert.deepEqual(await rotate(), { done: 0, left: 0, advice: 'the others can be removed' });
  server.expire();
  assert.equal(await whoami(ada.key), 'ada');
  writeFileSync(file, 'a-third-key-that-has-sealed-nothing');
  assert.deepEqual(await rotate(), { done: 0, left: all, advice: 'the others are still needed' });
  assert.equal((await states(ada))['notes'], 'connected');
  assert.deepEqual(await rotate({ giveUp: true }), { done: 0, left: 0, advice: 'the others can be removed' });
  assert.equal((await states(ada))['notes'], 'ended');
  assert.equal((await connect(ada)).status, 200);
});

test('browsers that are on their way are bounded for each owner', async () => {
  const statuses: number[] = [];
  for (let count = 0; count < 24; count++) statuses.push((await begin(ada, 'team')).status);
  assert.ok(statuses.slice(0, 10).every((status) => status === 200) && statuses.at(-1) === 429, statuses.join());
});
