/** A realtime vendor as a process: answers a `response.create` by as many events as it says, once it has heard as many as it says. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';

const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
await once(server, 'listening');
process.send?.({ port: (server.address() as AddressInfo).port });
process.on('disconnect', () => process.exit(0));

server.on('connection', (socket) => {
  let heard = 0;
  let wanted = 0;
  let events = 0;
  socket.send('{"type":"session.created","session":{}}');
  socket.on('message', (data: Buffer) => {
    if (data.includes('"response.create"')) ({ wanted, events } = JSON.parse(String(data)));
    else heard += 1;
    if (heard < wanted || events === 0) return;
    heard = 0;
    void answer(socket, events);
    events = 0;
  });
});

const event = Buffer.from(JSON.stringify({ type: 'response.output_audio.delta', delta: 'A'.repeat(1_000) }));
const usage = { input_tokens: 1, output_tokens: 1 };

async function answer(socket: WebSocket, events: number): Promise<void> {
  socket.send('{"type":"response.created","response":{"id":"resp_1"}}');
  for (let index = 0; index < events; index += 1) {
    if (socket.bufferedAmount > 1_000_000)
      await new Promise((resolve) => socket.send(event, { binary: false }, resolve));
    else socket.send(event, { binary: false });
  }
  socket.send(JSON.stringify({ type: 'response.done', response: { id: 'resp_1', status: 'completed', usage } }));
}
