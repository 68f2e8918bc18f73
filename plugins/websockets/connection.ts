/** A client's WebSocket: sends with backpressure, counts bytes, remembers when it was last used. */
import { WebSocket } from 'ws';
import type { Headers } from '../../core/contract/message.ts';
import type { SocketCounts } from '../common/domain/admin/sockets.ts';

/** Unsent bytes above which what is sent waits for the client. */
const waitAboveBytes = 256 * 1024;

/** Close codes: RFC 6455, section 7.4.1, and IANA's registry for 1012 and 1013. */
export const closeCode = { goingAway: 1001, unsupported: 1003, policy: 1008, failed: 1011, restart: 1012 } as const;

/** The head of the upgrade, as far as its turns need it. */
export interface ClientHead {
  readonly id: string;
  /** Without what belongs to the connection. */
  readonly headers: Readonly<Headers>;
  /** With the question mark; empty: none. */
  readonly search: string;
  readonly remoteAddress: string;
}

/** What runs on a connection. */
export interface Session {
  /** A whole message. */
  onMessage(data: Buffer, isBinary: boolean): void;
  onClose(): void;
  /** Nothing runs: the connection may be closed, or is idle. */
  readonly isIdle: boolean;
  /** The gateway stops: closes as soon as nothing runs. */
  drain(): void;
  /** It has been open as long as it may. */
  expire(): void;
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
  readonly #socket: WebSocket;
  readonly #counts: SocketCounts;
  readonly #now: () => number;

  constructor(socket: WebSocket, head: ClientHead, counts: SocketCounts, now: () => number) {
    this.#socket = socket;
    this.head = head;
    this.#counts = counts;
    this.#now = now;
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
        this.blockedSince = undefined;
        resolve();
      });
    });
  }

  ping(): void {
    this.pingedAt = this.#now();
    this.hasAnswered = false;
    this.#socket.ping();
  }

  /** Stops reading from the client, and reads on. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }

  terminate(): void {
    this.#socket.terminate();
  }
}
