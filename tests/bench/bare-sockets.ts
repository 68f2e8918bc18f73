/** A bare relay of WebSockets as a process: passes messages on, and pauses one side while the other does not read. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';

const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
await once(server, 'listening');
process.send?.({ port: (server.address() as AddressInfo).port });
process.on('disconnect', () => process.exit(0));

server.on('connection', (client) => {
  client.pause();
  const upstream = new WebSocket(`ws://127.0.0.1:${process.argv[2]}/v1/realtime`, { perMessageDeflate: false });
  upstream.once('open', () => client.resume());
  for (const [from, to] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    from.on('message', (data: Buffer, binary: boolean) => {
      if (to.bufferedAmount < 256 * 1024) to.send(data, { binary });
      else {
        from.pause();
        to.send(data, { binary }, () => from.resume());
      }
    });
    from.on('close', () => to.close());
    from.on('error', () => to.terminate());
  }
});
