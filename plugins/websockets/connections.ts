/** The WebSockets of clients: who may open how many, pings, time limits, and their end when the gateway stops. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws';
import type { Host, Upgrade } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { ClientRequest, Headers } from '../../core/contract/message.ts';
import { type Caller, keyring } from '../common/domain/accounts.ts';
import type { SocketCounts } from '../common/domain/admin/sockets.ts';
import type { WebSocketsConfig } from './config.ts';
import { type ClientHead, Connection, closeCode, type Session } from './connection.ts';
import { Memory } from './memory.ts';

/** An upgrade as Node gives it, before it is accepted. */
export interface Arrival {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly upgrade: Upgrade;
}

/** A place among the connections of an account. */
export interface Place {
  /** The account, or the address of a client without one. */
  readonly owner: string;
  release(): void;
}

/** Which codes are counted by themselves; clients may send any. */
const countedCodes = new Set([1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009, 1011, 1012, 1013]);
/** Browsers cannot set headers: they send the key as a subprotocol with this prefix. */
export const keyProtocol = 'openai-insecure-api-key.';
/** How long a client has to answer a close. */
const hangUpMs = 3_000;

export class Connections {
  readonly #host: Pick<Host, 'find' | 'clock'>;
  readonly #open = new Set<Connection>();
  /** Open and opening connections by account and by key. */
  readonly #held = new Map<string, number>();
  readonly #counts = new Map<string, SocketCounts>();
  #config: WebSocketsConfig;
  #server: WebSocketServer;
  #draining = false;
  readonly #memory: Memory;

  constructor(host: Pick<Host, 'find' | 'clock'>, config: WebSocketsConfig) {
    this.#host = host;
    this.#config = config;
    this.#memory = new Memory(config);
    this.#server = serverFor(config);
  }

  get config(): WebSocketsConfig {
    return this.#config;
  }

  /** Applies to connections from now on. */
  applyConfig(config: WebSocketsConfig): void {
    this.#config = config;
    this.#memory.applyConfig(config);
    this.#server = serverFor(config);
  }

  counts(): ReadonlyMap<string, SocketCounts> {
    return this.#counts;
  }

  /** Counts of one protocol. */
  countsOf(protocol: string): SocketCounts {
    let counts = this.#counts.get(protocol);
    if (counts === undefined) {
      counts = { open: 0, turns: 0, bytesIn: 0, bytesOut: 0, closes: new Map() };
      this.#counts.set(protocol, counts);
    }
    return counts;
  }

  /** The caller of an upgrade; undefined: the gateway has no accounts. Rejects as a request would be refused. */
  async authenticate(request: ClientRequest): Promise<Caller | undefined> {
    return await this.#host.find(keyring)?.authenticate(request);
  }

  /** A place among the connections of this account and key. Throws when they have too many. */
  reserve(caller: Caller | undefined, remoteAddress: string): Place {
    if (this.#draining) throw new GatewayError('overloaded', 'The gateway is shutting down.');
    const { per_account: perAccount, per_key: perKey } = this.#config;
    const places =
      caller === undefined
        ? [{ name: `address ${remoteAddress}`, most: perAccount }]
        : [
            { name: `account ${caller.accountId}`, most: perAccount },
            { name: `key ${caller.keyId}`, most: perKey },
          ];
    for (const { name, most } of places) if ((this.#held.get(name) ?? 0) >= most) throw tooMany(name);
    for (const { name } of places) this.#held.set(name, (this.#held.get(name) ?? 0) + 1);
    const release = () => {
      for (const { name } of places) {
        const left = this.#held.get(name)! - 1;
        if (left > 0) this.#held.set(name, left);
        else this.#held.delete(name);
      }
    };
    return { owner: places[0]!.name, release };
  }

  /** Answers the upgrade and begins the session; the place is given back when the connection has ended. */
  accept(arrival: Arrival, protocol: string, place: Place, begin: (connection: Connection) => Session): void {
    const { request, socket, head, upgrade } = arrival;
    if (socket.destroyed) return void place.release();
    let opened = false;
    ids.set(request, upgrade.id);
    // A handshake that `ws` refuses ends the socket.
    socket.once('close', () => {
      if (!opened) place.release();
    });
    this.#server.handleUpgrade(request, socket, head, (client) => {
      opened = true;
      this.#enter(client, arrival, protocol, place, begin);
    });
  }

  #enter(
    client: WebSocket,
    { socket: stream, upgrade }: Arrival,
    protocol: string,
    { owner, release }: Place,
    begin: (connection: Connection) => Session,
  ): void {
    const { clock } = this.#host;
    const counts = this.countsOf(protocol);
    const connection = new Connection({
      socket: client,
      stream,
      head: headOf(upgrade),
      counts,
      now: () => clock.monotonic(),
      take: (bytes) => this.#memory.take(owner, bytes),
    });
    counts.open += 1;
    this.#open.add(connection);
    const session = begin(connection);
    connection.session = session;
    this.#follow(connection, stream, client);
    client.on('message', (data: Buffer, isBinary: boolean) => {
      // After a close nothing is read any more.
      if (!connection.isOpen) return;
      connection.usedAt = clock.monotonic();
      counts.bytesIn += data.length;
      session.onMessage(data, isBinary);
    });
    client.on('pong', () => {
      connection.hasAnswered = true;
    });
    client.once('close', (code) => {
      this.#open.delete(connection);
      counts.open -= 1;
      const counted = countedCodes.has(code) ? code : 0;
      counts.closes.set(counted, (counts.closes.get(counted) ?? 0) + 1);
      connection.arrivals.release();
      release();
      session.onClose();
    });
    if (this.#draining) session.drain();
  }

  /** Counts what arrives before `ws` makes messages of it, and looks at what they have caused after it. */
  #follow(connection: Connection, stream: Duplex, client: WebSocket): void {
    const count = (chunk: Buffer) => {
      const refusal = connection.arrivals.read(chunk, this.#config);
      if (refusal !== undefined) connection.refuse(refusal);
    };
    const look = () => connection.waitForReader();
    stream.prependListener('data', count).on('data', look);
    // `ws` closes the connection with the right code and reads no more of it.
    client.on('error', () => void stream.off('data', count));
  }

  /** Every connection closes as soon as nothing runs on it; no other is opened. */
  drain(): void {
    this.#draining = true;
    for (const { session } of this.#open) session?.drain();
  }

  /** Regular work: pings, and the ends of connections that are silent, stalled or too old. */
  sweep(): void {
    const now = this.#host.clock.monotonic();
    for (const connection of this.#open) this.#check(connection, now);
  }

  #check(connection: Connection, now: number): void {
    const { ping, idle, longest, stall } = this.#config;
    const { pingedAt, hasAnswered, blockedSince, usedAt, openedAt, session, arrivals } = connection;
    const isStalled = (blockedSince !== undefined && now - blockedSince > stall) || arrivals.isStalled(this.#config);
    // A pong cannot come in the middle of a frame.
    const heardAt = Math.max(pingedAt, arrivals.lastAt);
    const isLost = !hasAnswered && !arrivals.isPaused && now - heardAt > ping;
    if (isStalled || isLost) connection.terminate();
    else if (now - openedAt > longest) session?.expire();
    else if (session?.isIdle === true && now - usedAt > idle)
      connection.close(closeCode.goingAway, 'idle for too long');
    else if (hasAnswered && now - Math.max(usedAt, pingedAt) > ping) connection.ping();
  }
}

function serverFor({ message }: WebSocketsConfig): WebSocketServer {
  // The types do not know `closeTimeout` yet.
  const options: ServerOptions & { readonly closeTimeout: number } = {
    noServer: true,
    maxPayload: message,
    autoPong: false,
    // A deflated message is small on the wire and costs memory for each connection.
    perMessageDeflate: false,
    clientTracking: false,
    closeTimeout: hangUpMs,
    // A subprotocol with a key is not returned.
    handleProtocols: (offered) => [...offered].find((name) => !name.startsWith(keyProtocol)) ?? false,
  };
  const server = new WebSocketServer(options);
  server.on('headers', (lines: string[], request: IncomingMessage) => {
    const id = ids.get(request);
    if (id !== undefined) lines.push(`x-request-id: ${id}`);
  });
  return server;
}

/** Request ids of upgrades that are being answered. */
const ids = new WeakMap<IncomingMessage, string>();

const ofConnection =
  /^(?:connection|upgrade|sec-websocket-.*|host|content-.*|transfer-encoding|te|trailer|accept.*|idempotency-key|expect)$/;

/** Values of the upgrade that the turns of a connection keep. */
export function headOf({ id, request }: Upgrade): ClientHead {
  const headers: Headers = {};
  for (const [name, value] of Object.entries(request.headers)) if (!ofConnection.test(name)) headers[name] = value;
  const search = request.query.size === 0 ? '' : `?${request.query}`;
  return { id, headers, search, remoteAddress: request.remoteAddress };
}

function tooMany(name: string): GatewayError {
  const [kind] = name.split(' ', 1);
  return new GatewayError('rate_limited', `Too many WebSockets of this ${kind} are open.`, {
    code: 'websockets',
    retryAfterMs: 5_000,
  });
}
