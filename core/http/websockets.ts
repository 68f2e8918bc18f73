/** WebSocket upgrades: passes sockets to the plugin of their address, limits and counts them, closes them on shutdown. */
import type { IncomingMessage } from 'node:http';
import type { BlockList } from 'node:net';
import type { Duplex } from 'node:stream';
import type { PluginInstance, SocketEndpoint } from '../contract/contract.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Log } from '../contract/host-tools.ts';
import type { Answer } from '../contract/message.ts';
import { checkHead, refuseSocket } from './head-checks.ts';
import { type InFlightMember, InFlightSet } from './in-flight-set.ts';
import { IncomingRequest } from './incoming-request.ts';

export interface WebSocketGateOptions {
  /** The path as it is routed. */
  readonly normalize: (path: string) => string;
  readonly newId: () => string;
  /** The refusal of an upgrade in the protocol of its path. */
  readonly render: (error: unknown, id: string, request: IncomingRequest) => Answer;
  /** The plugins' WebSocket endpoints by path. */
  readonly endpoints: ReadonlyMap<string, SocketEndpoint>;
  readonly limits: SocketLimits;
  readonly log: Log;
}

export interface SocketLimits {
  /** Most sockets open at once. */
  readonly maxSockets: number;
  readonly maxHeaders: number;
  readonly proxies?: BlockList | undefined;
}

interface OpenSocket extends InFlightMember {
  readonly socket: Duplex;
  readonly endpoint: SocketEndpoint;
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
    const { endpoints, normalize, newId, log } = this.#options;
    const mark = incoming.url!.indexOf('?');
    const written = mark === -1 ? incoming.url! : incoming.url!.slice(0, mark);
    // Some clients put a slash too many behind their base address; for requests the router ignores it.
    const path = normalize(written.replace(/^\/{2,}/, '/'));
    const search = mark === -1 ? '' : incoming.url!.slice(mark);
    const request = new IncomingRequest(incoming, path, search, {}, this.#limits.proxies);
    const id = newId();
    const refuse = (error: unknown) => {
      if (!socket.destroyed) refuseSocket(socket, withId(this.#options.render(error, id, request), id));
    };
    const endpoint = endpoints.get(path);
    if (endpoint === undefined) return void refuse(noSocket());
    const refusal = this.#refusal(incoming);
    if (refusal !== undefined) return void refuse(refusal);
    this.#count(socket, endpoint);
    try {
      endpoint.accept(incoming, socket, head, { id, request, refuse });
    } catch (error) {
      log.error({ error, request_id: id, path }, 'the socket failed inside the gateway');
      socket.destroy();
    }
  }

  /** Refuses new sockets from now on. */
  shut(): void {
    this.#closing = true;
  }

  /**
   * Ends every socket after its pending writes, or lets its endpoint drain it, and resolves when all are closed; destroys sockets
   * that peers keep open.
   */
  async close(deadlineMs: number): Promise<void> {
    this.shut();
    const draining = new Set<SocketEndpoint>();
    this.#open.forEach(({ socket, endpoint }) => {
      if (endpoint.drain === undefined) socket.end();
      else draining.add(endpoint);
    });
    for (const endpoint of draining) endpoint.drain?.();
    await this.#empty(draining.size === 0 ? Math.min(deadlineMs, hangUpMs) : deadlineMs + hangUpMs);
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

  #count(socket: Duplex, endpoint: SocketEndpoint): void {
    const member = { inFlightIndex: -1, socket, endpoint };
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
  return new Map(
    instances.flatMap(({ addresses }) => addresses?.sockets ?? []).map((endpoint) => [endpoint.path, endpoint]),
  );
}

function withId(answer: Answer, id: string): Answer {
  return { ...answer, headers: { ...answer.headers, 'x-request-id': id } };
}

/** Coding clients fall back to plain HTTPS at once on a 426, and only after many tries on anything else. */
const noSocket = () =>
  new GatewayError('upgrade_required', 'There is no WebSocket at this address: send a plain HTTP request.');
