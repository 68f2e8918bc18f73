/** Live numbers: one WebSocket for each page, which receives changes once a second. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { isDeepStrictEqual } from 'node:util';
import { type RawData, WebSocket, WebSocketServer } from 'ws';
import type { Host, SocketEndpoint } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Clock } from '../../core/contract/host-tools.ts';
import { toGatewayError } from '../../core/contract/upstream-failures.ts';
import { includes } from '../common/domain/organizations/rights.ts';
import { originOf } from '../common/kit/pages/origin.ts';
import type { Actor } from './actor.ts';
import { Pulse, type Sees } from './live-pulse.ts';
import { refuseForeignOrigin } from './origin.ts';
import { nameAccount } from './people/people-service.ts';
import type { People } from './people.ts';

export const livePath = '/console/live';
const mostClients = 1_000;
const mostForOne = 20;
const mostBuffered = 64 * 1024;
const mostMessageBytes = 1_024;
const tickMs = 1_000;
/** Interval of the checks that a client is still connected and signed in. */
const checkMs = 30_000;

export interface LiveClient {
  readonly socket: WebSocket;
  readonly actor: Actor;
  /** undefined: sees the whole gateway, not an account. */
  readonly accountId: string | undefined;
  /** What their role in the account includes. */
  readonly sees: Sees;
  readonly headers: Headers;
  /** The last message of each topic. */
  readonly sent: Map<string, string>;
  answered: boolean;
}

export interface LiveParts {
  readonly host: Pick<Host, 'find' | 'every' | 'log'>;
  readonly clock: Clock;
  readonly people: People;
  readonly origin: string;
}

export class Live {
  readonly #parts: LiveParts;
  readonly #server = new WebSocketServer({ noServer: true, maxPayload: mostMessageBytes, perMessageDeflate: false });
  readonly #clients = new Set<LiveClient>();
  readonly #pulse: Pulse;
  #ticking = false;

  constructor(parts: LiveParts) {
    this.#parts = parts;
    this.#pulse = new Pulse(parts.host, parts.clock);
  }

  get endpoint(): SocketEndpoint {
    return { path: livePath, accept: (request, socket, head) => void this.#accept(request, socket, head) };
  }

  get size(): number {
    return this.#clients.size;
  }

  start(): void {
    this.#parts.host.every(tickMs, 'tell live pages', () => this.#tick());
    this.#parts.host.every(checkMs, 'check live pages', () => (this.#clients.size === 0 ? undefined : this.#check()));
  }

  /** Pages connect to another process, or ask by themselves. */
  stop(): void {
    for (const { socket } of this.#clients) socket.close(1001, 'the gateway stops');
  }

  async #accept(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const onError = () => socket.destroy();
    socket.on('error', onError);
    try {
      const client = await this.#admit(request);
      if (socket.destroyed) return;
      socket.off('error', onError);
      this.#server.handleUpgrade(request, socket, head, (open) => this.#enter({ ...client, socket: open }));
    } catch (error) {
      const { status, message } = toGatewayError(error);
      const body = JSON.stringify({ error: { code: 'refused', message } });
      socket.end(
        `HTTP/1.1 ${status} Refused\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
      );
    }
  }

  /** A page of another site would connect with the browser's cookies, so its Origin is checked. */
  async #admit(request: IncomingMessage): Promise<Omit<LiveClient, 'socket'>> {
    const { people, origin: configured } = this.#parts;
    const headers = new Headers();
    for (const name of ['cookie', 'authorization'] as const) {
      const value = request.headers[name];
      if (value !== undefined) headers.set(name, value);
    }
    const named = new URL(request.url ?? '/', 'http://gateway').searchParams.get('account');
    if (named !== null) nameAccount(headers, named);
    const sent = request.headers.origin;
    if (sent === undefined && !headers.has('authorization'))
      throw new GatewayError('forbidden', 'A browser says where its page comes from.');
    refuseForeignOrigin(sent, originOf(configured, request.headers.host));
    const actor = await people.identify(headers);
    if (actor === undefined) throw new GatewayError('unauthenticated', 'Sign in first.');
    if (this.#isFull(actor)) throw new GatewayError('overloaded', 'Too many live pages are open.');
    const member = await this.#memberOf(actor);
    return { actor, ...member, headers, sent: new Map(), answered: true };
  }

  async #memberOf(actor: Actor): Promise<Pick<LiveClient, 'accountId' | 'sees'>> {
    if (actor.role !== 'client') return { accountId: undefined, sees: { balance: true, tasks: true } };
    const { accountId, role } = await this.#parts.people.membershipOf(actor);
    return { accountId, sees: { balance: includes(role, 'wallet'), tasks: includes(role, 'work') } };
  }

  /** Pages of somebody who is no member any more, or may see something else, end at once and ask again. */
  async membersChanged(accountId: string): Promise<void> {
    for (const client of [...this.#clients]) if (client.accountId === accountId) await this.#recheck(client);
  }

  #isFull({ id }: Actor): boolean {
    if (this.#clients.size >= mostClients) return true;
    return [...this.#clients].filter(({ actor }) => actor.id === id).length >= mostForOne;
  }

  #enter(client: LiveClient): void {
    const { socket } = client;
    // Others may have entered while this one was looked up.
    if (this.#isFull(client.actor)) return void socket.close(1013, 'too many live pages are open');
    this.#clients.add(client);
    socket.on('close', () => this.#clients.delete(client));
    socket.on('error', () => socket.terminate());
    socket.on('pong', () => {
      client.answered = true;
    });
    // Pages have nothing to say here.
    socket.on('message', (_data: RawData) => undefined);
  }

  /** One look for all pages together. */
  #tick(): Promise<void> | undefined {
    return this.#ticking || this.#clients.size === 0 ? undefined : this.#beat();
  }

  async #beat(): Promise<void> {
    this.#ticking = true;
    try {
      for (const [client, message] of await this.#pulse.beat([...this.#clients])) send(client, message);
    } finally {
      this.#ticking = false;
    }
  }

  async #check(): Promise<void> {
    for (const client of [...this.#clients]) {
      if (!client.answered) {
        client.socket.terminate();
        continue;
      }
      client.answered = false;
      client.socket.ping();
      await this.#recheck(client);
    }
  }

  async #recheck({ socket, headers, actor, accountId, sees }: LiveClient): Promise<void> {
    const still = await this.#parts.people.identify(headers);
    if (still?.id !== actor.id || still.role !== actor.role) return socket.close(4401, 'signed out');
    const now = await this.#memberOf(still).catch(() => undefined);
    if (!isDeepStrictEqual(now, { accountId, sees })) socket.close(1012, 'another account');
  }
}

/** Closes the socket of a client that does not read. */
function send({ socket }: LiveClient, message: string): void {
  if (socket.readyState !== WebSocket.OPEN) return;
  if (socket.bufferedAmount > mostBuffered) socket.terminate();
  else socket.send(message);
}
