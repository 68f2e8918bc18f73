/** Idempotency-Key over two gateways on one PostgreSQL, and through an official client that tries again. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { type RunningVendor, startVendor } from '../../plugins/sandbox/vendor.ts';
import { databaseUrl, ownSchema } from '../helpers/database.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { type Customer, dropSchema, faces, modelAt, readReply, speaks, until, yamlOf } from './testbed.ts';

/** The embedded database belongs to one process. */
const nodeCount = databaseUrl === undefined ? 1 : 2;
const schema = ownSchema('nodes');
let sandbox: RunningVendor;
let gateways: TestGateway[];

before(async () => {
  sandbox = await startVendor({ key: 'key' });
  const yaml = yamlOf({
    gateway: 'nodes',
    schema,
    listen: '127.0.0.1:0',
    plans: { default: 'open', offers: { open: { price: 0 } } },
    providers: { sandbox: { keys: 'key', speaks: speaks(sandbox.origin) } },
    models: { sandbox: modelAt('sandbox') },
    'protocol-convert': { seal_secret: 'a secret that two gateways share' },
  });
  gateways = [];
  for (let index = 0; index < nodeCount; index++) gateways.push(await startGateway(yaml));
});
after(async () => {
  for (const gateway of gateways) await gateway.stop();
  await sandbox.close();
  await dropSchema(schema);
});

const originOf = (index: number) => gateways[index % gateways.length]!.origin;

async function send(origin: string, { key }: Customer, prompt: string, idempotencyKey: string) {
  const answer = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
    body: JSON.stringify({ model: 'sandbox', messages: [{ role: 'user', content: prompt }], stream: true }),
  });
  return readReply(answer);
}

test(`100 parallel repetitions on ${nodeCount} gateways: one upstream request, one charge, one answer`, async () => {
  const { customer, records } = faces(gateways[0]!);
  const who = await customer();
  const key = randomUUID();
  const prompt = 'Hello [[sandbox: tokens=40 delay=100ms]]';
  const answers = await Promise.all(Array.from({ length: 100 }, (_, index) => send(originOf(index), who, prompt, key)));
  const statuses = new Set(answers.map(({ status }) => status));
  assert.deepEqual(statuses, new Set([200, 409]));
  const later = await Promise.all(
    Array.from({ length: 2 * nodeCount }, async (_, index) => {
      let answer = await send(originOf(index), who, prompt, key);
      await until('the answer is known everywhere', async () => {
        if (answer.status === 200) return true;
        answer = await send(originOf(index), who, prompt, key);
        return false;
      });
      return answer;
    }),
  );
  const texts = new Set([...answers.filter(({ status }) => status === 200), ...later].map(({ text }) => text));
  assert.equal(texts.size, 1);
  assert.equal(sandbox.bill().requests, 1);
  assert.deepEqual((await records(who)).ends, ['charged answered']);
});

test('an official client repeats after its timeout, gets the whole answer and pays once', async () => {
  const { customer, records, origin } = faces(gateways[0]!);
  const who = await customer();
  const { requests } = sandbox.bill();
  const client = new OpenAI({ baseURL: `${origin}/v1`, apiKey: who.key, maxRetries: 5, timeout: 400 });
  // Keys of this client's own have this form; it sends one where the caller says so.
  const headers = { 'idempotency-key': `stainless-node-retry-${randomUUID()}` };
  const answer = await client.chat.completions.create(
    { model: 'sandbox', messages: [{ role: 'user', content: '[[sandbox: tokens=25 delay=900ms]]' }] },
    { headers },
  );
  assert.equal(answer.usage!.completion_tokens, 25);
  const { ends, charges } = await records(who);
  assert.deepEqual([ends, charges[0]!.estimated, charges[0]!.classes.output], [['charged client_left'], false, 25]);
  assert.equal(sandbox.bill().requests - requests, 1);
});
