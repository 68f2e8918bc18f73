/** Answers whose body fails on the gateway's side: booked as failed and charged as cut, never as a client that left. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { startGateway } from '../helpers/gateway.ts';
import { dialectNames } from './dialects.ts';
import { modelAt, startTestbed, type Testbed, until } from './testbed.ts';

/** A plugin that replaces the answer's body by one that throws after its first bytes, where the header asks for that. */
const source = (name: string) => `
import { definePlugin } from '${pathToFileURL('core/contract/contract.ts')}';
import { z } from '${pathToFileURL('core/contract/schema.ts')}';
async function* parts(body) {
  if (typeof body === 'string') yield Buffer.from(body);
  else if (body instanceof Uint8Array) yield body;
  else yield* body;
}
async function* broken(body) {
  for await (const part of parts(body)) {
    yield part.subarray(0, 20);
    // What was written so far reaches the client.
    await new Promise((resolve) => setTimeout(resolve, 20));
    throw new Error('the plugin broke');
  }
}
export default definePlugin({
  name: '${name}',
  config: z.strictObject({}),
  setup: () => ({
    async handle(exchange, next) {
      const answer = await next();
      if (exchange.request.headers['x-break'] !== '${name}' || answer.status !== 200) return answer;
      const { 'content-length': _length, ...headers } = answer.headers;
      return { ...answer, headers, body: broken(answer.body) };
    },
  }),
});`;

interface Row {
  readonly id: string;
  readonly outcome: string;
  readonly status: number;
  readonly error_kind: string | null;
}

let directory: string;
let testbed: Testbed;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'broken-'));
  for (const name of ['outer', 'inner']) await writeFile(join(directory, `${name}.ts`), source(name));
  const [outer, inner] = ['outer', 'inner'].map((name) => join(directory, `${name}.ts`));
  testbed = await startTestbed({
    providers: ({ sandbox }) => ({
      patient: {
        keys: 'vendor-key-of-the-sandbox',
        client_left: 'drain',
        speaks: { chat: `${sandbox}/v1`, messages: sandbox },
      },
    }),
    models: { patient: modelAt('patient') },
    more: {
      plugins: [
        ...['storage', 'telemetry', 'request-log', 'auth', outer, 'plans', 'rate-limit', 'providers', 'models'],
        ...['idempotency', 'billing', inner, 'route', 'protocol-convert'],
      ],
      'rate-limit': {},
    },
  });
});
after(async () => {
  await testbed.stop();
  await rm(directory, { recursive: true, force: true });
});

for (const place of ['outer', 'inner'])
  for (const model of ['sandbox', 'patient'])
    for (const stream of [true, false])
      test(`a plugin's body that throws is a failed answer (${place}, ${model}, ${stream ? 'streamed' : 'whole'})`, async () => {
        for (const name of dialectNames) {
          const customer = await testbed.customer();
          const question = { model, prompt: '[[sandbox: tokens=40 chunks=10 chunk_delay=2ms]]', stream };
          const init = { headers: { 'x-break': place } };
          const { broken, status, id } = await testbed.call(customer, name, question, init);
          // A stream ends with the error event of the client's protocol (wrapped-streams.test.ts).
          assert.deepEqual([status, broken], [200, !stream], name);
          const { ends, charges, attempts } = await testbed.records(customer);
          assert.deepEqual([ends, attempts.map(({ result }) => result)], [['charged cut'], ['answered']], name);
          assert.ok(charges[0]!.cost > 0n, name);
          assert.deepEqual(await rowOf(id), ['failed', 200, 'internal'], name);
        }
      });

async function rowOf(id: string): Promise<unknown[]> {
  let row: Row | undefined;
  await until('the row is written', async () => {
    row = (await testbed.rows<Row>('requests')).find((each) => each.id === id);
    return row !== undefined;
  });
  return [row!.outcome, row!.status, row!.error_kind];
}

test('a client that disconnects in the middle is recorded as disconnected', async () => {
  const customer = await testbed.customer();
  const leaving = new AbortController();
  const prompt = '[[sandbox: tokens=2000 chunk_delay=10ms]]';
  const { open } = testbed.sandbox.bill();
  const pending = testbed.call(
    customer,
    'chat',
    { model: 'sandbox', prompt, stream: true },
    { signal: leaving.signal },
  );
  pending.catch(() => {});
  await until('the vendor works', () => testbed.sandbox.bill().open > open);
  await new Promise((resolve) => setTimeout(resolve, 50));
  leaving.abort();
  assert.deepEqual((await testbed.records(customer)).ends, ['charged client_left']);
});

test('passthrough: a vendor that dies in the middle of its body is a failed answer', async (context) => {
  const vendor = createServer((_incoming, outgoing) => {
    outgoing.writeHead(200, { 'content-type': 'text/plain' });
    outgoing.write('half');
    setTimeout(() => outgoing.destroy(), 20);
  });
  await once(vendor.listen(0, '127.0.0.1'), 'listening');
  const { port } = vendor.address() as AddressInfo;
  const gateway = await startGateway(
    `gateway: test\nlisten: 127.0.0.1:0\nplugins: [storage, request-log, passthrough]\npassthrough: { upstream: "http://127.0.0.1:${port}" }\n`,
  );
  context.after(() => gateway.stop());
  try {
    await assert.rejects(fetch(`${gateway.origin}/a`).then((answer) => answer.text()));
    const line = () => gateway.lines.find((each) => each.includes('"outcome"'));
    await until('the line is written', () => line() !== undefined);
    const { outcome, error_kind } = JSON.parse(line()!) as { outcome: string; error_kind: string };
    assert.deepEqual([outcome, error_kind], ['failed', 'upstream_failed']);
  } finally {
    await gateway.stop();
    vendor.close();
  }
});
