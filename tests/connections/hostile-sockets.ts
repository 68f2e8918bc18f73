/** WebSockets of clients that send what takes memory and never let it go: messages without an end, and pings without reading. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { residentMegabytes, startProcess } from './crowds.ts';

export interface Hostile {
  /** Connections with an unfinished message. */
  readonly unfinished: number;
  /** Megabytes that each connection sends of a message, below the 32 MB that one may have. */
  readonly megabytes: number;
  /** Pings of one connection that does not read. */
  readonly pingMegabytes: number;
}

const sections = 'plugins: [providers, models, route, protocol-convert, websockets]\nproviders: {}\nmodels: {}\n';
const upgrade =
  'GET /v1/responses HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';
/** 128 MB of messages of one account, twice while one is made whole, and what the collector has not taken yet. */
const mostGrownMegabytes = 450;

export async function playHostileSockets(
  { unfinished, megabytes, pingMegabytes }: Hostile,
  say: (line: string) => void,
): Promise<void> {
  const { child, port } = await startProcess(sections);
  const resident = () => residentMegabytes(child.pid!);
  const sockets: Socket[] = [];
  const open = async () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    sockets.push(socket);
    socket.write(upgrade);
    assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1\.1 101/);
    return socket;
  };
  try {
    await open();
    const before = resident();
    let most = before;
    const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 1, 0xe6, 0, 0, 0, 0, 0, 0]);
    const clients = await Promise.all(Array.from({ length: unfinished }, open));
    const sent = clients.map((socket) => send(socket.resume(), head, Buffer.alloc(2 ** 20, 'a'), megabytes));
    const watch = setInterval(() => {
      most = Math.max(most, resident());
    }, 50);
    await Promise.all(sent);
    await pause(500);
    say(`${unfinished} messages without an end: ${before} MB resident before, ${most} MB at most`);
    assert.ok(most - before < mostGrownMegabytes, `${most - before} MB for messages without an end`);
    for (const socket of sockets.splice(0)) socket.destroy();

    const [beforePings, pinging] = [resident(), await open()];
    most = beforePings;
    const ping = Buffer.alloc(131);
    ping.set([0x89, 0x80 | 125]);
    await send(
      pinging.pause(),
      Buffer.alloc(0),
      Buffer.concat(Array.from({ length: 8_000 }, () => ping)),
      pingMegabytes,
    );
    clearInterval(watch);
    say(`${pingMegabytes} MB of pings, no pong read: ${beforePings} MB resident before, ${most} MB at most`);
    assert.ok(most - beforePings < mostGrownMegabytes, `${most - beforePings} MB for pings`);
  } finally {
    for (const socket of sockets) socket.destroy();
    child.kill('SIGKILL');
  }
}

/** Sends until all is sent, the connection is closed, or the gateway takes no more of it. */
async function send(socket: Socket, head: Buffer, piece: Buffer, pieces: number): Promise<void> {
  socket.write(head);
  for (let index = 0; index < pieces && !socket.destroyed; index++) {
    const taken = new Promise<boolean>((resolve) => void socket.write(piece, () => resolve(true)));
    if (!(await Promise.race([taken, pause(2_000, false)]))) return;
  }
}
