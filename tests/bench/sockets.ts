/**
 * `npm run bench:sockets`: a turn over WebSocket beside the same POST, by processor time, the memory of 2,000 idle sessions, and relayed realtime
 * messages beside a bare relay.
 */
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { WebSocket } from 'ws';
import { median } from './measure.ts';
import { measuredCore, otherCore, processorMs, residentKiB, type Started, settled, start, stop } from './processes.ts';
import { modelOf } from './words.ts';

const sessions = 2_000;
const connections = 16;
const turns = 100;
const rounds = 5;
const upstream = await start('upstream.ts', [], otherCore);
const gateway = await start('gateway.ts', [String(upstream.port), 'full'], measuredCore);
const members = { model: modelOf('responses'), input: `chunks=20 ${'a'.repeat(900)}` };

/** Processor milliseconds of the gateway for one turn. */
async function costOf(work: () => Promise<void>): Promise<number> {
  await settled(gateway);
  const before = processorMs(gateway);
  await Promise.all(Array.from({ length: connections }, work));
  await settled(gateway);
  return (processorMs(gateway) - before) / (connections * turns);
}

async function overSocket(): Promise<void> {
  const socket = await openSocket(gateway);
  const message = JSON.stringify({ type: 'response.create', ...members, store: false });
  for (let turn = 0; turn < turns; turn += 1) {
    const ended = new Promise<void>((resolve, reject) => {
      socket.on('message', (data: Buffer) => {
        if (data.includes('"type":"error"')) reject(new Error(String(data)));
        if (!data.includes('"type":"response.completed"')) return;
        socket.removeAllListeners('message');
        resolve();
      });
    });
    socket.send(message);
    await ended;
  }
  socket.close();
  await once(socket, 'close');
}

const agent = new Agent({ connections });
async function overHttp(): Promise<void> {
  const body = JSON.stringify({ ...members, store: false, stream: true });
  const headers = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' };
  const url = `http://127.0.0.1:${gateway.port}/v1/responses`;
  for (let turn = 0; turn < turns; turn += 1) {
    const answer = await request(url, { method: 'POST', headers, body, dispatcher: agent });
    if (answer.statusCode !== 200) throw new Error(await answer.body.text());
    await answer.body.dump({ limit: 2 ** 30 });
  }
}

async function openSocket({ port, key }: Started, path = '/v1/responses'): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${key}` } });
  await once(socket, 'open');
  return socket;
}

async function compareTurns(): Promise<void> {
  const costs: Record<'socket' | 'http', number[]> = { socket: [], http: [] };
  for (let round = 0; round <= rounds; round += 1) {
    const [socket, http] = [await costOf(overSocket), await costOf(overHttp)];
    // The first round warms up.
    if (round === 0) continue;
    costs.socket.push(socket);
    costs.http.push(http);
  }
  const [socket, http] = [median(costs.socket), median(costs.http)];
  console.log(
    `A turn of 20 chunks: ${(socket * 1_000).toFixed(0)} us of processor time over WebSocket, ${(http * 1_000).toFixed(0)} as a POST (${(socket / http).toFixed(2)} of it)`,
  );
}

async function idleSessions(): Promise<void> {
  const fresh = await start('gateway.ts', [String(upstream.port), 'full'], measuredCore);
  const open: WebSocket[] = [];
  const grow = async (count: number) => {
    for (let index = 0; index < count; index += 50)
      open.push(...(await Promise.all(Array.from({ length: 50 }, () => openSocket(fresh)))));
    await pause(3_000);
    return residentKiB(fresh);
  };
  const before = await grow(500);
  const growth = (await grow(sessions)) - before;
  console.log(
    `Memory: ${(growth / sessions).toFixed(1)} KiB for each of ${sessions} idle sessions beyond the first 500`,
  );
  for (const socket of open) socket.terminate();
  stop(fresh);
}

const events = 20_000;
const voices = 4;

/** Messages of a kilobyte that pass in a second of the relay's processor time: half from the client, half to it. */
async function relayedPerSecond(relay: Started): Promise<number> {
  await settled(relay);
  const before = processorMs(relay);
  await Promise.all(Array.from({ length: voices }, () => talk(relay)));
  await settled(relay);
  return (voices * 2 * events * 1_000) / (processorMs(relay) - before);
}

async function talk({ port, key }: Started): Promise<void> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/realtime?model=voice`, {
    headers: { authorization: `Bearer ${key}` },
  });
  await once(socket, 'open');
  const done = new Promise<void>((resolve) => {
    socket.on('message', (data: Buffer) => void (data.includes('"response.done"') && resolve()));
  });
  const audio = JSON.stringify({ type: 'input_audio_buffer.append', audio: 'A'.repeat(1_000) });
  for (let index = 0; index < events; index += 1) {
    if (socket.bufferedAmount < 1_000_000) socket.send(audio);
    else await new Promise((resolve) => socket.send(audio, resolve));
  }
  socket.send(JSON.stringify({ type: 'response.create', wanted: events, events }));
  await done;
  socket.close();
  await once(socket, 'close');
}

async function compareRelays(): Promise<void> {
  const vendor = await start('realtime-vendor.ts', [], otherCore);
  const [bare, full] = [
    await start('bare-sockets.ts', [String(vendor.port)], measuredCore),
    await start('gateway.ts', [String(vendor.port), 'full'], measuredCore),
  ];
  const rates: Record<'bare' | 'full', number[]> = { bare: [], full: [] };
  for (let round = 0; round <= rounds; round += 1) {
    const [one, other] = [await relayedPerSecond(bare), await relayedPerSecond(full)];
    if (round === 0) continue;
    rates.bare.push(one);
    rates.full.push(other);
  }
  const [one, other] = [median(rates.bare), median(rates.full)];
  console.log(
    `Relayed messages a second of processor time: ${other.toFixed(0)}, a bare relay ${one.toFixed(0)} (${(other / one).toFixed(2)} of it)`,
  );
  for (const started of [full, bare, vendor]) stop(started);
}

/** Of realtime sessions, with their upstreams' sockets. */
async function idleVoices(): Promise<void> {
  const vendor = await start('realtime-vendor.ts', [], otherCore);
  const fresh = await start('gateway.ts', [String(vendor.port), 'full'], measuredCore);
  const open: WebSocket[] = [];
  const grow = async (count: number) => {
    for (let index = 0; index < count; index += 50)
      open.push(
        ...(await Promise.all(Array.from({ length: 50 }, () => openSocket(fresh, '/v1/realtime?model=voice')))),
      );
    await pause(3_000);
    return residentKiB(fresh);
  };
  const before = await grow(500);
  const growth = (await grow(sessions)) - before;
  console.log(
    `Memory: ${(growth / sessions).toFixed(1)} KiB for each of ${sessions} idle realtime sessions beyond the first 500`,
  );
  for (const socket of open) socket.terminate();
  for (const started of [fresh, vendor]) stop(started);
}

if (process.argv[2] === 'realtime') {
  await compareRelays();
  await idleVoices();
  process.exit(0);
}
await compareTurns();
await idleSessions();
await agent.close();
stop(gateway);
stop(upstream);
