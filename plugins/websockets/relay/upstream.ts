/** A connection to an upstream over WebSocket: connects, sends with backpressure, and keeps messages until there is a listener. */
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { WebSocket } from 'ws';
import type { UpstreamRequest } from '../../../core/contract/contract.ts';
import type { Answer, Headers } from '../../../core/contract/message.ts';
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';
import { connectorFor } from '../../../core/tools/network.ts';
import { maxScrubbedBytes } from '../../common/kit/scrub.ts';
import { answerPings } from '../pongs.ts';

export interface Message {
  readonly data: Buffer;
  readonly isBinary: boolean;
}

/** Unsent bytes above which sending waits for the upstream. */
const waitAboveBytes = 256 * 1024;
const keepAliveMs = 30_000;
/** How long the upstream has to answer a close. */
const hangUpMs = 3_000;

export interface OpenOptions {
  readonly signal: AbortSignal;
  readonly maxBytes: number;
  /** Sent as soon as the connection is open. */
  readonly first?: Message | undefined;
  /** The upstream sends nothing before its first message from us. */
  readonly isSilent?: true;
}

export class UpstreamSocket {
  readonly #socket: WebSocket;
  #early: Message[] | undefined = [];
  #onMessage: ((message: Message) => void) | undefined;
  #onClose: ((code: number) => void) | undefined;
  #closedWith: number | undefined;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    answerPings(socket);
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      if (this.#early === undefined) this.#onMessage?.({ data, isBinary });
      else this.#early.push({ data, isBinary });
    });
    socket.once('close', (code) => {
      this.#closedWith = code;
      this.#onClose?.(code);
    });
  }

  /**
   * Resolves with the socket once its first message has come, which the listener gets too, or, of a silent upstream, once it is
   * open; or with the answer that refuses the upgrade. Rejects with an UpstreamError; `sent` where it was closed after it had opened.
   */
  static open(request: UpstreamRequest, options: OpenOptions): Promise<UpstreamSocket | Answer> {
    return new Promise((resolve, reject) => {
      const client = dial(request, options.maxBytes);
      const socket = new UpstreamSocket(client);
      let hasOpened = false;
      const timer = setTimeout(
        () => fail('the upstream sends nothing', { timedOut: true }),
        request.connectTimeoutMs + (options.isSilent ? 0 : request.firstByteTimeoutMs),
      );
      const done = () => {
        clearTimeout(timer);
        options.signal.removeEventListener('abort', abort);
        client.off('close', closed);
      };
      const fail = (what: string, details: { timedOut?: boolean; cause?: unknown } = {}) => {
        done();
        client.terminate();
        reject(new UpstreamError('connect', what, details));
      };
      const abort = () => fail('the session was given up', { cause: options.signal.reason });
      const begun = () => {
        done();
        client.pause();
        resolve(socket);
      };
      const closed = (code: number, reason: Buffer) => {
        done();
        reject(new RefusedSession(code, reason.toString()));
      };
      client.on('error', (cause) => (hasOpened ? undefined : fail('the upstream cannot be reached', { cause })));
      client.on('unexpected-response', (_request, response) => {
        done();
        refusalOf(response).then(resolve, (cause) => reject(new UpstreamError('connect', 'no answer', { cause })));
      });
      // Pings find an upstream that is gone without a close.
      client.once('upgrade', (response: IncomingMessage) => response.socket.setKeepAlive(true, keepAliveMs));
      client.once('open', () => {
        hasOpened = true;
        client.once('close', closed);
        if (options.first !== undefined) client.send(options.first.data, { binary: options.first.isBinary });
        if (options.isSilent) begun();
      });
      if (!options.isSilent) client.once('message', begun);
      if (options.signal.aborted) abort();
      else options.signal.addEventListener('abort', abort, { once: true });
    });
  }

  /** The message that the upstream began with. */
  get greeting(): Buffer {
    return this.#early?.[0]?.data ?? Buffer.alloc(0);
  }

  get isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  /** Calls the listener with the messages so far, and then with each new one. */
  listen(onMessage: (message: Message) => void, onClose: (code: number) => void): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    this.#onMessage = onMessage;
    this.#onClose = onClose;
    for (const message of early) onMessage(message);
    if (this.#closedWith !== undefined) onClose(this.#closedWith);
    else this.#socket.resume();
  }

  /** undefined: the message is sent. Else a promise that resolves when the upstream has read enough, or is gone. */
  send({ data, isBinary }: Message): Promise<void> | undefined {
    const socket = this.#socket;
    if (socket.readyState !== WebSocket.OPEN) return undefined;
    if (socket.bufferedAmount < waitAboveBytes) {
      socket.send(data, { binary: isBinary });
      return undefined;
    }
    return new Promise((resolve) => void socket.send(data, { binary: isBinary }, () => resolve()));
  }

  /** Whether a ping is answered in this time. */
  isAlive(withinMs: number): Promise<boolean> {
    const socket = this.#socket;
    if (socket.readyState !== WebSocket.OPEN) return Promise.resolve(false);
    return new Promise((resolve) => {
      const end = (isAlive: boolean) => () => {
        clearTimeout(timer);
        socket.off('pong', answered).off('close', closed);
        resolve(isAlive);
      };
      const [answered, closed] = [end(true), end(false)];
      const timer = setTimeout(closed, withinMs);
      socket.once('pong', answered).once('close', closed);
      socket.ping();
    });
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  terminate(): void {
    this.#socket.terminate();
  }

  close(): void {
    const socket = this.#socket;
    socket.resume();
    socket.close(1000);
    if (socket.readyState === WebSocket.CLOSED) return;
    const timer = setTimeout(() => socket.terminate(), hangUpMs);
    socket.once('close', () => clearTimeout(timer));
  }
}

/** The upstream has closed the connection before it began. */
export class RefusedSession extends Error {
  readonly code: number;
  readonly reason: string;

  constructor(code: number, reason: string) {
    super(`closed with ${code}`);
    this.code = code;
    this.reason = reason;
  }
}

const ofHttp = ['content-type', 'accept', 'accept-encoding', 'content-length'];

function dial({ url, headers, connectTimeoutMs, network }: UpstreamRequest, maxPayload: number): WebSocket {
  const address = new URL(url);
  const connect = connectorFor(connectTimeoutMs, network);
  const { hostname, host, port } = address;
  const servername = isIP(hostname) === 0 ? hostname : undefined;
  const sent: Headers = { ...headers };
  for (const name of ofHttp) delete sent[name];
  return new WebSocket(url.replace(/^http/, 'ws'), {
    headers: sent,
    maxPayload,
    autoPong: false,
    perMessageDeflate: false,
    followRedirects: false,
    createConnection: ((_options: unknown, callback: (error: Error | null, socket?: unknown) => void) => {
      connect({ hostname, host, port, protocol: address.protocol, servername } as never, callback as never);
      return undefined;
    }) as never,
  });
}

async function refusalOf(response: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    chunks.push(chunk);
    if (bytes > maxScrubbedBytes) break;
  }
  response.destroy();
  const headers: Headers = {};
  for (const [name, value] of Object.entries(response.headers)) headers[name] = String(value);
  return { status: response.statusCode ?? 502, headers, body: Buffer.concat(chunks) };
}
