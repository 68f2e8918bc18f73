/** A program asks for a key by a code: what a person grants it gets once, in time, not too fast; codes are not guessed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { createApi } from '../../../plugins/console/api/index.ts';
import { openKeyRequests } from '../../../plugins/console/key-requests/store.ts';
import { consoleTables } from '../../../plugins/console/people/tables.ts';
import { openDatabase } from '../../helpers/database.ts';
import { caller, noFields } from './caller.ts';
import { fakeConsole } from './fake-console.ts';

const minuteMs = 60_000;
const grantType = 'urn:ietf:params:oauth:grant-type:device_code';

/** The API over rows of a database, with a clock of its own. */
async function world() {
  const database = await openDatabase({ plugins: ['console'] });
  const console = fakeConsole();
  const { clock, random } = console.host;
  await database.orm.execute(
    sql.raw(
      `insert into ${database.schema}.console_people (id, name, email, created_at, updated_at)
       select id, id, id || '@example.test', now(), now() from unnest(array[${console.people.rows.map(({ id }) => `'${id}'`)}]) as id`,
    ),
  );
  const keyRequests = openKeyRequests(database.orm, consoleTables(database.schema), { clock, random });
  const services = { ...console, keyRequests };
  const api = createApi(services);
  const form = async (path: string, members: Record<string, string>, address = '198.51.100.1') => {
    const response = await api.fetch(
      new Request(`http://gateway.test${path}`, {
        method: 'POST',
        headers: { 'x-console': '1', 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams(members),
      }),
      { origin: 'http://gateway.test', address, exchange: { request: noFields } },
    );
    // biome-ignore lint/suspicious/noExplicitAny: answers of several shapes
    return { status: response.status, json: (await response.json()) as any };
  };
  const ask = async (machine = "Ada's laptop", address?: string) =>
    (await form('/connect/code', { client_id: 'claude-code', machine }, address)).json;
  const take = async (device_code: string) => {
    const { json } = await form('/connect/token', { grant_type: grantType, device_code, client_id: 'claude-code' });
    return json.error ?? json.access_token;
  };
  const close = () => database[Symbol.asyncDispose]();
  return {
    ...database,
    services,
    clock: console.host,
    client: caller(services, 'client'),
    form,
    ask,
    take,
    [Symbol.asyncDispose]: close,
  };
}

const terms = { name: 'claude-code on laptop', cap: { amount: '10', every: 'month' }, models: ['gpt-5.4-mini'] };

test('a granted program gets a key of these terms once, and the audit log says who let it have one', async () => {
  await using w = await world();
  const asked = await w.ask('Ada’s\u202e\u0007 laptop');
  assert.match(asked.user_code, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
  assert.equal(asked.verification_uri_complete, `http://gateway.test/console/connect?code=${asked.user_code}`);
  assert.deepEqual([asked.expires_in, asked.interval, asked.device_code.length], [600, 5, 43]);
  assert.equal(await w.take(asked.device_code), 'authorization_pending');
  // However the code is typed.
  const path = `/connect/requests/${asked.user_code.toLowerCase().replace('-', ' ')}`;
  const { json: seen } = await w.client(`GET ${encodeURI(path)}`);
  assert.deepEqual([seen.program, seen.machine, seen.address], ['claude-code', 'Ada’s laptop', '198.51.100.1']);
  assert.equal((await w.client(`POST ${encodeURI(path)}/grant`, terms)).status, 200);
  w.clock.advance(5_000);
  const [one, other] = await Promise.all([w.take(asked.device_code), w.take(asked.device_code)]);
  const [key] = [one, other].filter((answer) => answer.startsWith('sk-'));
  assert.ok(key !== undefined && [one, other].includes('invalid_grant'), `${one} ${other}`);
  assert.equal(await w.take(asked.device_code), 'invalid_grant');
  const { rows } = (await w.client('GET /keys')).json;
  const made = rows.find(({ name }: { name: string }) => name === terms.name);
  assert.deepEqual([made.cap, made.models], [{ amount: '10.00', every: 'month' }, terms.models]);
  const audit = (await caller(w.services, 'operator')('GET /admin/audit')).json.rows;
  assert.deepEqual(
    audit
      .slice(0, 2)
      .map((row: Record<string, unknown>) => [row['action'], row['subject'], row['reason'], row['result']]),
    [
      ['key.create', terms.name, 'claude-code on Ada’s laptop', 'done'],
      ['key.grant', terms.name, 'claude-code on Ada’s laptop', 'done'],
    ],
  );
  // Neither code nor key is kept.
  const kept = JSON.stringify(await w.orm.execute(sql.raw(`select * from ${w.schema}.console_key_requests`)));
  for (const secret of [asked.user_code, asked.device_code, key]) assert.ok(!kept.includes(secret));
});

test('denied, expired, and asked for too often: the program gets the errors of RFC 8628', async () => {
  await using w = await world();
  const denied = await w.ask();
  assert.equal((await w.client(`POST /connect/requests/${denied.user_code}/deny`)).status, 200);
  assert.equal((await w.client(`POST /connect/requests/${denied.user_code}/grant`, terms)).status, 404);
  assert.equal(await w.take(denied.device_code), 'access_denied');
  assert.equal(await w.take(denied.device_code), 'invalid_grant');

  const hasty = await w.ask();
  assert.equal(await w.take(hasty.device_code), 'authorization_pending');
  w.clock.advance(4_000);
  assert.equal(await w.take(hasty.device_code), 'slow_down');
  w.clock.advance(5_000);
  assert.equal(await w.take(hasty.device_code), 'slow_down', 'the interval is ten seconds now');
  w.clock.advance(15_000);
  assert.equal(await w.take(hasty.device_code), 'authorization_pending');
  // What was granted meanwhile is not lost by asking too soon.
  assert.equal((await w.client(`POST /connect/requests/${hasty.user_code}/grant`, terms)).status, 200);
  assert.equal(await w.take(hasty.device_code), 'slow_down');
  w.clock.advance(20_000);
  assert.match(await w.take(hasty.device_code), /^sk-/);

  const late = await w.ask();
  const unfetched = await w.ask();
  assert.equal((await w.client(`POST /connect/requests/${unfetched.user_code}/grant`, terms)).status, 200);
  w.clock.advance(10 * minuteMs);
  for (const { device_code } of [late, unfetched]) assert.equal(await w.take(device_code), 'expired_token');
  assert.equal((await w.client(`GET /connect/requests/${late.user_code}`)).status, 404);
  assert.equal((await w.client(`POST /connect/requests/${late.user_code}/grant`, terms)).status, 404);
  w.clock.advance(61 * minuteMs);
  await w.services.keyRequests.prune();
  assert.equal(await w.take(late.device_code), 'invalid_grant');

  const wrong = await w.form('/connect/token', { grant_type: 'password', device_code: 'x' });
  assert.deepEqual([wrong.status, wrong.json.error], [400, 'unsupported_grant_type']);
  assert.equal((await w.form('/connect/token', { grant_type: grantType })).json.error, 'invalid_request');
});

test('only a person with an account grants, from our own page, with terms of a key; a blocked one grants nothing', async () => {
  await using w = await world();
  const asked = await w.ask();
  const path = `POST /connect/requests/${asked.user_code}/grant`;
  for (const [who, status] of [
    ['anonymous', 401],
    ['auditor', 403],
    ['token', 403],
  ] as const)
    assert.equal((await caller(w.services, who)(path, terms)).status, status, who);
  const foreign = { origin: 'https://evil.example' };
  assert.deepEqual((await w.client(path, terms, foreign)).json.error.code, 'csrf');
  assert.equal((await w.client(path, { name: '' })).json.error.field, 'name');
  assert.equal((await w.client(path, { ...terms, expiresAt: '2001-01-01T00:00:00Z' })).json.error.field, 'expiresAt');
  assert.equal((await w.client(path, terms)).status, 200);
  // The first answer stands.
  assert.equal((await caller(w.services, 'operator')(path, terms)).status, 404);
  const person = w.services.people.rows.find(({ role }) => role === 'client')!;
  await w.services.people.setBlocked(person.id, true);
  assert.equal(await w.take(asked.device_code), 'access_denied');
});

test('codes are bounded by address, and guesses by person and address, right ones with them', async () => {
  await using w = await world();
  for (let count = 0; count < 20; count++) assert.equal((await w.ask('m', '198.51.100.2')).error, undefined);
  assert.equal((await w.ask('m', '198.51.100.2')).error.code, 'rate_limited');
  const { user_code } = await w.ask();
  const look = async (code: string) => (await w.client(`GET /connect/requests/${code}`)).status;
  assert.equal(await look(user_code), 200);
  for (let count = 0; count < 10; count++) assert.equal(await look('BBBB-BBBB'), 404);
  assert.equal(await look(user_code), 429);
  w.clock.advance(10 * minuteMs);
  const next = await w.ask();
  assert.equal(await look(next.user_code), 200);
});

test('a gateway whose keys no one makes offers no codes', async () => {
  const bare = caller(fakeConsole({ bare: true }), 'anonymous');
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const reply = await bare('POST /connect/code', 'client_id=codex', headers);
  assert.deepEqual([reply.status, reply.json.error.code], [404, 'not_available']);
});
