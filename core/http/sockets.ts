/** Sockets to upstreams: pools by origin and credential, and each socket for one request at a time. */
import { Client } from 'undici';
import { GatewayError } from '../contract/errors.ts';
import type { UpstreamNetwork } from '../contract/exchange.ts';
import { connectorFor } from '../tools/network.ts';

/** The oldest unused pool is closed when there are more than this. */
const maxPools = 512;

/** An undici client, which keeps one socket. */
export interface Connection {
  readonly client: Client;
  /** Its socket is connected: a request is written as soon as it is dispatched. */
  isOpen: boolean;
}

/** undici keeps a URL for each client and asks it for its origin at each request, which a URL composes again. */
class KnownOrigin extends URL {
  override readonly origin = super.origin;
}

/** The sockets to one origin for one credential. */
export class SocketPool {
  readonly #origin: URL;
  readonly #options: Client.Options;
  readonly #clients = new Set<Client>();
  /** Connected and unused; the one used last is taken first, so that those too many close by themselves. */
  readonly #idle: Connection[] = [];
  /** Requests that have a connection. */
  running = 0;

  constructor(origin: string, connectTimeoutMs: number, network: UpstreamNetwork | undefined) {
    this.#origin = new KnownOrigin(origin);
    this.#options = {
      pipelining: 1,
      allowH2: false,
      connect: connectorFor(connectTimeoutMs, network),
      keepAliveTimeout: 30_000,
      maxHeaderSize: 64 * 1024,
    };
  }

  /** A connection for one request; `end` must follow. */
  take(): Connection {
    this.running += 1;
    return this.#idle.pop() ?? this.#create();
  }

  /** The request of a connection has ended. */
  end(): void {
    this.running -= 1;
  }

  /** The connection is not used after all. */
  giveBack(connection: Connection): void {
    this.end();
    if (connection.isOpen) this.#idle.push(connection);
    else this.#drop(connection);
  }

  #create(): Connection {
    const client = new Client(this.#origin, this.#options);
    const connection: Connection = { client, isOpen: false };
    this.#clients.add(client);
    client.on('connect', () => {
      connection.isOpen = true;
    });
    client.on('disconnect', () => {
      connection.isOpen = false;
      const at = this.#idle.indexOf(connection);
      if (at === -1) return;
      this.#idle.splice(at, 1);
      this.#drop(connection);
    });
    // Its request has ended, however it did, and it can take another one.
    client.on('drain', () => {
      if (connection.isOpen) this.#idle.push(connection);
      else this.#drop(connection);
    });
    return connection;
  }

  #drop({ client }: Connection): void {
    if (this.#clients.delete(client)) client.close().catch(() => {});
  }

  async destroy(): Promise<void> {
    this.#idle.length = 0;
    await Promise.allSettled([...this.#clients].map((client) => client.destroy()));
  }
}

/** Pools by origin, credential and network: a socket never carries the requests of two credentials. */
export class Pools {
  readonly #pools = new Map<string, SocketPool>();
  readonly #maxSockets: number;

  /** `maxSockets`: per origin and credential. */
  constructor(maxSockets: number) {
    this.#maxSockets = maxSockets;
  }

  /** Throws `overloaded` when all sockets are in use: requests do not queue for sockets. */
  for(origin: string, credential: string, connectTimeoutMs: number, network?: UpstreamNetwork): SocketPool {
    const direct = `${credential} ${origin} ${connectTimeoutMs}`;
    const name = network === undefined ? direct : `${direct} ${network.name}`;
    const found = this.#pools.get(name) ?? this.#make(name, origin, connectTimeoutMs, network);
    if (found.running < this.#maxSockets) return found;
    throw new GatewayError('overloaded', 'Too many requests to this model run at the same time.', {
      code: 'upstream_connections',
      retryAfterMs: 1_000,
    });
  }

  #make(name: string, origin: string, connectTimeoutMs: number, network: UpstreamNetwork | undefined): SocketPool {
    if (this.#pools.size >= maxPools) this.#closeOldest();
    const made = new SocketPool(origin, connectTimeoutMs, network);
    this.#pools.set(name, made);
    return made;
  }

  #closeOldest(): void {
    for (const [name, pool] of this.#pools) {
      if (pool.running > 0) continue;
      this.#pools.delete(name);
      void pool.destroy();
      return;
    }
  }

  async close(): Promise<void> {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    await Promise.allSettled(pools.map((pool) => pool.destroy()));
  }
}
