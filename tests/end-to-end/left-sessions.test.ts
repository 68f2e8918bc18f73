/** Sessions whose client leaves when it has asked for a response that has not begun: the vendor runs it, so it is charged. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type WebSocket, WebSocketServer } from 'ws';
import { type Talk, talk } from './sockets.ts';
import { startTestbed, type Testbed, until } from './testbed.ts';

const livePath = '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent';

/** Greets, and does nothing more but what a test says. */
class Vendor {
  readonly got: string[] = [];
  socket: WebSocket | undefined;
  isClosed = false;
  readonly #server = new WebSocketServer({ port: 0, host: '127.0.0.1' });

  async start(): Promise<string> {
    this.#server.on('connection', (socket, request) => {
      this.socket = socket;
      this.isClosed = false;
      this.got.length = 0;
      socket.on('close', () => {
        this.isClosed = true;
      });
      const isLive = request.url!.startsWith('/ws/');
      if (!isLive) this.send({ type: 'session.created', session: {} });
      socket.on('message', (data) => {
        this.got.push(String(data));
        if (String(data).includes('"setup"')) this.send({ setupComplete: {} });
      });
    });
    await once(this.#server, 'listening');
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  send(event: object): void {
    this.socket!.send(JSON.stringify(event));
  }

  async has(what: string): Promise<void> {
    await until(`the vendor has got ${what}`, () => this.got.some((message) => message.includes(what)));
  }

  stop(): void {
    for (const socket of this.#server.clients) socket.terminate();
    this.#server.close();
  }
}

const vendor = new Vendor();
let testbed: Testbed;
before(async () => {
  const address = await vendor.start();
  const speaks = { 'openai-realtime': `http://${address}/v1`, 'gemini-live': `http://${address}` };
  testbed = await startTestbed({
    providers: () => ({ slow: { keys: 'k', speaks } }),
    models: {
      slow: {
        ...{ owned_by: 'test', kind: 'realtime', targets: ['slow'], context: '32k' },
        price: { input: 4, output: 16 },
      },
    },
  });
});
after(async () => {
  await testbed.stop();
  vendor.stop();
});

async function leave(client: Talk): Promise<void> {
  client.socket.terminate();
  await client.closed;
  await pause(100);
}

test('realtime: an answer whose client disconnects is cancelled, and pays the usage that the vendor reports', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key, '/v1/realtime?model=slow');
  client.send({ type: 'response.create' });
  await vendor.has('response.create');
  await leave(client);
  await vendor.has('response.cancel');
  vendor.send({ type: 'response.created', response: { id: 'resp_1' } });
  const usage = { input_tokens: 70, output_tokens: 3 };
  vendor.send({ type: 'response.done', response: { id: 'resp_1', status: 'cancelled', usage } });
  const { charges } = await testbed.records(customer, 2);
  assert.deepEqual(
    charges.map(({ estimated, classes }) => [estimated, classes.input, classes.output]),
    [[false, 70, 3]],
  );
  await until('the vendor is left', () => vendor.isClosed);
  await testbed.audit();
});

test('realtime: an answer that the vendor refuses is not awaited after a disconnection, and costs nothing', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key, '/v1/realtime?model=slow');
  client.send({ type: 'response.create' });
  await vendor.has('response.create');
  vendor.send({ type: 'error', error: { type: 'invalid_request_error', message: 'No.' } });
  await until('the client knows', () => client.messages.at(-1)?.type === 'error');
  await leave(client);
  await until('the vendor is left', () => vendor.isClosed);
  assert.ok(!vendor.got.some((message) => message.includes('response.cancel')));
  const { charges } = await testbed.records(customer, 2);
  assert.ok(charges.every(({ cost }) => cost === 0n));
});

for (const [name, requested] of [
  ['a turn', { clientContent: { turns: [{ role: 'user', parts: [{ text: 'Hello' }] }], turnComplete: true } }],
  ['a result of a tool', { tool_response: { function_responses: [{ id: '1', name: 'f', response: {} }] } }],
] as const)
  test(`live: after a disconnection ${name} is awaited, and pays the usage that the vendor reports`, async () => {
    const customer = await testbed.customer();
    const client = await talk(testbed.origin, customer.key, `${livePath}?key=${customer.key}`);
    client.send({ setup: { model: 'models/slow' } });
    await until('it is set up', () => client.messages.length > 0);
    client.send(requested);
    await vendor.has(Object.keys(requested)[0]!);
    await leave(client);
    vendor.send({ serverContent: { modelTurn: { parts: [{ text: 'Hi' }] } } });
    const usageMetadata = { promptTokenCount: 40, responseTokenCount: 2, totalTokenCount: 42 };
    vendor.send({ serverContent: { turnComplete: true }, usageMetadata });
    const { charges } = await testbed.records(customer, 2);
    assert.deepEqual(
      charges.map(({ estimated, classes }) => [estimated, classes.input, classes.output]),
      [[false, 40, 2]],
    );
    await until('the vendor is left', () => vendor.isClosed);
  });

test('live: content that requests no turn is not awaited after a disconnection', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key, `${livePath}?key=${customer.key}`);
  client.send({ setup: { model: 'models/slow' } });
  await until('it is set up', () => client.messages.length > 0);
  client.send({ clientContent: { turns: [], turnComplete: false } });
  await vendor.has('clientContent');
  await leave(client);
  assert.ok(vendor.isClosed);
  const { charges } = await testbed.records(customer, 2);
  assert.ok(charges.every(({ cost }) => cost === 0n));
});
