/** Batches that a vendor of chat completions makes itself: made, refused, cancelled, expired, and paid to the nano-dollar. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { accounts } from '../../../../plugins/common/domain/accounts.ts';
import { batchAdmin } from '../../../../plugins/common/domain/admin/batches.ts';
import { fileAdmin } from '../../../../plugins/common/domain/admin/files.ts';
import { ledgerQueries } from '../../../../plugins/common/domain/admin/ledger.ts';
import { requestQueries } from '../../../../plugins/common/domain/admin/requests.ts';
import { database } from '../../../../plugins/common/domain/database.ts';
import { pool } from '../../../../plugins/common/domain/ledger.ts';
import { until } from '../../../helpers/until.ts';
import type { Trouble } from './stand-in.ts';
import { callCost, chatLine, lineCost, lineOwn, startTestbed, type Testbed } from './world.ts';

let testbed: Testbed;
before(async () => {
  testbed = await startTestbed();
});
after(() => testbed.stop());

test('a batch is one order at the vendor, and each line a call at the batch price', async () => {
  const world = await testbed.open();
  const id = await world.client.order([
    chatLine('one'),
    chatLine('two', '[refused]'),
    chatLine('three'),
    chatLine('four'),
  ]);
  const batch = await world.client.ended(id);
  assert.deepEqual(batch.request_counts, { total: 4, completed: 3, failed: 1 });
  assert.equal(world.vendor.steps.filter((step) => step === 'order').length, 1);
  const [first] = [...world.vendor.batches.values()];
  assert.equal(first!.name, id);
  const one = batch.lines.get('one')!.response!;
  assert.equal(one.status_code, 200);
  assert.match(JSON.stringify(one.body), /"answer b[0-9a-f]{24}-1"/);
  const two = batch.lines.get('two')!.response!;
  assert.equal(two.status_code, 400);
  assert.match(JSON.stringify(two.body), /This is not allowed\./);
  const charges = await world.settled(3n * lineCost, 3);
  assert.ok(charges.every(({ detail }) => detail.estimated !== true));
  await until('what the vendor has kept is deleted', () => world.vendor.files.size === 0);
  // The vendor is asked no more.
  const { length } = world.vendor.steps;
  await pause(500);
  assert.equal(world.vendor.steps.length, length);
  // Each line is one call in the log of requests, under the id that its result names.
  const charge = await world.gateway.find(ledgerQueries)!.charge(one.request_id, world.account.id);
  assert.deepEqual([charge!.cost, charge!.ownCost], [lineCost, lineOwn]);
  const { usage, ...row } = await world.request(one.request_id);
  assert.deepEqual(row, { status: 200, outcome: 'complete', provider: 'vendor' });
  assert.deepEqual(usage, { input: 10, output: 5 });
  assert.deepEqual(
    charge!.attempts.map(({ status, result }) => ({ status, result })),
    [{ status: 200, result: 'answered' }],
  );
  assert.equal((await world.request(two.request_id)).status, 400);
  const refused = await world.gateway.find(requestQueries)!.find(two.request_id, undefined);
  assert.deepEqual(refused!.vendorWords, [{ attempt: 1, message: 'This is not allowed.', requestId: null }]);
});

test('a cancelled batch is cancelled at its vendor, and its finished lines are paid', async () => {
  const world = await testbed.open();
  world.vendor.pollsUntilEnd = Number.POSITIVE_INFINITY;
  const id = await world.client.order([chatLine('one'), chatLine('two', '[late]'), chatLine('three', '[left out]')]);
  while (!world.vendor.steps.includes('get')) await pause(20);
  assert.ok((await world.held()) > 3n * lineCost, 'the money of all lines is set aside');
  const admin = world.gateway.find(batchAdmin)!;
  const before = (await admin.findAny(id))!;
  assert.equal(before.batch.held, await world.held());
  const { orderedAt, credential, ...standing } = before.vendor!;
  assert.ok(Math.abs(Date.now() - orderedAt!) < 60_000 && credential !== undefined);
  assert.deepEqual(standing, {
    ...{ provider: 'vendor', model: 'real', asked: 'm', protocol: 'chat', state: 'running', lines: 3 },
    ...{ vendorId: [...world.vendor.batches.keys()][0], cancelSent: false, result: undefined },
  });
  await world.client.cancel(id);
  const batch = await world.client.ended(id);
  assert.equal(batch.status, 'cancelled');
  assert.equal(world.vendor.steps.filter((step) => step === 'cancel').length, 1);
  assert.equal(batch.lines.get('one')!.response!.status_code, 200);
  assert.equal(batch.lines.get('two')!.error!.code, 'batch_cancelled');
  assert.equal(batch.lines.get('three')!.error!.code, 'batch_cancelled');
  await world.settled(lineCost, 1);
  const { vendor } = (await admin.findAny(id))!;
  assert.deepEqual([vendor!.state, vendor!.cancelSent, vendor!.result], ['ended', true, 'cancelled']);
  const { rows } = await admin.listAll({ accountId: world.account.id }, { limit: 5 });
  assert.deepEqual(
    rows.map((row) => [row.id, row.provider, row.cost, row.counts?.cancelled]),
    [[id, 'vendor', lineCost, 2]],
  );
});

test('a batch that expires here, or at its vendor, has its finished lines, and names the others', async () => {
  const world = await testbed.open();
  const lines = [chatLine('one'), chatLine('two', '[late]')];
  world.vendor.endsAs = 'expired';
  const atVendor = await world.client.ended(await world.client.order(lines));
  assert.equal(atVendor.status, 'expired');
  assert.equal(atVendor.lines.get('two')!.error!.code, 'batch_expired');
  assert.ok(!world.vendor.steps.includes('cancel'));
  world.vendor.pollsUntilEnd = Number.POSITIVE_INFINITY;
  world.vendor.steps.length = 0;
  const id = await world.client.order(lines);
  while (!world.vendor.steps.includes('get')) await pause(20);
  await world.expire(id);
  const here = await world.client.ended(id);
  assert.equal(here.status, 'expired');
  assert.ok(world.vendor.steps.includes('cancel'));
  assert.equal(here.lines.get('one')!.response!.status_code, 200);
  assert.equal(here.lines.get('two')!.error!.code, 'batch_expired');
  await world.settled(2n * lineCost, 2);
});

test('a line that the results omit has an unknown outcome, and its client does not pay', async () => {
  const world = await testbed.open();
  const batch = await world.client.ended(await world.client.order([chatLine('one'), chatLine('two', '[left out]')]));
  assert.match(JSON.stringify(batch.lines.get('two')), /outcome_unknown/);
  await world.settled(lineCost, 1);
});

test('a client that deletes its input while the vendor works gets its answers, and pays for them', async () => {
  const world = await testbed.open();
  world.vendor.pollsUntilEnd = Number.POSITIVE_INFINITY;
  const id = await world.client.order([chatLine('one'), chatLine('two')]);
  while (!world.vendor.steps.includes('get')) await pause(20);
  const { input_file_id: file } = await world.client.batch(id);
  await world.client.call('DELETE', `/v1/files/${file}`);
  world.vendor.pollsUntilEnd = 0;
  const batch = await world.client.ended(id);
  assert.deepEqual(batch.request_counts, { total: 2, completed: 2, failed: 0 });
  await world.settled(2n * lineCost, 2);
});

test('errors of the vendor at each call delay a batch, and repeat nothing', async () => {
  const world = await testbed.open();
  const kinds: Trouble[] = [
    { status: 500 },
    'before',
    { status: 429, headers: { 'retry-after': '0' } },
    'after',
    { status: 503 },
  ];
  const seen = new Map<string, number>();
  world.vendor.trouble = (step) => {
    const times = seen.get(step) ?? 0;
    seen.set(step, times + 1);
    return step === 'delete file' ? undefined : kinds[times];
  };
  world.vendor.pollsUntilEnd = 4;
  const batch = await world.client.ended(
    await world.client.order([chatLine('one'), chatLine('two'), chatLine('three')]),
  );
  assert.deepEqual(batch.request_counts, { total: 3, completed: 3, failed: 0 });
  for (const step of ['upload', 'list files', 'order', 'list', 'get', 'results'])
    assert.ok((seen.get(step) ?? 0) > 1, `${step} was repeated`);
  assert.equal(world.vendor.batches.size, 1);
  await world.settled(3n * lineCost, 3);
});

test('a batch that a vendor refuses is executed call by call, and no money stays authorized', async () => {
  const world = await testbed.open();
  world.vendor.trouble = (step) => (step === 'order' ? { status: 400 } : undefined);
  const refused = await world.client.ended(await world.client.order([chatLine('one')]));
  assert.equal(refused.request_counts.completed, 1);
  world.vendor.trouble = () => undefined;
  world.vendor.endsAs = 'failed';
  const failed = await world.client.ended(await world.client.order([chatLine('one')]));
  assert.equal(failed.request_counts.completed, 1);
  // A model of which each line is to be a call.
  const plain = await world.client.ended(await world.client.order([chatLine('one', 'one', 'plain')]));
  assert.equal(plain.request_counts.completed, 1);
  assert.equal(world.vendor.steps.filter((step) => step === 'call').length, 3);
  assert.equal(world.vendor.steps.filter((step) => step === 'order').length, 2);
  await world.settled(3n * callCost, 3);
});

test("lines of two models, and lines that are refused here, are not in the vendor's batch", async () => {
  const world = await testbed.open();
  const two = await world.client.ended(await world.client.order([chatLine('one'), chatLine('two', 'two', 'plain')]));
  assert.equal(two.request_counts.completed, 2);
  assert.ok(!world.vendor.steps.includes('order'));
  const lines = [
    chatLine('one'),
    JSON.stringify({ ...JSON.parse(chatLine('two')), body: { model: 'm', messages: 'no' } }),
  ];
  const wrong = await world.client.ended(await world.client.order(lines));
  assert.equal(wrong.lines.get('two')!.response!.status_code, 400);
  assert.equal([...world.vendor.batches.values()][0]!.lines.length, 1);
  await world.settled(2n * callCost + lineCost, 3);
});

test('lines that the balance does not cover are not ordered, and the account is not overdrawn', async () => {
  const world = await testbed.open('0.0003');
  const id = await world.client.order(Array.from({ length: 8 }, (_, index) => chatLine(`line-${index}`)));
  while (!world.vendor.steps.includes('results')) await pause(20);
  const [ordered] = [...world.vendor.batches.values()];
  assert.ok(ordered!.lines.length > 0 && ordered!.lines.length < 8, `${ordered!.lines.length} lines are ordered`);
  while ((await world.client.batch(id)).request_counts.completed < ordered!.lines.length) await pause(20);
  await world.client.cancel(id);
  const batch = await world.client.ended(id);
  assert.equal(batch.lines.size, 8);
  assert.ok((await world.balance()) >= 0n);
  const calls = world.vendor.steps.filter((step) => step === 'call').length;
  await world.settled(BigInt(world.vendor.made) * lineCost + BigInt(calls) * callCost);
});

test('an account without money orders no batch by any protocol, and nothing of the order is kept', async () => {
  const world = await testbed.open('0.00015');
  const inputFile = await world.client.upload([chatLine('one')]);
  const { gateway, account } = world;
  await gateway.find(pool)!.debit(account.id, await world.balance(), { reason: 'test', reference: account.id });
  const { key } = await gateway.find(accounts)!.createKey(account.id, { name: 'poor' });
  const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
  const orders = {
    '/v1/batches': { input_file_id: inputFile, endpoint: '/v1/chat/completions', completion_window: '24h' },
    '/v1/messages/batches': {
      requests: [
        { custom_id: 'a', params: { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] } },
      ],
    },
    '/v1beta/models/m:batchGenerateContent': {
      batch: { displayName: 'b', inputConfig: { requests: { requests: [{ request: { contents } }] } } },
    },
  };
  for (const [path, order] of Object.entries(orders)) {
    const answer = await fetch(`${world.running.origin}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(order),
    });
    assert.equal(answer.status, 402, `${path}: ${await answer.text()}`);
  }
  const page = await gateway.find(batchAdmin)!.list(account.id, { limit: 10 });
  assert.deepEqual(page.rows, []);
  const files = (await (await world.client.call('GET', '/v1/files')).json()) as { data: { id: string }[] };
  assert.deepEqual(
    files.data.map(({ id }) => id),
    [inputFile],
  );
});

test('an order whose first lines the balance does not cover is refused by any protocol with the needed amount', async () => {
  const world = await testbed.open('0.0002');
  const { key } = await world.gateway.find(accounts)!.createKey(world.account.id, { name: 'poor' });
  const wrong = JSON.stringify({ ...JSON.parse(chatLine('no')), body: { model: 'none', messages: [] } });
  const inputFile = await world.client.upload([wrong, 'no line', ...['one', 'two', 'three'].map((id) => chatLine(id))]);
  const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
  const one = { request: { contents, generationConfig: { maxOutputTokens: 100 } } };
  const params = { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] };
  const orders = {
    '/v1/batches': { input_file_id: inputFile, endpoint: '/v1/chat/completions', completion_window: '24h' },
    '/v1/messages/batches': { requests: ['a', 'b'].map((id) => ({ custom_id: id, params })) },
    '/v1beta/models/m:batchGenerateContent': {
      batch: { displayName: 'b', inputConfig: { requests: { requests: [one, one] } } },
    },
  };
  const before = await world.gateway.find(fileAdmin)!.storedBytes(world.account.id);
  for (const [path, order] of Object.entries(orders)) {
    const answer = await fetch(`${world.running.origin}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(order),
    });
    const text = await answer.text();
    assert.equal(answer.status, 402, `${path}: ${text}`);
    assert.match(text, /The first 2 requests of this batch need 0\.000\d+ USD at most/);
  }
  assert.deepEqual((await world.gateway.find(batchAdmin)!.list(world.account.id, { limit: 10 })).rows, []);
  assert.equal(world.vendor.steps.length, 0);
  await world.settled(0n, 0);
  const { orm, schema } = world.gateway.find(database)!;
  const spaces = await orm.execute(
    sql`select 1 from ${sql.identifier(schema)}.files where account_id = ${world.account.id} and id like 'space-%'`,
  );
  assert.equal([...(spaces as unknown as Iterable<unknown>)].length, 0);
  assert.ok(before > 0);
});

test('lines of a batch count as bytes of the account while it is open, and its row until it is deleted', async () => {
  const world = await testbed.open();
  const stored = () => world.gateway.find(fileAdmin)!.storedBytes(world.account.id);
  const input = [chatLine('one'), chatLine('two'), chatLine('three')];
  const inputFile = await world.client.upload(input);
  const before = await stored();
  assert.equal(before, Buffer.byteLength(input.join('\n')));
  world.vendor.trouble = (step) => (step === 'results' ? { status: 500 } : undefined);
  const order = { input_file_id: inputFile, endpoint: '/v1/chat/completions', completion_window: '24h' };
  const { id } = (await (await world.client.call('POST', '/v1/batches', order)).json()) as { id: string };
  await until('its lines are counted', async () => (await stored()) - before > 3 * 400 + 1_000 || undefined);
  world.vendor.trouble = () => undefined;
  const batch = await world.client.ended(id);
  const files = await world.client.call('GET', '/v1/files');
  const { data } = (await files.json()) as { data: { bytes: number }[] };
  const ofFiles = data.reduce((sum, { bytes }) => sum + bytes, 0);
  await until('its row alone is counted', async () => {
    const left = (await stored()) - ofFiles;
    return (left > 1_000 && left < 1_200) || undefined;
  });
  assert.equal(batch.lines.size, 3);
  await world.settled(3n * lineCost, 3);
});

test('a line that a vendor refused in its batch is not served by another model, and costs nothing', async () => {
  const world = await testbed.open();
  const lines = [chatLine('one', 'one', 'served'), chatLine('two', '[refused] [long]', 'served')];
  const batch = await world.client.ended(await world.client.order(lines));
  assert.deepEqual(batch.request_counts, { total: 2, completed: 1, failed: 1 });
  const [one, two] = ['one', 'two'].map((id) => batch.lines.get(id)!.response!);
  assert.deepEqual([one!.status_code, two!.status_code], [200, 400]);
  assert.match(JSON.stringify(two!.body), /context_length_exceeded/);
  const { model, timeline } = await world.modelOf(two!.request_id);
  assert.deepEqual([model, timeline.includes('large')], ['served', false]);
  assert.equal(world.vendor.steps.filter((step) => step === 'call').length, 0);
  await world.settled(lineCost, 1);
});

test('a line with an impossible reported usage is charged by its estimate', async () => {
  const world = await testbed.open();
  const id = await world.client.order([chatLine('one'), chatLine('two', '[lies]')]);
  await world.client.ended(id);
  await world.checkLies();
});
