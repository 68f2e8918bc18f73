/** Realtime vendors: one sends every message back as it came, one plays a recording in pieces of any size. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { WebSocketServer } from 'ws';

export async function startEcho() {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  const keys: (string | undefined)[] = [];
  server.on('connection', (socket, request) => {
    keys.push(request.headers.authorization);
    socket.send('{"type":"session.created","session":{}}');
    socket.on('message', (data: Buffer, isBinary) => socket.send(data, { binary: isBinary }));
  });
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    keys,
    async stop() {
      for (const client of server.clients) client.terminate();
      server.close();
      await once(server, 'close');
    },
  };
}

/** After the first message, the answer: events in fragments, over a connection that cuts and joins packets at random. */
export async function startRecording(events: readonly string[]) {
  const [greeting, ...others] = events;
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  server.on('connection', (socket) => {
    socket.send(greeting!);
    socket.once('message', () => {
      for (const event of others) {
        const at = Math.floor(Math.random() * event.length);
        socket.send(event.slice(0, at), { fin: false });
        socket.send(event.slice(at));
      }
    });
  });
  await once(server, 'listening');
  const inner = (server.address() as AddressInfo).port;
  const sockets = new Set<Socket>();
  const proxy = createServer((client) => {
    const upstream = connect(inner, '127.0.0.1');
    for (const socket of [client, upstream]) sockets.add(socket.on('error', () => {}));
    client.pipe(upstream);
    void cut(upstream, client);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return {
    origin: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    async stop() {
      for (const socket of sockets) socket.destroy();
      for (const client of server.clients) client.terminate();
      server.close();
      proxy.close();
      await once(proxy, 'close');
    },
  };
}

/** Passes bytes on in pieces of 1 to 2,000 bytes, each written by itself. */
async function cut(from: Socket, to: Socket): Promise<void> {
  to.setNoDelay(true);
  try {
    for await (const chunk of from as AsyncIterable<Buffer>) {
      for (let at = 0; at < chunk.length; ) {
        const length = Math.ceil(Math.random() ** 4 * 2_000) || 1;
        to.write(chunk.subarray(at, at + length));
        at += length;
        await nextTurn();
      }
    }
    to.end();
  } catch {
    to.destroy();
  }
}
