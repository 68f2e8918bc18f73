/** A vendor of responses that takes turns over WebSocket and over HTTP, follows a script, and refuses whatever the transport forbids. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';

// biome-ignore lint/suspicious/noExplicitAny: bodies of many shapes are asserted on
type Body = any;

/** What happens to a turn, instead of an answer. */
export type Fate =
  | { readonly kind: 'refuse'; readonly error: object; readonly status: number; readonly close?: number }
  | { readonly kind: 'die'; readonly after: number }
  | { readonly kind: 'silent'; readonly after: number }
  | { readonly kind: 'error'; readonly after: number };

export interface TurnVendor {
  readonly origin: string;
  /** Turns in their order; `over` says how they came. */
  readonly turns: { readonly over: 'socket' | 'http'; readonly connection: number; readonly body: Body }[];
  readonly sockets: Set<WebSocket>;
  /** Upgrades so far. */
  upgrades: number;
  /** Status that refuses upgrades; 0: they are accepted. */
  refuses: number;
  /** Fates of the next turns. */
  readonly fates: (Fate | undefined)[];
  /** Forgets what connections have of earlier responses. */
  forget(): void;
  stop(): Promise<void>;
}

const forbidden = ['stream', 'stream_options', 'background'];

export async function startTurnVendor(key: string): Promise<TurnVendor> {
  const http = createServer(async (request, answer) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString());
    vendor.turns.push({ over: 'http', connection: 0, body });
    answer.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of eventsOf(body)) answer.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    answer.end();
  });
  const server = new WebSocketServer({ noServer: true });
  let memories = new Map<WebSocket, string>();
  const vendor: TurnVendor = {
    origin: '',
    turns: [],
    sockets: new Set(),
    upgrades: 0,
    refuses: 0,
    fates: [],
    forget: () => {
      memories = new Map();
    },
    async stop() {
      for (const socket of vendor.sockets) socket.terminate();
      http.closeAllConnections();
      http.close();
      await once(http, 'close');
    },
  };
  http.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    vendor.upgrades += 1;
    const connection = vendor.upgrades;
    const status = request.headers.authorization === `Bearer ${key}` ? vendor.refuses : 401;
    if (status !== 0) return void socket.end(refusal(status));
    server.handleUpgrade(request, socket, head, (client) => {
      vendor.sockets.add(client);
      client.on('close', () => vendor.sockets.delete(client));
      let isRunning = false;
      client.on('message', async (data, isBinary) => {
        const body = JSON.parse(String(data));
        vendor.turns.push({ over: 'socket', connection, body });
        const broken = brokenRule(body, isBinary || isRunning, memories.get(client));
        memories.delete(client);
        const fate = vendor.fates.shift();
        if (broken !== undefined) return client.send(envelope(400, broken));
        if (fate?.kind === 'refuse') {
          client.send(envelope(fate.status, fate.error));
          if (fate.close !== undefined) client.close(fate.close);
          return;
        }
        isRunning = true;
        const events = eventsOf(body);
        for (const event of events.slice(0, fate?.after)) client.send(JSON.stringify(event, undefined, 1));
        if (fate === undefined) memories.set(client, events.at(-1)!.response!.id);
        if (fate?.kind === 'die') client.terminate();
        if (fate?.kind === 'error') client.send(envelope(500, { code: 'server_error', message: 'It broke.' }));
        isRunning = fate?.kind === 'silent';
      });
    });
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  return Object.assign(vendor, { origin: `http://127.0.0.1:${(http.address() as AddressInfo).port}` });
}

function brokenRule(body: Body, isOutOfTurn: boolean, last: string | undefined): object | undefined {
  const { type, previous_response_id: id } = body;
  if (isOutOfTurn || type !== 'response.create') return { code: 'invalid_request', message: 'out of turn' };
  if (forbidden.some((name) => name in body)) return { code: 'unknown_parameter', message: 'unknown parameter' };
  return id === undefined || id === last ? undefined : { code: 'previous_response_not_found', message: `no ${id}` };
}

const envelope = (status: number, error: object) =>
  JSON.stringify({ type: 'error', status, error: { type: 'invalid_request_error', ...error } });

const refusal = (status: number) => {
  const body = JSON.stringify({ error: { message: 'No.', code: 'no' } });
  return `HTTP/1.1 ${status} No\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
};

let made = 0;

/** Says how many items it has got; each item costs ten tokens. */
function eventsOf({ input, previous_response_id: before, model }: Body) {
  const items = typeof input === 'string' ? [input] : input;
  made += 1;
  const id = `resp_vendor${made}`;
  const text = `${items.length} items${before === undefined ? '' : ` after ${before}`}`;
  const part = { type: 'output_text', text, annotations: [] };
  const message = { id: `msg_${made}`, type: 'message', status: 'completed', role: 'assistant', content: [part] };
  const reasoning = { id: `rs_${made}`, type: 'reasoning', summary: [] };
  const response = { id, object: 'response', model, previous_response_id: before ?? null, output: [] };
  const usage = {
    input_tokens: 10 * items.length,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 5,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 10 * items.length + 5,
  };
  const place = { item_id: message.id, output_index: 1, content_index: 0 };
  const events: Body[] = [
    { type: 'response.created', response: { ...response, status: 'in_progress', usage: null } },
    { type: 'response.output_item.added', output_index: 1, item: { ...message, content: [] } },
    { type: 'response.output_text.delta', ...place, delta: text },
    { type: 'response.output_text.done', ...place, text },
    { type: 'response.output_item.done', output_index: 1, item: message },
    { type: 'response.completed', response: { ...response, status: 'completed', output: [reasoning, message], usage } },
  ];
  return events.map((event, index) => ({ ...event, sequence_number: index }));
}
