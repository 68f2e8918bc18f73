/** Kept bodies in the console's API: for operators alone, with a row of who looked, and recordings that end by themselves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { caller } from './caller.ts';
import { fakeConsole } from './fake-console.ts';
import { clientAccount } from './fakes/world.ts';

const newest = (services: ReturnType<typeof fakeConsole>, accountId?: string) =>
  services.world.requests.slice(-20).find((row) => accountId === undefined || row.accountId === accountId)!.id;

test('an operator sees bodies as text, without caching, after an audit row is written', async () => {
  const services = fakeConsole();
  const reply = await caller(services, 'operator')(`GET /admin/requests/${newest(services)}/bodies`);
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.headers.get('cache-control'), 'no-store');
  assert.match(reply.headers.get('content-type')!, /^application\/json/);
  assert.match(reply.json.kept.request.text, /<b>What<\/b>/);
  assert.deepEqual([reply.json.kept.answer.bytes, reply.json.kept.answer.leftOut], [70_000, 4_464]);
  const [row] = (await caller(services, 'operator')('GET /admin/audit?action=request.bodies')).json.rows;
  assert.deepEqual([row.action, row.subject, row.result], ['request.bodies', newest(services), 'shown']);
});

test('a request without recorded bodies has none, and reading them is audited too', async () => {
  const services = fakeConsole();
  const send = caller(services, 'operator');
  const reply = await send('GET /admin/requests/unknown/bodies');
  assert.deepEqual([reply.status, reply.json], [200, { kept: null }]);
  assert.equal((await send('GET /admin/audit?action=request.bodies')).json.rows[0].result, 'none');
});

test('only operators see bodies, and refused attempts leave no row', async () => {
  const services = fakeConsole();
  const own = newest(services, clientAccount);
  for (const [who, status] of [
    ['anonymous', 401],
    ['client', 403],
    ['auditor', 403],
  ] as const) {
    const send = caller(services, who);
    assert.equal((await send(`GET /admin/requests/${own}/bodies`)).status, status, who);
    assert.equal((await send('GET /admin/recordings')).status, status, who);
    assert.equal((await send('POST /admin/recordings', { model: 'm', minutes: 1, reason: 'r' })).status, status, who);
    assert.equal((await send(`GET /usage/${own}`)).text.includes('fox'), false);
  }
  assert.deepEqual((await caller(services, 'operator')('GET /admin/audit?action=request.bodies')).json.rows, []);
});

test('bodies are deleted at once, of a request and of an account, with a reason', async () => {
  const services = fakeConsole();
  const send = caller(services, 'operator');
  const id = newest(services, clientAccount);
  assert.equal((await send(`DELETE /admin/requests/${id}/bodies`, {})).status, 400);
  const reason = { reason: 'the client asked' };
  assert.deepEqual((await send(`DELETE /admin/requests/${id}/bodies`, reason)).json, { forgotten: 1 });
  assert.equal((await send(`GET /admin/requests/${id}/bodies`)).json.kept, null);
  assert.ok((await send(`DELETE /admin/accounts/${clientAccount}/bodies`, reason)).json.forgotten > 0);
  assert.deepEqual((await send(`DELETE /admin/accounts/${clientAccount}/bodies`, reason)).json, { forgotten: 0 });
  assert.equal((await send('GET /admin/audit?action=bodies.forget')).json.rows[0].reason, 'the client asked');
});

test('a recording is begun for a time with a reason, listed, and ended', async () => {
  const services = fakeConsole();
  const send = caller(services, 'operator');
  const begun = await send('POST /admin/recordings', { accountId: clientAccount, minutes: 60, reason: 'a complaint' });
  assert.equal(begun.status, 200, begun.text);
  assert.equal(Date.parse(begun.json.until) - Date.parse(begun.json.startedAt), 3_600_000);
  const listed = (await send('GET /admin/recordings')).json;
  assert.deepEqual([listed.keeps, listed.rows], [true, [begun.json]]);
  assert.equal((await send('GET /admin/audit?action=recording.begin')).json.rows[0].reason, '60 minutes: a complaint');
  assert.equal((await send(`DELETE /admin/recordings/${begun.json.id}`, { reason: 'done' })).status, 200);
  assert.equal((await send(`DELETE /admin/recordings/${begun.json.id}`, { reason: 'done' })).status, 404);
  for (const wrong of [
    { minutes: 60, reason: 'r' },
    { model: 'm', minutes: 0, reason: 'r' },
    { model: 'm', minutes: 10_081, reason: 'r' },
    { model: 'm', minutes: 60 },
    { accountId: 'unknown', minutes: 60, reason: 'r' },
  ])
    assert.ok([400, 404].includes((await send('POST /admin/recordings', wrong)).status), JSON.stringify(wrong));
});

test('a client reads the body of an own request to make it again, and nothing else of the recording', async () => {
  const services = fakeConsole();
  const send = caller(services, 'client');
  const own = newest(services, clientAccount);
  assert.equal((await send(`GET /usage/${own}`)).json.bodyKept, true);
  const { json, text } = await send(`GET /usage/${own}/body`);
  assert.match(json.request.text, /<b>What<\/b>/);
  assert.deepEqual([Object.keys(json), text.includes('fox')], [['request'], false]);
  const other = services.world.requests.find(({ accountId }) => accountId !== clientAccount)!.id;
  assert.equal((await send(`GET /usage/${other}/body`)).status, 404);
  assert.equal((await caller(services, 'anonymous')(`GET /usage/${own}/body`)).status, 401);
});
