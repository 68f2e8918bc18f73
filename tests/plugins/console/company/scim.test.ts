/** A company's directory says who is in its account, by SCIM 2.0 as Entra and Okta send it: who joins, as what, and who is out at once. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { databaseUrl, ownSchema } from '../../../helpers/database.ts';
import { type FakeDns, startDns } from '../../../helpers/fake-dns.ts';
import { type RealProvider, startRealProvider } from '../../../helpers/real-oidc.ts';
import type { Browser } from '../browser.ts';
import { clientOf, startConsole, type TestConsole } from '../start-console.ts';

const origin = 'http://gateway.test';
let testbed: TestConsole;
/** Another process of the fleet, on a database that both reach. */
let second: TestConsole | undefined;
let dns: FakeDns;
let acme: RealProvider;
let owner: Browser;
let token: string;
let providerId: string;

before(async () => {
  dns = await startDns();
  const section = `origin: ${origin}
sign_up: open
throttle: { per_address: 1000 }
companies: { private_providers: true, dns: ["${dns.address}"] }`;
  const shared = databaseUrl && `schema: ${ownSchema('scim')}\nstorage: { database: "${databaseUrl}" }`;
  testbed = await startConsole(section, shared, ['organizations']);
  if (shared !== undefined) second = await startConsole(section, shared, ['organizations']);
  owner = await clientOf(testbed, 'olga@example.test');
  for (const domain of ['acme.test']) {
    const { domains } = (await owner.send('/members/sign-in/domains', { body: { domain } })).json;
    dns.texts.set(domains[0].record.name, [domains[0].record.value]);
    await owner.send(`/members/sign-in/domains/${domain}/verify`, { method: 'POST' });
  }
  const { redirectUri } = (await owner.send('/members/sign-in')).json;
  providerId = redirectUri.split('/').at(-1);
  acme = await startRealProvider(redirectUri, `${origin}/console/sign-in`);
  const provider = {
    ...{ name: 'Acme', issuer: acme.issuer, clientId: 'gateway', clientSecret: 'shared', role: 'viewer' },
    groups: [
      { claim: 'groups', value: 'Gateway admins', role: 'admin' },
      { claim: 'groups', value: 'Search', role: 'developer', project: 'search' },
    ],
  };
  await owner.send('/projects', { body: { name: 'search' } });
  const saved = await owner.send('/members/sign-in/provider', { body: provider });
  assert.equal(saved.status, 200, saved.text);
  token = (await owner.send('/members/sign-in/directory', { method: 'POST' })).json.token;
});
after(async () => {
  await second?.stop();
  await testbed.stop();
  acme.close();
  dns.close();
});

async function scim(line: string, body?: object, by = token) {
  const [method, path] = line.split(' ');
  const response = await fetch(`${testbed.origin}/console/scim/v2${path}`, {
    method: method!,
    headers: { authorization: `Bearer ${by}`, 'content-type': 'application/scim+json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  const json: any = text === '' ? undefined : JSON.parse(text);
  return { status: response.status, type: response.headers.get('content-type'), json };
}

const patch = (...Operations: object[]) => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations,
});
const entraUser = (name: string, more: object = {}) => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:User', 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'],
  externalId: `entra-${name}`,
  userName: `${name}@acme.test`,
  active: true,
  emails: [{ primary: true, type: 'work', value: `${name}@acme.test` }],
  meta: { resourceType: 'User' },
  name: { formatted: name, familyName: 'Family', givenName: name },
  ...more,
});
const make = async (name: string, more: object = {}) => {
  const made = await scim('POST /Users', entraUser(name, more));
  assert.equal(made.status, 201, JSON.stringify(made.json));
  return made.json.id as string;
};
const memberOf = async (email: string) =>
  (await owner.send('/members')).json.rows.find((row: { email: string }) => row.email === email);
const roleOf = async (name: string) => (await memberOf(`${name}@acme.test`))?.role;

async function signIn(name: string) {
  const browser = testbed.browser();
  acme.person = { sub: name, email: `${name}@acme.test`, email_verified: true, name };
  const begun = await browser.send('/auth/sign-in/social', {
    body: { provider: providerId, callbackURL: '/console/' },
  });
  const back = await acme.walk(begun.json.url);
  const landed = await browser.send(back.pathname + back.search, { headers: { 'sec-fetch-site': 'cross-site' } });
  const to = new URL(landed.headers.get('location')!, origin);
  return { browser, error: to.searchParams.get('error') ?? undefined };
}

test('a directory without the token of an account, or with one that was replaced, gets a SCIM error', async () => {
  const none = await scim('GET /Users', undefined, 'scim-wrong');
  assert.deepEqual([none.status, none.type, none.json.status], [401, 'application/scim+json', '401']);
  assert.deepEqual(none.json.schemas, ['urn:ietf:params:scim:api:messages:2.0:Error']);
  const before = token;
  token = (await owner.send('/members/sign-in/directory', { method: 'POST' })).json.token;
  assert.deepEqual(
    [(await scim('GET /Users', undefined, before)).status, (await scim('GET /Users')).status],
    [401, 200],
  );
  const { directory } = (await owner.send('/members/sign-in')).json;
  assert.equal(directory.address, `${origin}/console/scim/v2`);
  assert.ok(directory.token.lastUsedAt !== null);
  for (const path of ['/ServiceProviderConfig', '/ResourceTypes', '/Schemas'])
    assert.equal((await scim(`GET ${path}`)).status, 200, path);
  assert.equal((await scim('GET /Bulk')).status, 404);
});

test('Entra makes a user, who is a member at once and signs in, looks for them by name, and makes none twice', async () => {
  const none = await scim(`GET /Users?filter=${encodeURIComponent('userName eq "ann@acme.test"')}`);
  assert.deepEqual([none.status, none.json.totalResults], [200, 0]);
  const id = await make('ann');
  assert.equal(await roleOf('ann'), 'viewer');
  const found = await scim(`GET /Users?filter=${encodeURIComponent('userName eq "Ann@Acme.test"')}`);
  assert.deepEqual(
    [found.json.totalResults, found.json.Resources[0].id, found.json.Resources[0].active],
    [1, id, true],
  );
  assert.equal(found.json.Resources[0].name.givenName, 'ann');
  const twice = await scim('POST /Users', entraUser('ann'));
  assert.deepEqual([twice.status, twice.json.scimType], [409, 'uniqueness']);
  const { browser, error } = await signIn('ann');
  assert.equal(error, undefined);
  assert.equal((await browser.send('/me')).json.account.role, 'viewer');
  for (const filter of ['userName co "a"', 'password eq "x"', 'userName eq'])
    assert.equal(
      (await scim(`GET /Users?filter=${encodeURIComponent(filter)}`)).json.scimType,
      'invalidFilter',
      filter,
    );
});

test('a list is paged by startIndex and count', async () => {
  for (const name of ['p1', 'p2', 'p3']) await make(name);
  const all = (await scim('GET /Users?count=200')).json;
  const seen: string[] = [];
  for (let startIndex = 1; startIndex <= all.totalResults; startIndex += 2) {
    const page = (await scim(`GET /Users?startIndex=${startIndex}&count=2`)).json;
    assert.deepEqual([page.startIndex, page.totalResults], [startIndex, all.totalResults]);
    seen.push(...page.Resources.map(({ id }: { id: string }) => id));
  }
  assert.deepEqual(
    seen,
    all.Resources.map(({ id }: { id: string }) => id),
  );
  assert.equal((await scim('GET /Users?count=0')).json.Resources.length, 0);
});

test('groups give role and project, by the changes that Entra and Okta send', async () => {
  const [cleo, dan] = [await make('cleo'), await make('dan')];
  const made = await scim('POST /Groups', { displayName: 'Search', externalId: 'g-1', members: [{ value: cleo }] });
  assert.equal(made.status, 201, JSON.stringify(made.json));
  const group = made.json.id;
  assert.deepEqual([await roleOf('cleo'), await roleOf('dan')], ['developer', 'viewer']);
  const { browser } = await signIn('cleo');
  await browser.send('/keys', { body: { name: 'mine' } });
  assert.equal((await browser.send('/keys')).json.rows[0].project, 'search');
  const entraAdd = patch({ op: 'Add', path: 'members', value: [{ value: dan }] });
  assert.equal((await scim(`PATCH /Groups/${group}`, entraAdd)).status, 200);
  assert.equal(await roleOf('dan'), 'developer');
  await scim(`PATCH /Groups/${group}`, patch({ op: 'Remove', path: 'members', value: [{ value: dan }] }));
  assert.equal(await roleOf('dan'), 'viewer');
  await scim(`PATCH /Groups/${group}`, patch({ op: 'add', path: 'members', value: [{ value: dan }] }));
  await scim(`PATCH /Groups/${group}`, patch({ op: 'remove', path: `members[value eq "${cleo}"]` }));
  assert.deepEqual([await roleOf('cleo'), await roleOf('dan')], ['viewer', 'developer']);
  const named = patch({ op: 'replace', value: { id: group, displayName: 'Gateway admins' } });
  assert.equal((await scim(`PATCH /Groups/${group}`, named)).json.displayName, 'Gateway admins');
  assert.equal(await roleOf('dan'), 'admin');
  const [short] = (
    await scim(`GET /Groups?excludedAttributes=members&filter=${encodeURIComponent('displayName eq "Gateway admins"')}`)
  ).json.Resources;
  assert.deepEqual([short.id, short.members], [group, undefined]);
  const foreign = await scim(
    `PATCH /Groups/${group}`,
    patch({ op: 'add', path: 'members', value: [{ value: 'unknown' }] }),
  );
  assert.deepEqual([foreign.status, foreign.json.scimType], [400, 'invalidValue']);
  await scim(`PUT /Groups/${group}`, { displayName: 'Search', members: [{ value: cleo }] });
  assert.deepEqual([await roleOf('cleo'), await roleOf('dan')], ['developer', 'viewer']);
  assert.equal((await signIn('cleo')).error, undefined);
  assert.equal(await roleOf('cleo'), 'developer', 'the directory counts before the claims of the provider');
  assert.equal((await scim(`DELETE /Groups/${group}`)).status, 204);
  assert.equal(await roleOf('cleo'), 'viewer');
});

const offs: [string, (id: string) => Promise<{ status: number }>][] = [
  ['Entra deactivates', (id) => scim(`PATCH /Users/${id}`, patch({ op: 'Replace', path: 'active', value: 'False' }))],
  ['Okta deactivates', (id) => scim(`PATCH /Users/${id}`, patch({ op: 'replace', value: { active: false } }))],
  ['a whole user is put that is not active', (id) => scim(`PUT /Users/${id}`, entraUser('off2', { active: false }))],
  ['the directory deletes', (id) => scim(`DELETE /Users/${id}`)],
];
for (const [index, [title, off]] of offs.entries())
  test(`where ${title}, keys and sessions end at once, and the provider brings them back only when the directory does`, async (t) => {
    const name = `off${index}`;
    const id = await make(name);
    const group = (await scim('POST /Groups', { displayName: 'Search', members: [{ value: id }] })).json.id;
    const { browser } = await signIn(name);
    const { key } = (await browser.send('/keys', { body: { name: 'mine' } })).json;
    const callAt = (node: string) =>
      fetch(`${node}/v1/organization/projects`, { headers: { authorization: `Bearer ${key}` } });
    const call = () => callAt(testbed.origin);
    const elsewhere = second?.origin ?? testbed.origin;
    assert.equal((await callAt(elsewhere)).status, 403);
    assert.equal((await call()).status, 403, 'a key for calls');
    const own = await clientOf(testbed, `own${index}@example.test`);
    assert.ok((await off(id)).status < 300);
    const began = performance.now();
    // An announcement is read four times a second.
    while ((await callAt(elsewhere)).status !== 401) await setTimeout(20);
    t.diagnostic(`refused by the other process after ${Math.round(performance.now() - began)} ms`);
    assert.equal((await call()).status, 401);
    assert.equal((await browser.send('/me')).status, 401);
    assert.equal(await roleOf(name), undefined);
    assert.equal((await own.send('/me')).status, 200);
    assert.equal((await signIn(name)).error, 'deprovisioned');
    const back =
      title === 'the directory deletes'
        ? await scim('POST /Users', entraUser(name))
        : await scim(`PATCH /Users/${id}`, patch({ op: 'Replace', path: 'active', value: 'True' }));
    assert.ok(back.status < 300, JSON.stringify(back.json));
    assert.equal((await signIn(name)).error, undefined);
    assert.notEqual(await roleOf(name), undefined);
    assert.equal((await call()).status, 401, 'a revoked key stays so');
    await scim(`DELETE /Groups/${group}`);
  });

test('attributes change by paths as Entra sends them, and unknown ones are taken and forgotten', async () => {
  const id = await make('eva');
  const changed = await scim(
    `PATCH /Users/${id}`,
    patch(
      { op: 'Replace', path: 'displayName', value: 'Eva Two' },
      { op: 'Add', path: 'name.familyName', value: 'Two' },
      { op: 'Replace', path: 'emails[type eq "work"].value', value: 'eva.two@acme.test' },
      { op: 'Add', path: 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department', value: 'x' },
      { op: 'Replace', value: { 'name.givenName': 'Evi', title: 'Dr' } },
    ),
  );
  const { displayName, name, emails } = changed.json;
  assert.deepEqual([displayName, name.familyName, name.givenName], ['Eva Two', 'Two', 'Evi']);
  assert.deepEqual(
    emails.map(({ value }: { value: string }) => value),
    ['eva.two@acme.test'],
  );
  const renamed = await scim(`PATCH /Users/${id}`, patch({ op: 'Replace', path: 'userName', value: 'Eva2@acme.test' }));
  assert.equal(renamed.json.userName, 'Eva2@acme.test');
  const taken = await scim(`PATCH /Users/${id}`, patch({ op: 'Replace', path: 'userName', value: 'ann@acme.test' }));
  assert.equal(taken.status, 409);
  for (const body of [{}, patch({ op: 'move', path: 'x' }), patch({ op: 'replace', path: 'active', value: 'maybe' })])
    assert.equal((await scim(`PATCH /Users/${id}`, body)).status, 400);
});

test('an address outside the verified domains, one that somebody has not confirmed, and the last owner are refused', async () => {
  const outside = await scim('POST /Users', entraUser('x', { userName: 'x@elsewhere.test', emails: [] }));
  assert.deepEqual([outside.status, outside.json.scimType], [400, 'invalidValue']);
  await clientOf(testbed, 'squat@acme.test');
  const squat = await scim('POST /Users', entraUser('squat'));
  assert.deepEqual([squat.status, await roleOf('squat')], [409, undefined]);
  const boss = await make('boss');
  const person = await memberOf('boss@acme.test');
  await owner.send(`/members/${person.id}`, { method: 'PATCH', body: { role: 'owner' } });
  await signIn('boss');
  assert.equal(await roleOf('boss'), 'owner', 'an owner stays one');
  const me = await memberOf('olga@example.test');
  await owner.send(`/members/${me.id}`, { method: 'PATCH', body: { role: 'viewer' } });
  const refused = await scim(`PATCH /Users/${boss}`, patch({ op: 'Replace', path: 'active', value: 'False' }));
  assert.deepEqual([refused.status, refused.json.scimType], [409, 'mutability']);
  assert.equal((await scim(`GET /Users/${boss}`)).json.active, true);
  assert.equal((await scim(`DELETE /Users/${boss}`)).status, 409);
  const { browser } = await signIn('boss');
  const log = (await browser.send('/members/audit?limit=500')).json.rows as {
    action: string;
    result: string;
    actor: string;
  }[];
  const acts = new Set(log.filter(({ actor }) => actor === 'SCIM').map(({ action }) => action));
  for (const action of [
    'scim.create',
    'member.join',
    'member.change',
    'scim.deactivate',
    'scim.delete',
    'scim.group',
    'scim.group-off',
  ])
    assert.ok(acts.has(action), `${action}: ${[...acts].join(', ')}`);
  assert.ok(log.some(({ action, result }) => action === 'scim.deactivate' && result === 'last_owner'));
});
