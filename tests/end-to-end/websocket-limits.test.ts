/** How WebSockets end: too old, idle, silent, or because the gateway stops. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { type House, startHouse, until } from './house.ts';
import { talk } from './sockets.ts';

const slow = { model: 'sandbox', input: 'Slowly [[sandbox: tokens=60 chunk_delay=40ms]]' };

async function housed(websockets: object, check: (house: House) => Promise<void>): Promise<void> {
  const house = await startHouse({ more: { websockets, server: { drain: { grace: '50ms', deadline: '20s' } } } });
  try {
    await check(house);
  } finally {
    await house.stop();
  }
}

test('a connection that is too old ends with an error event, after the turn that runs', () =>
  housed({ longest: '1s' }, async (house) => {
    const customer = await house.customer();
    const client = await talk(house.origin, customer.key);
    const turn = await client.turn(slow);
    assert.equal(turn.at(-1).type, 'response.completed');
    assert.equal(await client.closed, 1001);
    assert.deepEqual(
      [client.messages.at(-1).status, client.messages.at(-1).error.code],
      [400, 'websocket_connection_limit_reached'],
    );
    await house.books(customer, 1);
  }));

test('an idle connection is closed; one that does not answer pings is cut', () =>
  housed({ idle: '2500ms', ping: '1s' }, async (house) => {
    const customer = await house.customer();
    const client = await talk(house.origin, customer.key);
    const pings: number[] = [];
    client.socket.on('ping', () => void pings.push(1));
    assert.equal(await client.closed, 1001);
    assert.ok(pings.length > 0);
    const dead = connect({ port: Number(new URL(house.origin).port), host: '127.0.0.1' });
    dead.on('error', () => {});
    dead.write(
      `GET /v1/responses HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${customer.key}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    );
    const [answer] = (await once(dead, 'data')) as [Buffer];
    assert.match(String(answer), /^HTTP\/1\.1 101 /);
    assert.match(String(answer), /^x-request-id: [0-9a-f-]{36}$/m);
    await once(dead.resume(), 'close');
    await until('nothing is in flight', () => house.gateway.gateway.inFlight === 0);
  }));

test('a stop finishes the turn that runs, begins none, and closes with 1012', () =>
  housed({}, async (house) => {
    const customer = await house.customer();
    const [busy, idle] = [await talk(house.origin, customer.key), await talk(house.origin, customer.key)];
    busy.send({ type: 'response.create', ...slow });
    await until('it has begun', () => busy.messages.length > 2);
    busy.send({ type: 'response.create', ...slow });
    const stopping = house.gateway.gateway.stop();
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
