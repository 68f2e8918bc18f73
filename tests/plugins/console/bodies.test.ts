/** Kept bodies in the console's API: for operators alone, with a row of who looked, and recordings that end by themselves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { caller } from './caller.ts';
import { fakeConsole } from './fake-console.ts';
import { clientAccount } from './fakes/world.ts';

const newest = (hall: ReturnType<typeof fakeConsole>, accountId?: string) =>
  hall.world.requests.slice(-20).find((row) => accountId === undefined || row.accountId === accountId)!.id;

test('an operator sees bodies as text, without caching, after an audit row is written', async () => {
  const hall = fakeConsole();
  const told = await caller(hall, 'operator')(`GET /admin/requests/${newest(hall)}/bodies`);
  assert.equal(told.status, 200, told.text);
  assert.equal(told.headers.get('cache-control'), 'no-store');
  assert.match(told.headers.get('content-type')!, /^application\/json/);
  assert.match(told.json.kept.request.text, /<b>What<\/b>/);
  assert.deepEqual([told.json.kept.answer.bytes, told.json.kept.answer.leftOut], [70_000, 4_464]);
  const [row] = (await caller(hall, 'operator')('GET /admin/audit?action=request.bodies')).json.rows;
  assert.deepEqual([row.action, row.subject, row.result], ['request.bodies', newest(hall), 'shown']);
});

test('a request without recorded bodies has none, and looking at it is audited too', async () => {
  const hall = fakeConsole();
  const ask = caller(hall, 'operator');
  const told = await ask('GET /admin/requests/unknown/bodies');
  assert.deepEqual([told.status, told.json], [200, { kept: null }]);
  assert.equal((await ask('GET /admin/audit?action=request.bodies')).json.rows[0].result, 'none');
});

test('only operators see bodies, and refused attempts leave no row', async () => {
  const hall = fakeConsole();
  const own = newest(hall, clientAccount);
  for (const [who, status] of [
    ['nobody', 401],
    ['client', 403],
    ['auditor', 403],
  ] as const) {
    const ask = caller(hall, who);
    assert.equal((await ask(`GET /admin/requests/${own}/bodies`)).status, status, who);
    assert.equal((await ask('GET /admin/recordings')).status, status, who);
    assert.equal((await ask('POST /admin/recordings', { model: 'm', minutes: 1, reason: 'r' })).status, status, who);
    assert.equal((await ask(`GET /usage/${own}`)).text.includes('fox'), false);
  }
  assert.deepEqual((await caller(hall, 'operator')('GET /admin/audit?action=request.bodies')).json.rows, []);
});

test('bodies are deleted at once, of a request and of an account, with a reason', async () => {
  const hall = fakeConsole();
  const ask = caller(hall, 'operator');
  const id = newest(hall, clientAccount);
  assert.equal((await ask(`DELETE /admin/requests/${id}/bodies`, {})).status, 400);
  const reason = { reason: 'the client asked' };
  assert.deepEqual((await ask(`DELETE /admin/requests/${id}/bodies`, reason)).json, { forgotten: 1 });
  assert.equal((await ask(`GET /admin/requests/${id}/bodies`)).json.kept, null);
  assert.ok((await ask(`DELETE /admin/accounts/${clientAccount}/bodies`, reason)).json.forgotten > 0);
  assert.deepEqual((await ask(`DELETE /admin/accounts/${clientAccount}/bodies`, reason)).json, { forgotten: 0 });
  assert.equal((await ask('GET /admin/audit?action=bodies.forget')).json.rows[0].reason, 'the client asked');
});

test('a recording is begun for a while with a reason, listed, and ended', async () => {
  const hall = fakeConsole();
  const ask = caller(hall, 'operator');
  const begun = await ask('POST /admin/recordings', { accountId: clientAccount, minutes: 60, reason: 'a complaint' });
  assert.equal(begun.status, 200, begun.text);
  assert.equal(Date.parse(begun.json.until) - Date.parse(begun.json.startedAt), 3_600_000);
  const listed = (await ask('GET /admin/recordings')).json;
  assert.deepEqual([listed.keeps, listed.rows], [true, [begun.json]]);
  assert.equal((await ask('GET /admin/audit?action=recording.begin')).json.rows[0].reason, '60 minutes: a complaint');
  assert.equal((await ask(`DELETE /admin/recordings/${begun.json.id}`, { reason: 'done' })).status, 200);
  assert.equal((await ask(`DELETE /admin/recordings/${begun.json.id}`, { reason: 'done' })).status, 404);
  for (const wrong of [
    { minutes: 60, reason: 'r' },
    { model: 'm', minutes: 0, reason: 'r' },
    { model: 'm', minutes: 10_081, reason: 'r' },
    { model: 'm', minutes: 60 },
    { accountId: 'unknown', minutes: 60, reason: 'r' },
  ])
    assert.ok([400, 404].includes((await ask('POST /admin/recordings', wrong)).status), JSON.stringify(wrong));
});
