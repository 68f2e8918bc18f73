/** A server to which people or accounts connect by OAuth: each has a connection and lists of their own. */
import type { Host } from '../../../core/contract/contract.ts';
import { consolePages } from '../../common/domain/admin/alerts.ts';
import type { ServerConfig } from '../config.ts';
import { Unavailable } from '../errors.ts';
import { ProtocolServer } from '../protocol-server.ts';
import type { Listed, Upstream } from '../upstream.ts';
import type { Flow, Server } from './flow.ts';
import { ownerOf, type Who } from './owner.ts';
import type { ConnectionStore } from './store.ts';
import { ConnectedTokens } from './tokens.ts';

/** Connections that are open at once in a process; the one that was used longest ago is closed. */
const mostOpen = 1_000;

export interface Connecting {
  readonly store: ConnectionStore;
  readonly flow: Flow;
}

interface Open {
  readonly upstream: ProtocolServer;
  readonly tokens: ConnectedTokens;
}

export class ConnectedServer implements Upstream {
  readonly name: string;
  readonly settings: ServerConfig;
  readonly #host: Host;
  readonly #keepMs: number;
  readonly #connecting: Connecting;
  readonly #open = new Map<string, Open>();

  constructor(host: Host, name: string, settings: ServerConfig, more: { keepMs: number; connecting: Connecting }) {
    this.name = name;
    this.settings = settings;
    this.#host = host;
    this.#keepMs = more.keepMs;
    this.#connecting = more.connecting;
  }

  /** The server as its owner has connected it. */
  as(who: Who): Upstream {
    const owner = ownerOf(this.settings.connect!, who);
    if (owner === undefined) return this;
    const known = this.#open.get(owner);
    if (known !== undefined) {
      this.#open.delete(owner);
      this.#open.set(owner, known);
      return known.upstream;
    }
    const { name, settings } = this;
    const page = this.#host.find(consolePages)?.address('/pages/tools') ?? 'the console';
    const server = settings as Server;
    const tokens = new ConnectedTokens({ host: this.#host, ...this.#connecting, name, server, owner, page });
    const upstream = new ProtocolServer(this.#host, name, settings, { keepMs: this.#keepMs, tokens });
    if (this.#open.size >= mostOpen) this.forget(this.#open.keys().next().value!);
    this.#open.set(owner, { upstream, tokens });
    return upstream;
  }

  /** Its connection has changed. */
  forget(owner: string): void {
    const open = this.#open.get(owner);
    this.#open.delete(owner);
    open?.tokens.forget();
    void open?.upstream.close();
  }

  list<K extends keyof Listed>(): Promise<Listed[K]> {
    return Promise.reject(unconnected());
  }

  request(): Promise<object> {
    return Promise.reject(unconnected());
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ upstream }) => upstream.close()));
  }
}

const unconnected = () => new Unavailable('This server is connected by people, and this key belongs to none.', false);
