/** How WebSockets end: too old, idle, silent, or because the gateway stops. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { talk } from './sockets.ts';
import { type Customer, startTestbed, type Testbed, until } from './testbed.ts';

const slow = { model: 'sandbox', input: 'Slowly [[sandbox: tokens=60 chunk_delay=40ms]]' };

async function withTestbed(websockets: object, check: (testbed: Testbed) => Promise<void>): Promise<void> {
  await using testbed = await startTestbed({
    more: { websockets, server: { drain: { grace: '50ms', deadline: '20s' } } },
  });
  await check(testbed);
}

test('a connection at its maximum age ends with an error event after the running turn', () =>
  withTestbed({ longest: '1s' }, async (testbed) => {
    const customer = await testbed.customer();
    const client = await talk(testbed.origin, customer.key);
    const turn = await client.turn(slow);
    assert.equal(turn.at(-1).type, 'response.completed');
    assert.equal(await client.closed, 1001);
    assert.deepEqual(
      [client.messages.at(-1).status, client.messages.at(-1).error.code],
      [400, 'websocket_connection_limit_reached'],
    );
    await testbed.records(customer, 1);
  }));

test('an idle connection is closed; one that does not answer pings is cut', () =>
  withTestbed({ idle: '2500ms', ping: '1s' }, async (testbed) => {
    const customer = await testbed.customer();
    const client = await talk(testbed.origin, customer.key);
    const pings: number[] = [];
    client.socket.on('ping', () => void pings.push(1));
    assert.equal(await client.closed, 1001);
    assert.ok(pings.length > 0);
    const dead = connect({ port: Number(new URL(testbed.origin).port), host: '127.0.0.1' });
    dead.on('error', () => {});
    dead.write(
      `GET /v1/responses HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${customer.key}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    );
    const [answer] = (await once(dead, 'data')) as [Buffer];
    assert.match(String(answer), /^HTTP\/1\.1 101 /);
    assert.match(String(answer), /^x-request-id: [0-9a-f-]{36}$/m);
    await once(dead.resume(), 'close');
    await until('nothing is in flight', () => testbed.gateway.gateway.inFlight === 0);
  }));

test('a stop finishes the running turn, begins none, and closes with 1012', () =>
  withTestbed({}, async (testbed) => {
    const customer = await testbed.customer();
    const [busy, idle] = [await talk(testbed.origin, customer.key), await talk(testbed.origin, customer.key)];
    busy.send({ type: 'response.create', ...slow });
    await until('it has begun', () => busy.messages.length > 2);
    busy.send({ type: 'response.create', ...slow });
    const stopping = testbed.gateway.gateway.stop();
    assert.equal(await idle.closed, 1012);
    assert.equal(await busy.closed, 1012);
    assert.deepEqual(
      busy.messages
        .filter(({ type }) => type === 'response.completed')
        .map(({ response }) => response.usage.output_tokens),
      [60],
    );
    await stopping;
  }));

/** A client that sends bytes as they are, and reads when it is asked to. */
async function raw(testbed: Testbed, { key }: Customer) {
  const socket = connect({ port: Number(new URL(testbed.origin).port), host: '127.0.0.1' });
  socket.on('error', () => {});
  const closed = new Promise((resolve) => void socket.on('close', resolve));
  socket.write(
    `GET /v1/responses HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  );
  const [answer] = (await once(socket, 'data')) as [Buffer];
  assert.match(String(answer), /^HTTP\/1\.1 101 /);
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  return { socket, closed, text: () => text };
}

/** The beginning of a frame of so many bytes. */
function begun(announced: number, sent: number): Buffer {
  const frame = Buffer.alloc(14 + sent);
  frame[0] = 0x81;
  frame[1] = 0xff;
  frame.writeBigUInt64BE(BigInt(announced), 2);
  return frame;
}
const ping = (bytes: number) => Buffer.concat([Buffer.from([0x89, 0x80 | bytes]), Buffer.alloc(4 + bytes)]);

const text = (message: string) =>
  Buffer.concat([
    Buffer.from([0x81, 0xfe, message.length >> 8, message.length & 255, 0, 0, 0, 0]),
    Buffer.from(message),
  ]);

const small = { message: '2MB', memory: '8MB', account_memory: '4MB', control_frames: 1_000, queue: 1 };

test('messages, pings and refused turns of clients that do not read take bounded memory', (context) =>
  withTestbed(small, async (testbed) => {
    await context.test(
      'messages that have not arrived whole count for their account, and one too many is refused',
      async () => {
        const customer = await testbed.customer({ nanoUsd: 0n });
        const clients = [await raw(testbed, customer), await raw(testbed, customer), await raw(testbed, customer)];
        for (const { socket } of clients.slice(0, 2)) socket.write(begun(2_000_000, 1_800_000));
        // A pong would stand in the middle of their message: only what is sent can be waited for.
        await until('both are sent', () => clients.slice(0, 2).every(({ socket }) => socket.writableLength === 0));
        clients[2]!.socket.write(begun(2_000_000, 1_800_000));
        await clients[2]!.closed;
        assert.match(clients[2]!.text(), /"status":429,"error":\{"message":"The WebSockets of this account/);
        assert.ok(clients[2]!.text().includes('\x03\xf5The'), 'it may be tried again later: 1013');
        assert.equal(clients[0]!.socket.destroyed, false);
        const other = await talk(testbed.origin, (await testbed.customer({ nanoUsd: 0n })).key);
        const [error] = await other.turn({ model: 'sandbox', input: 'x'.repeat(1_000_000) });
        assert.equal(error.error.code, 'insufficient_balance', 'another account has its own share');
        for (const { socket } of clients) socket.destroy();
        await other.close();
        await until('nothing is in flight', () => testbed.gateway.gateway.inFlight === 0);
        const again = await talk(testbed.origin, customer.key);
        for (const input of ['x', 'y', 'z'])
          assert.equal((await again.turn({ model: 'sandbox', input: input.repeat(1_900_000) })).length, 1);
        await again.close();
      },
    );

    await context.test(
      'pings that come together leave one pong to be sent; too many end the connection with 1008',
      async () => {
        const client = await raw(testbed, await testbed.customer({ nanoUsd: 0n }));
        client.socket.write(Buffer.concat(Array.from({ length: 900 }, () => ping(125))));
        const pong = Buffer.concat([Buffer.from([0x8a, 125]), Buffer.alloc(125)]).toString('latin1');
        await until('the last ping is answered', () => client.text().endsWith(pong));
        assert.ok(client.text().length < 900 * 127, 'pings meanwhile have one pong together');
        client.socket.write(Buffer.concat(Array.from({ length: 200 }, () => ping(0))));
        await client.closed;
        assert.ok(client.text().includes('\x03\xf0Too many pings'));
      },
    );

    await context.test('a client whose turns are refused and that does not read is cut', async () => {
      const customer = await testbed.customer();
      const client = await raw(testbed, customer);
      client.socket.pause();
      client.socket.write(text(JSON.stringify({ type: 'response.create', ...slow }).padEnd(200)));
      client.socket.write(Buffer.concat(Array.from({ length: 100_000 }, () => text('{}'.padEnd(126)))));
      await client.closed;
      await testbed.records(customer, 1);
    });
  }));
