/**
 * Files and batches in the console of a whole gateway: a client's own are listed, downloaded, checked, ordered, cancelled and
 * deleted; operators see those of all accounts, and cancel and delete with a reason.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { until } from '../../helpers/until.ts';
import type { Browser } from './browser.ts';
import { clientOf, operatorOf, startDemo, type TestConsole } from './start-console.ts';

let testbed: TestConsole;
let boss: Browser;
let ada: Browser;
let eve: Browser;
let accountId: string;
let key: string;
before(async () => {
  testbed = await startDemo('demo');
  boss = await operatorOf(testbed);
  ada = await clientOf(testbed, 'ada@example.test');
  eve = await clientOf(testbed, 'eve@example.test');
  accountId = (await ada.send('/me')).json.account.id;
  const headers = { 'idempotency-key': 'credit-1' };
  await boss.send(`/admin/accounts/${accountId}/credit`, { body: { amount: '20', reason: 'a test' }, headers });
  const terms = { name: 'batches', models: null, addresses: null, limits: null, cap: null, expiresAt: null };
  key = (await ada.send('/keys', { body: terms })).json.key;
});
after(() => testbed.stop());

const line = (customId: string, more: object = {}) =>
  JSON.stringify({
    custom_id: customId,
    method: 'POST',
    url: '/v1/chat/completions',
    body: { model: 'gpt-5.4', max_tokens: 50, messages: [{ role: 'user', content: `Say ${customId}` }] },
    ...more,
  });

async function upload(text: string, name = 'in put.jsonl'): Promise<string> {
  const form = new FormData();
  form.set('purpose', 'batch');
  form.set('file', new Blob([text]), name);
  const answer = await fetch(`${testbed.origin}/v1/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: form,
  });
  const { id } = (await answer.json()) as { id: string };
  assert.match(id, /^file-/);
  return id;
}

async function order(file: string): Promise<string> {
  const answer = await fetch(`${testbed.origin}/v1/batches`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ input_file_id: file, endpoint: '/v1/chat/completions', completion_window: '24h' }),
  });
  return ((await answer.json()) as { id: string }).id;
}

async function ended(id: string) {
  return until('the batch has ended', async () => {
    const { json } = await ada.send(`/batches/${id}`);
    return json.state === 'ended' && json;
  });
}

test('a file is listed, downloaded byte by byte, and deleted, only by its own account', async () => {
  const text = `${line('one')}\n`.repeat(3_000);
  const id = await upload(text);
  const { rows } = (await ada.send('/files')).json;
  assert.deepEqual(
    [rows[0].id, rows[0].name, rows[0].purpose, rows[0].bytes],
    [id, 'in put.jsonl', 'batch', Buffer.byteLength(text)],
  );
  assert.ok(Date.parse(rows[0].expiresAt) > Date.now() + 3_600_000);
  const content = await ada.send(`/files/${id}/content`);
  assert.equal(content.status, 200);
  assert.match(content.headers.get('content-disposition')!, /^attachment/);
  assert.equal(content.text, text);
  for (const path of [`/files/${id}/content`, '/files/file-00000000000000000000000000000000/content'])
    assert.equal((await eve.send(path)).status, 404, path);
  assert.equal((await eve.send(`/files/${id}`, { method: 'DELETE' })).status, 404);
  assert.deepEqual((await eve.send('/files')).json.rows, []);
  assert.equal((await ada.send(`/files/${id}`, { method: 'DELETE' })).status, 200);
  assert.deepEqual((await ada.send('/files')).json.rows, []);
  assert.equal((await ada.send(`/files/${id}/content`)).status, 404);
});

test('lines are checked before anything starts', async () => {
  const good = await upload([line('a'), line('b')].join('\n'));
  const body = { file: good, endpoint: '/v1/chat/completions' };
  assert.deepEqual((await ada.send('/batches/check', { body })).json, { lines: 2, errors: [] });
  const bad = await upload([line('a'), 'no json', line('a'), line('c', { url: '/v1/embeddings' })].join('\n'));
  const { errors } = (await ada.send('/batches/check', { body: { ...body, file: bad } })).json;
  assert.deepEqual(
    errors.map(({ line, code }: { line: number; code: string }) => [line, code]),
    [
      [2, 'invalid_json_line'],
      [3, 'duplicate_custom_id'],
      [4, 'invalid_url'],
    ],
  );
  assert.equal((await eve.send('/batches/check', { body })).status, 404);
  const wrong = await ada.send('/batches/check', { body: { file: good, endpoint: '/v1/images' } });
  assert.deepEqual([wrong.status, wrong.json.error.field], [400, 'endpoint']);
  assert.match(wrong.json.error.message, /must be one of: \/v1\//);
  assert.deepEqual((await ada.send('/batches')).json.rows, []);
});

test('a batch shows its counts, its results and its cost in the ledger', async () => {
  const bad = line('bad', { body: { model: 'no-such-model', messages: [] } });
  const id = await order(await upload([line('one'), line('two'), bad, line('three')].join('\n')));
  const batch = await ended(id);
  assert.deepEqual(
    [batch.outcome, batch.total, batch.succeeded, batch.errored, batch.cancelled, batch.expired],
    ['completed', 4, 3, 1, 0, 0],
  );
  const results = (await ada.send(`/files/${batch.outputFile}/content`)).text.trimEnd().split('\n');
  assert.equal(results.length, 3);
  const requestIds = results.map((text: string) => JSON.parse(text).response.request_id);
  let sum = 0n;
  for (const requestId of requestIds) {
    const charge = await until('the charge is written', async () => {
      const { charge: written } = (await ada.send(`/usage/${requestId}`)).json;
      return written ?? undefined;
    });
    sum += nano(charge.cost);
  }
  assert.ok(sum > 0n);
  assert.equal(nano(batch.cost), sum);
  assert.equal((await ada.send(`/files/${batch.errorFile}/content`)).text.trimEnd().split('\n').length, 1);
  assert.equal((await ada.send('/batches')).json.rows[0].id, id);
  assert.deepEqual((await eve.send('/batches')).json.rows, []);
  assert.equal((await eve.send(`/batches/${id}`)).status, 404);
});

test('a batch whose input has faults names them, and costs nothing', async () => {
  const batch = await ended(await order(await upload('no json')));
  assert.deepEqual([batch.outcome, batch.cost, batch.errors[0].line], ['failed', '0.00', 1]);
});

test('a page limit of batches of 0 or above 100 is refused', async () => {
  for (const limit of ['0', '101', '1.5', 'all']) {
    const answer = await fetch(`${testbed.origin}/v1/batches?limit=${limit}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const { error } = (await answer.json()) as { error: { message: string; param: string } };
    assert.deepEqual(
      [answer.status, error.param, error.message],
      [400, 'limit', '"limit" is a whole number from 1 to 100.'],
    );
  }
});

test('a batch is cancelled once, by its own account', async () => {
  const id = await order(await upload(Array.from({ length: 400 }, (_, index) => line(`${index}`)).join('\n')));
  assert.equal((await eve.send(`/batches/${id}/cancel`, { body: {} })).status, 404);
  assert.equal((await ada.send(`/batches/${id}/cancel`, { body: {} })).status, 200);
  const batch = await ended(id);
  assert.equal(batch.outcome, 'cancelled');
  assert.equal(batch.succeeded + batch.errored + batch.cancelled, batch.total);
  assert.notEqual(batch.cancelAt, null);
});

test('operators see files of all accounts, and delete one with a reason that the audit log keeps', async () => {
  const [one, other] = [await upload('of ada'), await upload('of ada too')];
  const { rows } = (await boss.send('/admin/files?limit=2')).json;
  assert.deepEqual(
    rows.map((row: { id: string; accountId: string; bytes: number }) => [row.id, row.accountId, row.bytes]),
    [
      [other, accountId, 10],
      [one, accountId, 6],
    ],
  );
  const { next } = (await boss.send('/admin/files?limit=1')).json;
  assert.equal((await boss.send(`/admin/files?limit=1&after=${next}`)).json.rows[0].id, one);
  assert.deepEqual((await boss.send('/admin/files?accountId=nothing')).json.rows, []);
  assert.deepEqual((await boss.send('/admin/files?purpose=vision')).json.rows, []);
  const file = (await boss.send(`/admin/files/${one}`)).json;
  assert.deepEqual([file.name, file.purpose], ['in put.jsonl', 'batch']);
  assert.ok(file.accountBytes >= 16);
  const body = { reason: 'personal data' };
  assert.equal((await ada.send(`/admin/files/${one}`, { method: 'DELETE', body })).status, 403);
  assert.equal((await boss.send(`/admin/files/${one}`, { method: 'DELETE', body: {} })).status, 400);
  assert.equal((await boss.send(`/admin/files/${one}`, { method: 'DELETE', body })).status, 200);
  assert.equal((await boss.send(`/admin/files/${one}`, { method: 'DELETE', body })).status, 404);
  assert.equal((await boss.send(`/admin/files/${one}`)).status, 404);
  assert.equal((await ada.send(`/files/${one}/content`)).status, 404);
  const { rows: audit } = (await boss.send(`/admin/audit?subject=${one}`)).json;
  assert.deepEqual(
    audit.map((row: Record<string, string>) => [row['action'], row['reason'], row['result']]),
    [
      ['file.delete', 'personal data', 'not_found'],
      ['file.delete', 'personal data', 'done'],
    ],
  );
});

test('operators see batches of all accounts with their details, and cancel one with a reason', async () => {
  const id = await order(await upload(Array.from({ length: 400 }, (_, index) => line(`${index}`)).join('\n')));
  const open = (await boss.send('/admin/batches?limit=1')).json.rows[0];
  assert.deepEqual(
    [open.id, open.accountId, open.outcome, open.cost, open.succeeded],
    [id, accountId, null, null, null],
  );
  assert.equal((await boss.send('/admin/batches/unknown/cancel', { body: { reason: 'none' } })).status, 404);
  assert.equal((await ada.send(`/admin/batches/${id}/cancel`, { body: { reason: 'mine' } })).status, 403);
  assert.equal((await boss.send(`/admin/batches/${id}/cancel`, { body: {} })).status, 400);
  assert.equal((await boss.send(`/admin/batches/${id}/cancel`, { body: { reason: 'too costly' } })).status, 200);
  const batch = await ended(id);
  const timeline = (await boss.send(`/admin/batches/${id}`)).json;
  assert.deepEqual(timeline, { ...batch, accountId, vendor: null });
  const { rows } = (await boss.send('/admin/batches?state=cancelled&endpoint=/v1/chat/completions')).json;
  assert.deepEqual(
    [rows[0].id, rows[0].cost, rows[0].succeeded, rows[0].cancelled],
    [id, batch.cost, batch.succeeded, batch.cancelled],
  );
  assert.equal((await boss.send('/admin/batches?state=failed')).json.rows[0].outcome, 'failed');
  assert.deepEqual((await boss.send('/admin/batches?endpoint=/v1/embeddings')).json.rows, []);
  const [audit] = (await boss.send(`/admin/audit?subject=${id}`)).json.rows;
  assert.deepEqual([audit.action, audit.reason, audit.result], ['batch.cancel', 'too costly', 'done']);
});

const nano = (usd: string) => {
  const [whole, fraction = ''] = usd.split('.');
  return BigInt(whole! + fraction.padEnd(9, '0'));
};
