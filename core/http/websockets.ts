/** WebSocket upgrades: passes sockets to the plugin of their address, limits and counts them, closes them on shutdown. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { PluginInstance, SocketEndpoint } from '../contract/contract.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Log } from '../contract/host-tools.ts';
import { checkHead, refuseSocket } from './head-checks.ts';
import { type InFlightMember, InFlightSet } from './in-flight-set.ts';

export interface WebSocketGateOptions {
  /** The plugins' WebSocket endpoints by path. */
  readonly endpoints: ReadonlyMap<string, SocketEndpoint>;
  /** Plugins with the gateway's own error shape. */
  readonly errorShapes: readonly PluginInstance[];
  readonly limits: SocketLimits;
  readonly log: Log;
}

export interface SocketLimits {
  /** Most sockets open at once. */
  readonly maxSockets: number;
  readonly maxHeaders: number;
}

interface OpenSocket extends InFlightMember {
  readonly socket: Duplex;
}

/** How long a peer has to close its half after ours was closed. */
const hangUpMs = 5_000;

export class WebSocketGate {
  readonly #options: WebSocketGateOptions;
  readonly #open = new InFlightSet<OpenSocket>();
  #limits: SocketLimits;
  #closing = false;
  #emptied: (() => void) | undefined;

  constructor(options: WebSocketGateOptions) {
    this.#options = options;
    this.#limits = options.limits;
  }

  /** Limits for sockets from now on. */
  applyConfig(limits: SocketLimits): void {
    this.#limits = limits;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Answers Node's `upgrade` event. Never throws. */
  handleUpgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
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

  /** Refuses new sockets from now on. */
  shut(): void {
    this.#closing = true;
  }

  /** Ends every socket after its pending writes and resolves when all are closed; destroys sockets that peers keep open. */
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
    const member = { inFlightIndex: -1, socket };
    this.#open.add(member);
    let timer: NodeJS.Timeout | undefined;
    // A peer that never closes its half would keep the socket counted for ever.
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

/** The endpoints of all instances by path; the wiring check has refused duplicates. */
export function socketEndpoints(instances: readonly PluginInstance[]): Map<string, SocketEndpoint> {
  return new Map(instances.flatMap(({ sockets = [] }) => sockets).map((endpoint) => [endpoint.path, endpoint]));
}

/** Coding clients fall back to plain HTTPS at once on a 426, and only after many tries on anything else. */
const noSocket = () =>
  new GatewayError('upgrade_required', 'There is no WebSocket at this address: send a plain HTTP request.');
