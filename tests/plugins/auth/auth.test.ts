/** From a request to its caller, or to a refusal. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, test } from 'node:test';
import { inspect } from 'node:util';
import { sql } from 'drizzle-orm';
import auth from '../../../plugins/auth/index.ts';
import { makeKey } from '../../../plugins/auth/key.ts';
import { keyring } from '../../../plugins/common/domain/accounts.ts';
import { fakeHost, setUp } from '../../helpers/fakes.ts';
import { closeEmbedded, openEmbedded } from './embedded.ts';
import { openGate, type Sent } from './setup.ts';

after(closeEmbedded);

/** A key that is well formed and belongs to no one. */
const strayKey = () => makeKey({ bytes: randomBytes, fraction: Math.random });

/** Waits, at most two seconds, for what happens beside the requests. */
async function eventually(happened: () => boolean): Promise<void> {
  for (let tries = 0; tries < 6_000 && !happened(); tries++) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.ok(happened(), 'did not happen within two seconds');
}

test('every carrier accepts the same key', async () => {
  const gate = await openGate();
  const key = await gate.newKey({ models: ['one', 'two'] });
  const requests: Sent[] = [
    { headers: { authorization: `Bearer ${key}` } },
    { headers: { authorization: `bearer ${key}` } },
    { headers: { authorization: `BEARER \t ${key} ` } },
    { headers: { 'x-api-key': key } },
    { headers: { 'x-goog-api-key': key } },
    { query: `alt=sse&key=${key}` },
    { headers: { authorization: `Bearer ${key}`, 'x-api-key': key }, query: `key=${key}` },
    { headers: { authorization: 'Bearer ', 'x-api-key': key }, query: 'key=' },
    { headers: { authorization: 'Basic dXNlcjpwYXNz', 'x-api-key': key } },
  ];
  for (const request of requests) {
    const { accountId, plan, models } = await gate.send(request);
    assert.deepEqual(
      { accountId, plan, models },
      { accountId: gate.accountId, plan: 'pro', models: new Set(['one', 'two']) },
    );
  }
});

test('a carrier that is not configured is ignored, as a key and as a contradiction', async () => {
  const gate = await openGate({ carriers: ['bearer', 'x-api-key'] });
  const key = await gate.newKey();
  await gate.send({ headers: { 'x-api-key': key, 'x-goog-api-key': 'another' }, query: 'key=third' });
  assert.match((await gate.refusal({ headers: { 'x-goog-api-key': key } })).message, /is missing/);
  assert.match((await gate.refusal({ query: `key=${key}` })).message, /is missing/);
});

test('a request without a key gets the list of carriers, with query parameters only where there is no header', async () => {
  const report = async (carriers: string[]) =>
    (await (await openGate({ carriers })).refusal({ headers: { 'x-other': 'key' } })).message.split('Send it ')[1];
  assert.equal(
    await report(['bearer', 'x-api-key', 'query']),
    'in the header "Authorization: Bearer <API_KEY>" or "x-api-key: <API_KEY>".',
  );
  assert.equal(await report(['x-goog-api-key']), 'in the header "x-goog-api-key: <API_KEY>".');
  assert.equal(await report(['query']), 'in the address: "?key=<API_KEY>".');
});

test('two carriers with different keys are refused, even if one is valid', async () => {
  const gate = await openGate();
  const key = await gate.newKey();
  const requests: Sent[] = [
    { headers: { authorization: `Bearer ${key}`, 'x-api-key': 'other' } },
    { headers: { 'x-goog-api-key': key }, query: 'key=other' },
    { query: `key=${key}&key=other` },
  ];
  for (const request of requests) {
    const error = await gate.refusal(request);
    assert.equal(error.status, 401);
    assert.equal(error.code, 'invalid_api_key');
    assert.match(error.message, /Two different API keys were sent with this request, in .+\. Send one/);
  }
});

test('a missing key and an invalid one have different errors, and no other causes are distinguished', async () => {
  const gate = await openGate({ failures: { per_minute: 1000 } });
  const missing = [{}, { headers: { authorization: 'Bearer' } }, { headers: { authorization: '' } }, { query: 'key=' }];
  for (const request of missing) {
    const error = await gate.refusal(request);
    assert.equal(error.status, 401);
    assert.match(error.message, /^An API key is missing/);
  }
  const expiring = await gate.newKey({ expiresAt: new Date(gate.host.clock.now() + 10) });
  gate.host.advance(10);
  const revoked = await gate.newKey();
  await gate.command('keys revoke', { key: revoked.slice(0, 14) });
  const known = await gate.newKey();
  const invalid = ['garbage', strayKey(), expiring, revoked, known.slice(0, -1), `${known}0`, `${known}, ${known}`];
  const refusals = await Promise.all(invalid.map((key) => gate.refusal(key)));
  for (const { status, code, message, headers } of refusals)
    assert.deepEqual(
      { status, code, message, headers },
      {
        status: 401,
        code: 'invalid_api_key',
        message: 'The API key is not valid.',
        headers: { 'www-authenticate': 'Bearer' },
      },
    );
});

test('garbage and wrong checksums never reach the database', async () => {
  const gate = await openGate({ failures: { per_minute: 100_000 } });
  const key = await gate.newKey();
  gate.db.statements = [];
  for (let index = 0; index < key.length; index++) {
    const changed = key.slice(0, index) + (key[index] === 'x' ? 'y' : 'x') + key.slice(index + 1);
    assert.equal((await gate.refusal(changed)).status, 401);
  }
  for (const garbage of ['sk-gw-', 'sk-proj-abc', "' or 1=1 --", '\u0000', 'x'.repeat(100_000), '__proto__'])
    assert.equal((await gate.refusal(garbage)).status, 401);
  assert.deepEqual(gate.db.statements, []);
});

test('a known key needs no statement, and its caller is set without waiting', async () => {
  const gate = await openGate();
  const key = await gate.newKey();
  gate.db.statements = [];
  await gate.send(key);
  assert.equal(gate.db.statements.length, 1);
  for (let count = 0; count < 100; count++) await gate.send(key);
  assert.equal(gate.db.statements.length, 1);
});

test('many first requests with one key query the database once', async () => {
  const gate = await openGate();
  const key = await gate.newKey();
  const stray = strayKey();
  gate.db.statements = [];
  await Promise.all(Array.from({ length: 50 }, () => gate.send(key)));
  assert.equal(gate.db.statements.length, 1);
  await Promise.all(Array.from({ length: 50 }, () => gate.refusal(stray)));
  assert.equal(gate.db.statements.length, 2);
});

test('an unknown key is not looked up again for five seconds', async () => {
  const gate = await openGate();
  const stray = strayKey();
  for (let count = 0; count < 3; count++) await gate.refusal(stray);
  assert.equal(gate.db.statements.length, 1);
  gate.host.advance(5_000);
  await gate.refusal(stray);
  assert.equal(gate.db.statements.length, 2);
});

test('a revoked key is refused once the revocation is announced', async () => {
  const gate = await openGate();
  const key = await gate.newKey();
  await gate.send(key);
  await gate.command('keys revoke', { key: key.slice(0, 14) });
  assert.equal((await gate.refusal(key)).status, 401);
});

test('a revocation by another process applies at its announcement', async () => {
  const gate = await openGate();
  const key = await gate.newKey();
  await gate.send(key);
  const other = await openGate({}, gate.db);
  await other.command('keys revoke', { key: key.slice(0, 14) });
  assert.equal((await gate.refusal(key)).status, 401);
});

test('a revocation that overtakes a running lookup is kept', async () => {
  const gate = await openGate();
  const key = await gate.newKey();
  let letThrough = () => {};
  gate.db.gate = new Promise((resolve) => {
    letThrough = resolve;
  });
  const first = gate.send(key);
  await gate.db.announce('key', 'the hash of some key');
  letThrough();
  gate.db.gate = undefined;
  await first;
  gate.db.statements = [];
  await gate.send(key);
  assert.equal(gate.db.statements.length, 1, 'what was loaded while an announcement came in is not kept');
});

test('a lost announcement is made up for within a minute, beside a request', async () => {
  const gate = await openGate();
  const key = await gate.newKey();
  await gate.send(key);
  gate.db.announce = async () => {};
  await gate.command('keys revoke', { key: key.slice(0, 14) });
  await gate.send(key);
  gate.host.advance(60_000);
  gate.db.statements = [];
  await gate.send(key);
  assert.equal(gate.db.statements.length, 1);
  let status = 200;
  await eventually(() => {
    gate.refusal(key).then(
      (error) => {
        status = error.status;
      },
      () => {},
    );
    return status === 401;
  });
});

test('a key expires at its time, cached or not', async () => {
  const gate = await openGate();
  const key = await gate.newKey({ expiresAt: new Date(gate.host.clock.now() + 1_000) });
  await gate.send(key);
  gate.host.advance(999);
  await gate.send(key);
  gate.host.advance(1);
  assert.equal((await gate.refusal(key)).status, 401);
});

test('a disabled account is forbidden, and served again when it is enabled', async () => {
  const gate = await openGate();
  const key = await gate.newKey();
  await gate.send(key);
  await gate.command('accounts disable', { name: 'acme' });
  const error = await gate.refusal(key);
  assert.equal(error.status, 403);
  assert.equal(error.message, 'The account of this API key is disabled.');
  await gate.command('accounts enable', { name: 'acme' });
  await gate.send(key);
});

test('while the database is down known keys are served and unknown ones get retry-after', async () => {
  for (const state of ['down', 'failing'] as const) {
    const gate = await openGate();
    const [known, unknown] = [await gate.newKey(), await gate.newKey()];
    await gate.send(known);
    gate.db.state = state;
    await gate.send(known);
    gate.host.advance(120_000);
    await gate.send(known);
    const error = await gate.refusal(unknown);
    assert.equal(error.status, 503);
    assert.equal(error.retryAfterMs, 1_000);
    assert.equal((await gate.refusal('garbage')).status, 401);
    gate.db.state = 'up';
    assert.equal((await gate.send(unknown)).accountId, gate.accountId);
  }
});

test('the key of a changed account is read again before its next use, or used unchanged for a minute while the database does not answer', async () => {
  for (const state of ['down', 'failing'] as const) {
    const gate = await openGate();
    const key = await gate.newKey();
    const { keyId } = await gate.send(key);
    const byId = () => gate.host.get(keyring).callerOf(keyId, '192.0.2.1');
    await byId();
    gate.db.statements = [];
    await gate.db.announce('account', gate.accountId);
    await gate.send(key);
    await byId();
    assert.equal(gate.db.statements.length, 2, 'each way to the key reads it once');
    await gate.send(key);
    await byId();
    assert.equal(gate.db.statements.length, 2);
    gate.db.state = state;
    await gate.db.announce('account', gate.accountId);
    gate.host.advance(59_999);
    await gate.send(key);
    await byId();
    gate.host.advance(1);
    assert.equal((await gate.refusal(key)).status, 503);
    await assert.rejects(byId(), { status: 503 });
    gate.db.state = 'up';
    await gate.send(key);
    await byId();
  }
});

test('a key revoked while its account is read again is refused, even if the database does not answer', async () => {
  const gate = await openGate();
  const key = await gate.newKey();
  await gate.send(key);
  const found = await gate.db.orm.execute(sql`select hash from ${sql.identifier(gate.db.schema)}.keys`);
  const [{ hash }] = (found as unknown as { rows: [{ hash: string }] }).rows;
  let breakOff = () => {};
  gate.db.gate = new Promise((_resolve, reject) => {
    breakOff = () => reject(new Error('connection reset'));
  });
  await gate.db.announce('account', gate.accountId);
  const refused = gate.refusal(key);
  await gate.db.announce('key', hash);
  breakOff();
  assert.equal((await refused).status, 503);
});

test('failed attempts of an address are limited, and valid keys from it are not', async () => {
  const gate = await openGate({ failures: { per_minute: 5 } });
  const [seen, unseen] = [await gate.newKey(), await gate.newKey()];
  await gate.send(seen);
  for (let count = 0; count < 5; count++) assert.equal((await gate.refusal('garbage')).status, 401);
  const error = await gate.refusal('garbage');
  assert.equal(error.status, 429);
  assert.equal(error.retryAfterMs, 60_000);
  const keyless = await gate.refusal({});
  assert.equal(keyless.status, 401);
  assert.match(keyless.message, /An API key is missing/);
  await gate.send(seen);
  await gate.send(unseen);
  assert.equal(
    (await gate.refusal({ headers: { authorization: 'Bearer garbage' }, remoteAddress: '192.0.2.2' })).status,
    401,
  );
  assert.equal(gate.host.lines.length, 1, 'it is said once');
  gate.host.advance(60_000);
  assert.equal((await gate.refusal('garbage')).status, 401);
});

test('an address over the limit has one lookup at a time', async () => {
  const gate = await openGate({ failures: { per_minute: 2 } });
  await gate.refusal('garbage');
  await gate.refusal('garbage');
  gate.db.statements = [];
  const refusals = await Promise.all(Array.from({ length: 100 }, () => gate.refusal(strayKey())));
  assert.ok(refusals.every(({ status }) => status === 429));
  assert.equal(gate.db.statements.length, 1);
});

test('public endpoints need no key, by rule or by operation', async () => {
  const db = await openEmbedded();
  const { part } = await openGate({ public: ['GET /v1/models', 'health'] }, db);
  const handle = () => ({ status: 200, headers: {}, body: '' });
  assert.equal(part.applies!({ method: 'GET', path: '/v1/models', operation: 'models', handle }), false);
  assert.equal(part.applies!({ method: 'GET', path: '/healthz', operation: 'health', handle }), false);
  assert.equal(part.applies!({ method: 'GET', path: '/v1/tasks/:task_id', operation: 'tasks', handle }), true);
  assert.equal(part.applies!({ method: 'POST', path: '/v1/models', operation: 'models' }), true);
});

test('the time of the last use is written in batches and at the end', async () => {
  const gate = await openGate();
  const keys = [await gate.newKey(), await gate.newKey(), await gate.newKey()];
  for (const key of keys) await gate.send(key);
  gate.host.advance(5_000);
  await gate.send(keys[0]!);
  gate.db.statements = [];
  await gate.host.intervals.find(({ name }) => name.includes('last used'))!.work();
  assert.equal(gate.db.statements.length, 1);
  const listed = (await gate.command('keys list')).json as { lastUsedAt: Date | null }[];
  const now = gate.host.clock.now();
  assert.deepEqual(listed.map(({ lastUsedAt }) => lastUsedAt?.getTime()).sort(), [now - 5_000, now - 5_000, now]);
  gate.host.advance(1_000);
  await gate.send(keys[1]!);
  gate.db.state = 'failing';
  await assert.rejects(async () => gate.part.lifecycle!.stop!());
  gate.db.state = 'up';
  await gate.part.lifecycle!.stop!();
  const after = (await gate.command('keys list')).json as { lastUsedAt: Date | null }[];
  assert.ok(after.some(({ lastUsedAt }) => lastUsedAt?.getTime() === now + 1_000));
});

test('no log line, error or table contains the key', async () => {
  const gate = await openGate({ failures: { per_minute: 3 } });
  const key = await gate.newKey();
  await gate.send(key);
  const shown: unknown[] = [];
  const wrong = `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`;
  shown.push(await gate.refusal({ headers: { authorization: `Bearer ${key}`, 'x-api-key': wrong } }));
  for (let count = 0; count < 4; count++) shown.push(await gate.refusal(wrong));
  gate.host.advance(120_000);
  gate.db.state = 'failing';
  await gate.send(key);
  await eventually(() => gate.log().includes('could not be checked again'));
  const stray = strayKey();
  gate.db.state = 'failing';
  shown.push(await gate.refusal(stray));
  gate.db.state = 'up';
  shown.push((await gate.command('keys list')).json, (await gate.command('keys list')).text);
  shown.push((await gate.command('keys revoke', { key: key.slice(0, 14) })).json);
  const { rows } = (await gate.db.orm.execute(`select * from "${gate.db.schema}".keys`)) as unknown as {
    rows: unknown[];
  };
  assert.equal(rows.length, 1);
  const everything = inspect(shown, { depth: 20 }) + gate.log() + inspect(rows);
  assert.ok(gate.host.lines.length >= 2, 'there is something to look through');
  for (const secret of [key, wrong, stray])
    for (const part of [secret, secret.slice(14), secret.slice(6, 49), secret.slice(20, 40)])
      assert.equal(everything.includes(part), false, `${part} was shown`);
});

test('a configured secret must be the one of the existing keys', async () => {
  const db = await openEmbedded();
  const secret = 'a secret that is long enough';
  const gate = await openGate({ secret }, db);
  const key = await gate.newKey();
  await (await openGate({ secret }, db)).send(key);
  await assert.rejects(openGate({ secret: 'another secret, long enough' }, db), /auth\.secret is not the one/);
  await assert.rejects(openGate({}, db), /auth\.secret is not the one/);
  await assert.rejects(setUp(auth, fakeHost(), { secret: 'short' }), /at least 16/);
});

test('without a secret one is generated once, and keys survive a restart', async () => {
  const db = await openEmbedded();
  const key = await (await openGate({}, db)).newKey();
  await (await openGate({ secret: '' }, db)).send(key);
});
