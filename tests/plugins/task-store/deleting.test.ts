/** DELETE of tasks through a whole gateway: finished ones go with their files, their money stays; and how an order says where to ask. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { database } from '../../../plugins/common/domain/database.ts';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { until } from '../../helpers/until.ts';
import { clientOf, ended, mediaGateway } from './clients.ts';

const { vendor, gateway, alice } = await mediaGateway(
  (origin) => `
providers:
  studio:
    keys: vendor-key
    speaks: { ark-videos: "${origin}/api/v3", ark-images: "${origin}/api/v3", openai-images: "${origin}/v1" }
models:
  film: { owned_by: tests, kind: video, targets: [studio], price: { second: 0.05, output: 1 } }
  paint: { owned_by: tests, kind: image, targets: [studio], price: { image: 0.01 } }
task-store: { poll: { first: 50ms, longest: 100ms } }
`,
);
const bob = await clientOf(gateway, 'bob');
const films = '/v1/contents/generations/tasks';
const filmOf = (text: string) => ({ model: 'film', content: [{ type: 'text', text }], duration: 2 });
const orders = [
  ['/v1/images/generations', '/v1/tasks', { model: 'paint', prompt: 'A cat' }],
  [films, films, filmOf('Waves')],
  [films, '/v1/tasks', filmOf('Waves')],
  ['/v1/videos', '/v1/videos', { model: 'film', prompt: 'Waves', seconds: '2' }],
] as const;

async function rows(table: 'movements' | 'calls', requestId: string): Promise<{ kind?: string; amount?: string }[]> {
  const { orm, schema } = gateway.gateway.find(database)!;
  const id = sql.identifier(table === 'movements' ? 'request_id' : 'id');
  const found = sql`select * from ${sql.identifier(schema)}.${sql.identifier(table)} where ${id} = ${requestId}`;
  return (await orm.execute(found)) as { kind?: string; amount?: string }[];
}

for (const [orderedAt, tasksAt, order] of orders) {
  test(`a task ordered at ${orderedAt} that has ended is deleted at ${tasksAt}; the ledger keeps its charge`, async () => {
    const before = await alice.balance();
    const { json, headers } = await alice.send('POST', orderedAt, order);
    const id = json.data?.id ?? json.id;
    const task = await ended(alice, `${tasksAt}/${id}`);
    const requestId = headers.get('x-request-id')!.replace(/^req_/, '');
    const kept = await rows('movements', requestId);
    assert.deepEqual(
      kept.map(({ kind }) => kind),
      ['CHARGE'],
    );

    const other = await bob.send('DELETE', `${tasksAt}/${id}`);
    assert.deepEqual([other.status, other.json.error.code], [404, 'task_not_found']);
    const removed = await alice.send('DELETE', `${tasksAt}/${id}`);
    assert.equal(removed.status, 200, JSON.stringify(removed.json));
    if (order.model === 'paint') assert.deepEqual(removed.json, { code: 200, data: { id, deleted: true } });
    for (const method of ['GET', 'DELETE']) {
      const gone = await alice.send(method, `${tasksAt}/${id}`);
      assert.deepEqual([gone.status, gone.json.error.code], [404, 'task_not_found'], method);
    }
    const [link] = JSON.stringify(task).match(/http:[^"]+/) ?? [];
    if (link !== undefined) assert.equal((await fetch(link)).status, 404);
    const listed = JSON.stringify((await alice.send('GET', '/v1/tasks')).json);
    assert.ok(!listed.includes(id), listed);

    assert.deepEqual(await rows('movements', requestId), kept);
    assert.equal((await rows('calls', requestId)).length, 1);
    await alice.hasPaid(before, -kept.reduce((sum, { amount }) => sum + BigInt(amount!), 0n));
  });
}

test('a task that failed is deleted too', async () => {
  const { json } = await alice.send('POST', films, filmOf('Waves [[sandbox: block]]'));
  assert.equal((await ended(alice, `${films}/${json.id}`)).status, 'failed');
  assert.deepEqual((await alice.send('DELETE', `${films}/${json.id}`)).json, {});
  assert.equal((await alice.send('GET', `${films}/${json.id}`)).status, 404);
});

test('a task that its vendor has finished meanwhile is not reported as cancelled', async () => {
  const { requests } = vendor.bill();
  const before = await alice.balance();
  const { json } = await alice.send('POST', films, filmOf('Waves [[sandbox: takes=1s]]'));
  const reply = await until('the handing over', async () => {
    const answer = await alice.send('GET', `${films}/${json.id}`);
    return answer.json.status === 'running' ? answer : undefined;
  });
  assert.equal(reply.status, 200);
  for (;;) {
    const { status } = await alice.send('DELETE', `${films}/${json.id}`);
    if (status === 200) break;
    assert.equal(status, 409);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const isPaid = (await alice.balance()) < before;
  assert.equal(isPaid, vendor.bill().requests > requests);
});

test("the answer to an order has the task's id and the address to poll", async () => {
  for (const [orderedAt, , order] of orders) {
    const { json, headers } = await alice.send('POST', orderedAt, order);
    const id = json.data?.id ?? json.id;
    assert.equal(headers.get('x-gateway-task'), id);
    const address = headers.get('location')!;
    assert.equal(headers.get('x-gateway-poll'), `GET ${address}`);
    const requested = await alice.send('GET', address);
    assert.deepEqual([requested.status, requested.json.data?.id ?? requested.json.id], [200, id]);
  }
  const waited = await alice.send('POST', '/v1/images/generations', {
    model: 'paint',
    prompt: 'A cat',
    response_format: 'url',
  });
  assert.match(waited.headers.get('x-gateway-task')!, /^task_[0-9a-f]{32}$/);
  assert.equal(waited.headers.get('location'), null);
  assert.equal(typeof waited.json.data[0].url, 'string');
});

test('a client that waits for a deleted task is answered at once', async () => {
  const before = await alice.balance();
  const waiting = alice.send('POST', '/v1/images/generations', {
    model: 'paint',
    prompt: 'A cat',
    response_format: 'url',
  });
  const deleted = (async () => {
    for (let looks = 0; looks < 200; looks += 1) {
      const [task] = (await alice.send('GET', '/v1/tasks?limit=1')).json.data as { data?: { id: string } }[];
      if (task?.data !== undefined && (await alice.send('DELETE', `/v1/tasks/${task.data.id}`)).status === 200) return;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  const answer = await waiting;
  await deleted;
  assert.ok([200, 409].includes(answer.status), JSON.stringify(answer.json));
  assert.ok(before - (await alice.balance()) <= parseUsd('0.01'));
});

test('1K, 2K and 4K in "size" are the resolution, in any case', async () => {
  const sizeOf = async (more: object) => {
    const order = { model: 'paint', prompt: 'A cat', response_format: 'url', ...more };
    const { status, json } = await alice.send('POST', '/v1/images/generations', order);
    return status === 200 ? json.size : [status, json.error.param];
  };
  for (const resolution of ['1k', '2k', '4k']) {
    const named = await sizeOf({ resolution });
    for (const size of [resolution, resolution.toUpperCase()]) assert.deepEqual(await sizeOf({ size }), named, size);
    assert.deepEqual(await sizeOf({ size: resolution.toUpperCase(), resolution }), named);
  }
  assert.notDeepEqual(await sizeOf({ size: '2K' }), await sizeOf({ size: '1K' }));
  assert.deepEqual(await sizeOf({ size: '2K', resolution: '4k' }), [400, 'size']);
  assert.deepEqual(await sizeOf({ size: '3K' }), [400, 'size']);
});
