/** The live socket: access and messages by role. On real sockets, with services in memory. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { WebSocket } from 'ws';
import { pool } from '../../../plugins/common/domain/ledger.ts';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { Live, livePath } from '../../../plugins/console/live.ts';
import { type FakeConsole, fakeConsole } from './fake-console.ts';
import { addRequest, chance, clientAccount } from './fakes/world.ts';

let server: Server;
let origin: string;
let services: FakeConsole;
let live: Live;

before(async () => {
  services = fakeConsole();
  live = new Live({ host: services.host, clock: services.clock, people: services.people, origin: '' });
  live.start();
  server = createServer();
  server.on('upgrade', (request, socket, head) => live.endpoint.accept(request, socket, head, undefined as never));
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => {
  live.stop();
  server.closeAllConnections();
  server.close();
});

const tick = () => services.host.intervals.find(({ name }) => name === 'tell live pages')!.work();
const check = () => services.host.intervals.find(({ name }) => name === 'check live pages')!.work();

interface Page {
  readonly socket: WebSocket;
  readonly reported: { topic: string; [member: string]: unknown }[];
  topics(): string[];
}

async function open(headers: Record<string, string>): Promise<Page> {
  const socket = new WebSocket(origin.replace('http', 'ws') + livePath, { headers });
  const reply: Page['reported'] = [];
  socket.on('message', (data) => reply.push(JSON.parse(String(data))));
  await new Promise((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  return { socket, reported: reply, topics: () => reply.map(({ topic }) => topic) };
}

/** Until what was sent has arrived. */
const arrived = (page: Page) =>
  new Promise<void>((resolve) => {
    page.socket.once('pong', () => resolve());
    page.socket.ping();
  });

const refusal = (headers: Record<string, string>) =>
  open(headers).then(
    () => 'opened',
    (error: Error) => error.message,
  );

test('a socket without a sign-in or from another site is refused', async () => {
  assert.match(await refusal({ origin }), /401/);
  assert.match(await refusal({ origin: 'https://evil.example', cookie: 'fake=client' }), /403/);
  assert.match(await refusal({ cookie: 'fake=client' }), /403/);
  assert.match(await refusal({ origin: 'null', cookie: 'fake=client' }), /403/);
});

test('a client gets their own balance and tasks, once each until something changes', async () => {
  const page = await open({ origin, cookie: 'fake=client' });
  await tick();
  await tick();
  await arrived(page);
  assert.deepEqual(page.topics().toSorted(), ['balance', 'tasks']);
  const active = page.reported.find(({ topic }) => topic === 'tasks')!['active'] as { id: string }[];
  assert.deepEqual(
    active.map(({ id }) => id),
    ['task_1', 'task_2'],
  );
  await services.find(pool)!.debit(clientAccount, parseUsd('1.5'), { reason: 'test', reference: 'live-test' });
  await tick();
  await arrived(page);
  const balances = page.reported.flatMap(({ topic, balance }) =>
    topic === 'balance' ? [parseUsd(String(balance))] : [],
  );
  assert.equal(balances.length, 2);
  assert.equal(balances[0]! - balances[1]!, parseUsd('1.5'));
  assert.equal(page.topics().includes('monitor'), false);
  page.socket.close();
});

test('operators and tokens get the last minute of the whole gateway', async () => {
  const page = await open({ origin, cookie: 'fake=operator' });
  const script = await open({ authorization: 'Bearer fake-token' });
  addRequest(services.world, services.clock.now() - 10, chance(3));
  await tick();
  await Promise.all([arrived(page), arrived(script)]);
  for (const { reported: reply } of [page, script]) {
    const monitor = reply.find(({ topic }) => topic === 'monitor')!;
    assert.ok((monitor['lastMinute'] as { requests: number }).requests >= 1);
    assert.equal(
      reply.some(({ topic }) => topic === 'balance'),
      false,
    );
  }
  page.socket.close();
  script.socket.close();
});

test('after blocking or signing out the socket is closed at the next check', async () => {
  const page = await open({ origin, cookie: 'fake=auditor' });
  const closed = new Promise<number>((resolve) => page.socket.once('close', resolve));
  await services.people.setBlocked('person-auditor', true);
  await check();
  assert.equal(await closed, 4401);
  await services.people.setBlocked('person-auditor', false);
});

test('a page opened with more rights is closed at the next check once they are removed', async () => {
  const page = await open({ origin, cookie: 'fake=auditor' });
  const closed = new Promise<number>((resolve) => page.socket.once('close', resolve));
  await services.people.setRole('person-auditor', 'client');
  await check();
  assert.equal(await closed, 4401);
  await services.people.setRole('person-auditor', 'auditor');
});

test('a person opens at most twenty pages, and a too long message ends the socket', async () => {
  const pages = await Promise.all(Array.from({ length: 20 }, () => open({ origin, cookie: 'fake=operator' })));
  assert.match(await refusal({ origin, cookie: 'fake=operator' }), /503/);
  const [first, ...rest] = pages;
  const closed = new Promise<number>((resolve) => first!.socket.once('close', resolve));
  first!.socket.send('x'.repeat(5_000));
  assert.equal(await closed, 1009);
  for (const { socket } of rest) socket.terminate();
});

test('a socket that answers no ping is closed', async () => {
  const page = await open({ origin, cookie: 'fake=client' });
  const closed = new Promise<void>((resolve) => page.socket.once('close', () => resolve()));
  page.socket.pong = () => undefined;
  // The library answers pings by itself: a page that is gone does not.
  (page.socket as unknown as { _receiver: { removeAllListeners(name: string): void } })._receiver.removeAllListeners(
    'ping',
  );
  await check();
  await check();
  await closed;
});
