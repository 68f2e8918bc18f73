/** The second gateway stops while a client waits for its image: the order goes on, so its client is given the task, not an error. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { databaseUrl, ownSchema } from '../helpers/database.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { dropSchema, faces, until } from './testbed.ts';

const schema = ownSchema('alt');
let directory: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'drain-orders-'));
});
after(async () => {
  await rm(directory, { recursive: true, force: true });
  await dropSchema(schema);
});

const request = { model: 'gpt-image-2', size: '1024x1024', quality: 'low' };
/** Two times 0.006 USD. */
const price = 12_000_000n;

function start(): Promise<TestGateway> {
  const database = databaseUrl === undefined ? '' : `storage: { database: "${databaseUrl}" }\n`;
  const server = 'server: { drain: { grace: 50ms, deadline: 200ms } }\n';
  return startGateway(`include: config/demo-alt.yaml\nschema: ${schema}\n${database}${server}`, { directory });
}

test('a client that waits for an image when the gateway stops gets the task, which is finished and paid', async () => {
  const first = await start();
  const customer = await faces(first).customer({ plan: 'payg' });
  const headers = { authorization: `Bearer ${customer.key}` };
  const order = fetch(`${first.origin}/v1/images/generations`, {
    method: 'POST',
    headers,
    // The vendor answers with bytes: an address would lead into the sandbox that ends here.
    body: JSON.stringify({ ...request, prompt: 'A cat [[sandbox: delay=1500ms]]' }),
  });
  const list = async () => (await fetch(`${first.origin}/v1/tasks`, { headers })).text();
  await until('the vendor paints', async () => (await list()).includes('"processing"'));
  const stopped = first.stop();
  const answer = await order;
  const reply = (await answer.json()) as { code: number; data: { id: string; status: string } };
  assert.deepEqual([answer.status, reply.code, reply.data.status], [200, 200, 'submitted']);
  await stopped;

  const second = await start();
  try {
    const gateway = faces(second);
    const look = async () => (await fetch(`${second.origin}/v1/tasks/${reply.data.id}`, { headers })).text();
    await until('the order has ended', async () => /"status":"(completed|failed)"/.test(await look()));
    const { ends } = await gateway.records(customer, 1);
    assert.deepEqual(ends, ['charged answered']);
    assert.equal(await gateway.balance(customer), 100_000_000_000n - price);
  } finally {
    await second.stop();
  }
});
