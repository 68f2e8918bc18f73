/** A client of Responses over WebSocket, by hand: sends turns and collects messages. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { WebSocket } from 'ws';

// biome-ignore lint/suspicious/noExplicitAny: messages of many shapes are asserted on
export type Message = any;

export interface Talk {
  readonly socket: WebSocket;
  readonly messages: Message[];
  send(message: object | string): void;
  /** Sends a turn and resolves with its messages, the last one included. */
  turn(body: object): Promise<Message[]>;
  /** Messages up to the first that ends a turn. */
  next(): Promise<Message[]>;
  /** The close code. */
  closed: Promise<number>;
  close(): Promise<void>;
}

const isLast = ({ type }: Message) =>
  ['response.completed', 'response.incomplete', 'response.failed', 'error'].includes(type);

export async function talk(origin: string, key: string, path = '/v1/responses', headers: object = {}): Promise<Talk> {
  const socket = new WebSocket(origin.replace('http', 'ws') + path, {
    headers: { authorization: `Bearer ${key}`, ...headers },
  });
  const messages: Message[] = [];
  let taken = 0;
  let wake: () => void = () => {};
  const closed = new Promise<number>((resolve) => void socket.on('close', resolve));
  socket.on('message', (data) => {
    messages.push(JSON.parse(String(data)));
    wake();
  });
  socket.on('close', () => wake());
  socket.on('error', () => {});
  await once(socket, 'open');
  const next = async () => {
    for (;;) {
      const end = messages.slice(taken).findIndex(isLast);
      if (end !== -1) {
        const found = messages.slice(taken, taken + end + 1);
        taken += end + 1;
        return found;
      }
      assert.equal(socket.readyState, WebSocket.OPEN, 'the connection was closed in the middle of a turn');
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  const send = (message: object | string) =>
    socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  return {
    socket,
    messages,
    send,
    next,
    closed,
    turn: (body) => {
      send({ type: 'response.create', ...body });
      return next();
    },
    async close() {
      socket.close();
      await closed;
    },
  };
}

/** The refusal of an upgrade as an HTTP answer. */
export async function refusal(origin: string, path: string, headers: Record<string, string>) {
  const socket = new WebSocket(origin.replace('http', 'ws') + path, { headers });
  socket.on('error', () => {});
  const [, answer] = await once(socket, 'unexpected-response');
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk);
  return {
    status: answer.statusCode as number,
    headers: answer.headers as Record<string, string>,
    json: JSON.parse(Buffer.concat(chunks).toString()) as Message,
  };
}
