/** A gateway that is killed while a call waits for its connection to the vendor: the call is charged nothing. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { establish } from './process.ts';
import { modelAt, until } from './testbed.ts';

test('a call whose gateway is killed while connecting is charged nothing; killed after sending, the prompt', async (context) => {
  const sockets: Socket[] = [];
  let bytes = 0;
  // Accepts, and never says a word: a TLS handshake waits for ever, a plain request has left.
  const vendor = createServer((socket) => {
    socket.on('data', (chunk) => {
      bytes += chunk.length;
    });
    socket.on('error', () => {});
    sockets.push(socket);
  });
  await once(vendor.listen(0, '127.0.0.1'), 'listening');
  context.after(() => {
    for (const socket of sockets) socket.destroy();
    vendor.close();
  });
  const { port } = vendor.address() as AddressInfo;
  const testbed = await establish(
    {
      providers: {
        locked: { keys: 'key', speaks: { chat: `https://127.0.0.1:${port}/v1` } },
        silent: { keys: 'key', speaks: { chat: `http://127.0.0.1:${port}/v1` } },
      },
      models: { locked: modelAt('locked'), silent: modelAt('silent') },
    },
    2,
  );
  context.after(() => testbed.close());
  const serving = await testbed.start();
  for (const [index, model] of ['locked', 'silent'].entries()) {
    const { key } = testbed.customers[index]!;
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] });
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    fetch(`${testbed.origin}/v1/chat/completions`, { method: 'POST', headers, body }).catch(() => {});
    await until('the vendor has heard something', () => sockets.length === index + 1 && bytes > 0);
    bytes = 0;
  }
  serving.kill('SIGKILL');
  await once(serving, 'exit');
  const again = await testbed.start();
  again.kill('SIGTERM');
  await once(again, 'exit');
  await testbed.runAsCommand(async (gateway) => {
    const [locked, silent] = await Promise.all(testbed.customers.map((customer) => gateway.records(customer)));
    assert.deepEqual([locked!.charges.length, silent!.charges.length], [0, 1]);
    assert.equal(await gateway.balance(testbed.customers[0]!), 100_000_000_000n);
    assert.ok((await gateway.balance(testbed.customers[1]!)) < 100_000_000_000n);
    await gateway.audit();
  });
});
