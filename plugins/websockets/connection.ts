/** A client's WebSocket: sends with backpressure, bounds what waits in it, counts bytes, remembers when it was last used. */
import type { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import type { GatewayError } from '../../core/contract/errors.ts';
import type { Headers } from '../../core/contract/message.ts';
import type { Caller } from '../common/domain/accounts.ts';
import type { SocketCounts } from '../common/domain/admin/sockets.ts';
import { orderFields } from '../common/wire/trace.ts';
import { Arrivals } from './arrivals.ts';
import { answerPings } from './pongs.ts';

/** Unsent bytes above which sending waits for the client. */
const waitAboveBytes = 256 * 1024;

/** Close codes: RFC 6455, section 7.4.1, and IANA's registry for 1012 and 1013. */
export const closeCode = {
  goingAway: 1001,
  unsupported: 1003,
  policy: 1008,
  failed: 1011,
  restart: 1012,
  later: 1013,
} as const;

/** The head of the upgrade, as far as its turns need it. */
export interface ClientHead {
  readonly id: string;
  /** Without what belongs to the connection. */
  readonly headers: Readonly<Headers>;
  /** With the question mark; empty: none. */
  readonly search: string;
  readonly remoteAddress: string;
}

/** Fields of the upgrade in log lines about a connection. */
export function upgradeFields({ id, headers }: ClientHead, caller: Caller | undefined): Record<string, string> {
  const { traceparent } = headers;
  const trace = typeof traceparent === 'string' ? traceparent : undefined;
  return orderFields({ requestId: id, accountId: caller?.accountId, keyId: caller?.keyId, trace });
}

/** The session that runs on a connection. */
export interface Session {
  /** A whole message. */
  onMessage(data: Buffer, isBinary: boolean): void;
  onClose(): void;
  /** The connection is about to be closed for this reason: sends the client an error, where the protocol has errors. */
  refuse(error: GatewayError): void;
  /** Nothing runs: the connection may be closed, or is idle. */
  readonly isIdle: boolean;
  /** The gateway stops: closes as soon as nothing runs. */
  drain(): void;
  /** It has been open as long as it may. */
  expire(): void;
}

/** The parts of a connection. */
export interface ConnectionParts {
  readonly socket: WebSocket;
  /** The stream that the WebSocket reads and writes. */
  readonly stream: Duplex;
  readonly head: ClientHead;
  readonly counts: SocketCounts;
  readonly now: () => number;
  /** Takes memory for its account, or gives it back where negative; returns why there is none. */
  readonly take: (bytes: number) => GatewayError | undefined;
}

export class Connection {
  readonly head: ClientHead;
  readonly openedAt: number;
  /** Monotonic milliseconds of the last message, either way. */
  usedAt: number;
  /** Monotonic milliseconds of the last ping. */
  pingedAt: number;
  /** The last ping was answered. */
  hasAnswered = true;
  /** Set while the client does not read what waits for it. */
  blockedSince: number | undefined;
  session: Session | undefined;
  readonly arrivals: Arrivals;
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  readonly #counts: SocketCounts;
  readonly #now: () => number;
  readonly #take: ConnectionParts['take'];
  #isPaused = false;
  /** More waits for the client than may: it is not read, so that it causes no more. */
  #isFull = false;

  constructor({ socket, stream, head, counts, now, take }: ConnectionParts) {
    this.#socket = socket;
    this.#stream = stream;
    this.head = head;
    this.#counts = counts;
    this.#now = now;
    this.#take = take;
    this.arrivals = new Arrivals(take, now);
    answerPings(socket);
    this.openedAt = now();
    this.usedAt = this.openedAt;
    this.pingedAt = this.openedAt;
  }

  get isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  /** undefined: the message is on its way. Else resolves when the client has read enough, or is gone. */
  send(data: string | Buffer, binary = false): Promise<void> | undefined {
    const socket = this.#socket;
    if (socket.readyState !== WebSocket.OPEN) return undefined;
    this.usedAt = this.#now();
    this.#counts.bytesOut += Buffer.byteLength(data);
    if (socket.bufferedAmount < waitAboveBytes) {
      socket.send(data, { binary });
      return undefined;
    }
    this.blockedSince ??= this.usedAt;
    return new Promise((resolve) => {
      socket.send(data, { binary }, () => {
        this.blockedSince = this.#isFull ? this.#now() : undefined;
        resolve();
      });
    });
  }

  /** Like `send`, without a wait for the end; a client that causes it and does not read is cut. */
  say(data: string): void {
    if (this.#socket.bufferedAmount < waitAboveBytes) void this.send(data);
    else this.terminate();
  }

  /** Whether so many more bytes may be kept for its account; they are counted if so. Negative: bytes are given back. */
  keep(bytes: number): boolean {
    return this.#take(bytes) === undefined;
  }

  ping(): void {
    this.pingedAt = this.#now();
    this.hasAnswered = false;
    this.#socket.ping();
  }

  /** Stops reading from the client, and reads on. */
  pause(): void {
    this.#isPaused = true;
    this.#applyPause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#applyPause();
  }

  /** A client that has caused more than it reads is read again once it has read that. */
  waitForReader(): void {
    if (this.#isFull || this.#socket.bufferedAmount < waitAboveBytes) return;
    this.#isFull = true;
    this.blockedSince ??= this.#now();
    this.#applyPause();
    this.#stream.once('drain', () => {
      this.#isFull = false;
      this.blockedSince = undefined;
      this.#applyPause();
    });
  }

  #applyPause(): void {
    if (this.#isPaused || this.#isFull) {
      this.arrivals.pause();
      this.#socket.pause();
    } else {
      this.arrivals.resume();
      this.#socket.resume();
    }
  }

  /** Closes the connection; what still comes is not kept. */
  refuse(error: GatewayError): void {
    this.session?.refuse(error);
    this.#stream.removeAllListeners('data');
    this.close(
      error.kind === 'overloaded' || error.retryAfterMs !== undefined ? closeCode.later : closeCode.policy,
      error.message,
    );
    this.#stream.resume();
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }

  terminate(): void {
    this.#socket.terminate();
  }
}
