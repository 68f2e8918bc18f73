/** Upgrades: WebSockets are handed to the plugin whose address they name, counted, and closed when the gateway stops. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { Bag, type BagMember } from './bag.ts';
import type { Log, Part, SocketEndpoint } from './contract.ts';
import { GatewayError } from './errors.ts';
import { checkHead, refuseSocket } from './head.ts';

export interface SocketDoorOptions {
  /** What the plugins of the gateway bring, by path. */
  readonly endpoints: ReadonlyMap<string, SocketEndpoint>;
  /** Parts that have the gateway's own error shape. */
  readonly errorShapes: readonly Part[];
  readonly limits: SocketLimits;
  readonly log: Log;
}

export interface SocketLimits {
  /** Most sockets that are open at once. */
  readonly maxSockets: number;
  readonly maxHeaders: number;
}

interface OpenSocket extends BagMember {
  readonly socket: Duplex;
}

/** Time in which a peer that was told the end should have hung up, in milliseconds. */
const hangUpMs = 5_000;

export class SocketDoor {
  readonly #options: SocketDoorOptions;
  readonly #open = new Bag<OpenSocket>();
  #limits: SocketLimits;
  #closing = false;
  #emptied: (() => void) | undefined;

  constructor(options: SocketDoorOptions) {
    this.#options = options;
    this.#limits = options.limits;
  }

  /** Other limits for sockets that come from now on. */
  follow(limits: SocketLimits): void {
    this.#limits = limits;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Answers Node's `upgrade` event. Never throws. */
  enter(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => {});
    const path = incoming.url!.split('?', 1)[0]!;
    const endpoint = this.#options.endpoints.get(path);
    const { errorShapes } = this.#options;
    if (endpoint === undefined) return void refuseSocket(socket, noSocket(), errorShapes);
    const refusal = this.#refusal(incoming);
    if (refusal !== undefined) return void refuseSocket(socket, refusal, errorShapes);
    this.#count(socket);
    try {
      endpoint.accept(incoming, socket, head);
    } catch (error) {
      this.#options.log.error({ error, path }, 'the socket failed inside the gateway');
      socket.destroy();
    }
  }

  /** From now on nobody enters. */
  shut(): void {
    this.#closing = true;
  }

  /** Ends every socket after what was written to it, and resolves when all are closed; who does not hang up is cut off. */
  async close(deadlineMs: number): Promise<void> {
    this.shut();
    this.#open.forEach(({ socket }) => void socket.end());
    await this.#empty(Math.min(deadlineMs, hangUpMs));
    this.#open.forEach(({ socket }) => void socket.destroy());
    await this.#empty(hangUpMs);
  }

  #refusal(incoming: IncomingMessage): GatewayError | undefined {
    const { maxHeaders, maxSockets } = this.#limits;
    if (this.#closing) return new GatewayError('overloaded', 'The gateway is shutting down.');
    if (this.#open.size >= maxSockets) return new GatewayError('overloaded', 'Too many sockets are open.');
    try {
      checkHead(incoming, maxHeaders);
      return undefined;
    } catch (error) {
      return error as GatewayError;
    }
  }

  #count(socket: Duplex): void {
    const member = { bagIndex: -1, socket };
    this.#open.add(member);
    let timer: NodeJS.Timeout | undefined;
    // Who was told the end and does not hang up would keep his half of the connection, and his place here, for ever.
    socket.once('finish', () => {
      timer = setTimeout(() => void socket.destroy(), hangUpMs);
    });
    socket.once('close', () => {
      clearTimeout(timer);
      this.#open.delete(member);
      if (this.#open.size === 0) this.#emptied?.();
    });
  }

  #empty(withinMs: number): Promise<void> {
    if (this.#open.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, withinMs);
      this.#emptied = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** The addresses of all parts; the wiring check has made sure that no two are the same. */
export function socketEndpoints(parts: readonly Part[]): Map<string, SocketEndpoint> {
  return new Map(parts.flatMap(({ sockets = [] }) => sockets).map((endpoint) => [endpoint.path, endpoint]));
}

/** Coding clients fall back to plain HTTPS at once on a 426, and only after many tries on anything else. */
const noSocket = () =>
  new GatewayError('upgrade_required', 'There is no WebSocket at this address: send a plain HTTP request.');
