/** One process of clients, or the vendor: a process may open only so many descriptors, so each side has its own. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { CrowdOrder } from './messages.ts';

const batch = 200;
const bigBytes = 512 * 1024;
const sockets: Socket[] = [];
let waiting = 0;
process.once('disconnect', () => process.exit(0));
process.on('message', async ({ number, requested }: { number: number; requested: CrowdOrder }) => {
  process.send!({ number, reported: await handle(requested) });
});

async function handle(requested: CrowdOrder): Promise<number> {
  switch (requested.kind) {
    case 'vendor':
      return serve();
    case 'waiting':
      return waiting;
    case 'open':
      return open(requested.port, requested.count, requested.path);
    case 'read': {
      const received = await Promise.all(sockets.map(bytesOf));
      return received.filter((bytes) => bytes > bigBytes).length;
    }
    case 'leave':
      for (const socket of sockets.splice(0)) socket.destroy();
      return 0;
  }
}

/** Answers at once, at length, or with a first word and nothing more; resolves with the port. */
async function serve(): Promise<number> {
  const server = createServer((incoming, outgoing) => {
    incoming.resume();
    if (incoming.url === '/silent') {
      waiting += 1;
      outgoing.on('close', () => {
        waiting -= 1;
      });
      outgoing.write('first');
    } else if (incoming.url === '/big') outgoing.end(Buffer.alloc(bigBytes, 0x61));
    else outgoing.end('ok');
  });
  await once(server.listen(0, '127.0.0.1', 4_096), 'listening');
  return (server.address() as AddressInfo).port;
}

/** Resolves with the connections that are there. */
async function open(port: number, count: number, path: string | undefined): Promise<number> {
  for (let index = 0; index < count; index++) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    if (path !== undefined) socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
    if (path === '/big') socket.pause();
    sockets.push(socket);
    if (index % batch === batch - 1) await pause(10);
  }
  const connected = () => sockets.filter(({ connecting, destroyed }) => !connecting && !destroyed).length;
  for (let tries = 0; connected() < count && tries < 600; tries++) await pause(100);
  return connected();
}

/** Reads on until the whole answer is there, or the connection ends. */
function bytesOf(socket: Socket): Promise<number> {
  let bytes = 0;
  return new Promise((resolve) => {
    socket.on('data', (chunk) => {
      bytes += chunk.length;
      if (bytes > bigBytes) resolve(bytes);
    });
    socket.on('close', () => resolve(bytes));
    socket.resume();
  });
}
