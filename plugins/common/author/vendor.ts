/** A replaying vendor: a real HTTP server on loopback with configurable answers, cut anywhere; it records its requests. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Longer than tests take on any machine: whether a socket is used again does not depend on how busy it is. */
const keepAliveTimeoutMs = 600_000;

/** How one request is answered. */
export interface Script {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly body?: Uint8Array | string;
  /** Offsets at which the body is cut; each part is a write of its own that reaches the socket before the next. */
  readonly cuts?: readonly number[];
  /** Milliseconds between two writes; default 0, which is one turn of the event loop. */
  readonly pauseMs?: number;
  /** Destroys the socket after this many bytes of the body; 0: right after the head. */
  readonly dieAfter?: number;
  /** Destroys the socket without any head. */
  readonly dieAtOnce?: boolean;
  /** Keeps the socket open after the body, without ending the answer. */
  readonly hang?: boolean;
  /** Sends no head for this long. */
  readonly headDelayMs?: number;
  /** Sends no head before this resolves. */
  readonly after?: Promise<void>;
}

/** A request that the vendor has got. */
export interface Received {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  /** The gateway's port: names the socket. */
  readonly socket: number;
  /** Resolves when the gateway has closed this request's socket or the answer was finished. */
  readonly closed: Promise<void>;
}

/** A vendor on a free port of loopback, until `stop`. It answers 200 without a body until something is played. */
export interface Vendor {
  readonly origin: string;
  /** Requests so far, oldest first. */
  readonly requests: Received[];
  /** Scripts of the next requests, in order; the last one stays. */
  play(...scripts: Script[]): void;
  /** How many sockets have been opened to it so far. */
  connections(): number;
  stop(): Promise<void>;
}

/** Starts a vendor; `play` says what it answers. */
export async function startVendor(): Promise<Vendor> {
  const requests: Received[] = [];
  let scripts: Script[] = [{}];
  let connections = 0;
  const server = createServer({ keepAliveTimeout: keepAliveTimeoutMs }, (incoming, outgoing) => {
    void receive(incoming, outgoing, requests).then(() => {
      const script = scripts.length > 1 ? scripts.shift()! : scripts[0]!;
      return answer(outgoing, script);
    });
  });
  server.on('connection', () => {
    connections++;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    play: (...next) => {
      scripts = next;
    },
    connections: () => connections,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function receive(incoming: IncomingMessage, outgoing: ServerResponse, requests: Received[]): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  requests.push({
    method: incoming.method!,
    url: incoming.url!,
    headers: incoming.headers,
    body: Buffer.concat(chunks),
    socket: incoming.socket.remotePort!,
    closed: new Promise((resolve) => outgoing.on('close', () => resolve())),
  });
}

async function answer(outgoing: ServerResponse, script: Script): Promise<void> {
  const socket = outgoing.socket!;
  socket.setNoDelay(true);
  if (script.dieAtOnce) return void socket.destroy();
  if (script.headDelayMs !== undefined) await waitOpen(outgoing, script.headDelayMs);
  await script.after;
  outgoing.writeHead(script.status ?? 200, script.headers ?? { 'content-type': 'application/json' });
  outgoing.flushHeaders();
  const body = Buffer.from(script.body ?? '');
  const whole = script.dieAfter === undefined ? body : body.subarray(0, script.dieAfter);
  const cuts = [...(script.cuts ?? [])].filter((cut) => cut > 0 && cut < whole.length).sort((one, two) => one - two);
  let from = 0;
  for (const to of [...cuts, whole.length]) {
    if (outgoing.destroyed) return;
    if (to > from) await new Promise<void>((resolve) => outgoing.write(whole.subarray(from, to), () => resolve()));
    await sleep(script.pauseMs ?? 0);
    from = to;
  }
  if (script.dieAfter !== undefined) socket.destroy();
  else if (!script.hang) outgoing.end();
}

/** Waits, but not for a request that has ended: its timer would keep the process of the tests alive. */
async function waitOpen(outgoing: ServerResponse, delayMs: number): Promise<void> {
  const ended = new AbortController();
  outgoing.once('close', () => ended.abort());
  await sleep(delayMs, undefined, { signal: ended.signal }).catch(() => undefined);
}

const sse = { 'content-type': 'text/event-stream' };

/** An answer of the chat protocol with this text. */
export function chatAnswer(content: string): Script {
  const choice = { index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' };
  return {
    body: JSON.stringify({ ...envelope, object: 'chat.completion', choices: [choice], usage: usageOf([content]) }),
  };
}

/** A stream of the chat protocol with these pieces of text, each of which arrives by itself. */
export function chatStream(...pieces: readonly string[]): Script {
  const chunk = (delta: object, finish: string | null, more = {}) =>
    `data: ${JSON.stringify({ ...envelope, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`;
  const frames = pieces.map((content, index) =>
    chunk(index === 0 ? { role: 'assistant', content } : { content }, null),
  );
  frames.push(chunk({}, 'stop', { usage: usageOf(pieces) }), 'data: [DONE]\n\n');
  let length = 0;
  return { headers: sse, body: frames.join(''), cuts: frames.map((frame) => (length += Buffer.byteLength(frame))) };
}

const envelope = { id: 'chatcmpl-1', created: 1_900_000_000, model: 'some-model' };

function usageOf(pieces: readonly string[]): object {
  const completion = pieces.length;
  return { prompt_tokens: 10, completion_tokens: completion, total_tokens: 10 + completion };
}

/** `count` offsets into `length` bytes, the same for the same seed. */
export function seededCuts(length: number, count: number, seed: number): number[] {
  let state = seed >>> 0;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * length);
  });
}
