/** What people do about connections on the page of tools: see them, begin one, end its way through the browser, take it away. */
import type { Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { RotatedSecret } from '../../../core/contract/secret.ts';
import { database } from '../../common/domain/database.ts';
import { consoleSite } from '../../common/domain/pages/console-site.ts';
import { KeySource, keyVariable } from '../../common/kit/secrets/key-source.ts';
import { type Generation, loaded } from '../generation.ts';
import type { Connecting } from './connected.ts';
import type { Server } from './flow.ts';
import { ownerOf } from './owner.ts';

/** A person in the account that they have chosen. */
export interface Person {
  readonly accountId: string;
  readonly person: string;
}

export interface ShownConnection {
  readonly server: string;
  readonly per: 'person' | 'account';
  /** `ended`: the server takes it no more. */
  readonly state: 'connected' | 'ended' | 'none';
  readonly since: string | null;
}

export interface BroughtBack {
  readonly state: string;
  readonly code?: string | undefined;
  readonly iss?: string | undefined;
}

const pagePath = '/console/pages/tools';

export class Connections {
  readonly #host: Host;
  readonly #servers: () => Generation;
  readonly #source: KeySource;
  #connecting: Promise<Connecting> | undefined;

  constructor(host: Host, servers: () => Generation) {
    const { commonDirectory: directory, random } = host;
    this.#host = host;
    this.#servers = servers;
    this.#source = new KeySource({ directory, environment: process.env, random });
  }

  /** undefined: no server is connected by people. */
  readonly opened = (): Promise<Connecting> | undefined => {
    const found = this.#host.find(database);
    if (found === undefined) return undefined;
    const { random, clock } = this.#host;
    this.#connecting ??= loaded().then(({ ConnectionStore, Flow }) => ({
      store: new ConnectionStore({ database: found, source: this.#source, clock, random }),
      flow: new Flow(this.#host),
    }));
    return this.#connecting;
  };

  async list(who: Person): Promise<ShownConnection[]> {
    const servers = Object.entries(this.#servers().config.servers).filter(([, { connect }]) => connect !== undefined);
    if (servers.length === 0) return [];
    const { store } = await this.#needed();
    const owned = servers.map(([name, { connect }]) => ({ name, per: connect!.per, owner: ownerOf(connect!, who)! }));
    const rows = await store.list([...new Set(owned.map(({ owner }) => owner))]);
    return owned.map(({ name: server, per, owner }) => {
      const row = rows.find((one) => one.server === server && one.owner === owner);
      if (row === undefined) return { server, per, state: 'none', since: null };
      const state = row.sealed === null ? 'ended' : 'connected';
      return { server, per, state, since: row.connectedAt.toISOString() };
    });
  }

  /** Where the browser goes. `origin`: the page's own, where none is configured. */
  async begin(who: Person, name: string, origin: string): Promise<string> {
    const server = this.#server(name);
    const { flow, store } = await this.#needed();
    const page = (this.#host.find(consoleSite)?.look().origin || origin) + pagePath;
    const { location, started } = await flow.start(server, page);
    const state = await store.begin(name, ownerOf(server.connect, who)!, who.person, started);
    if (state === undefined)
      throw new GatewayError('rate_limited', 'Too many connections were begun. Try again later.', {
        retryAfterMs: 60_000,
      });
    return location;
  }

  /** The server that is connected now. */
  async finish(who: Person, { state, code, iss }: BroughtBack): Promise<string> {
    const { flow, store } = await this.#needed();
    const visit = await store.end(state, who.person);
    // Begun by another person, in another account, or too long ago: it may not be theirs.
    const settings = visit && this.#servers().config.servers[visit.server];
    const isOwn = settings?.connect !== undefined && ownerOf(settings.connect, who) === visit?.owner;
    if (visit === undefined || !isOwn)
      throw new GatewayError('not_found', 'No connection waits for this answer.', { field: 'state' });
    const { server: name, owner, started } = visit;
    if (code === undefined)
      throw new GatewayError('conflict', 'The server was not connected, as it was not allowed there.', {
        field: 'code',
      });
    await store.save(name, owner, await flow.finish(this.#server(name), started, { code, iss }));
    await this.#servers().changed(name, owner);
    return name;
  }

  async remove(who: Person, name: string): Promise<void> {
    await this.end(name, ownerOf(this.#server(name).connect, who)!);
  }

  /** Takes a connection away, and its tokens back where the server is one to connect. */
  async end(name: string, owner: string): Promise<void> {
    const { flow, store } = await this.#needed();
    const connection = await store.read(name, owner);
    const wasThere = await store.remove(name, owner);
    await this.#servers().changed(name, owner);
    const { servers } = this.#servers().config;
    const server = Object.hasOwn(servers, name) ? servers[name] : undefined;
    if (!wasThere || connection?.grant === undefined || server?.connect === undefined) return;
    // It is of no use here any more, whatever the service says.
    await flow.revoke(server as Server, connection.grant).catch((error: unknown) => {
      this.#host.log.info({ server: name, error }, 'the tokens of a connection were not taken back');
    });
  }

  /** For `secrets rotate`: the key that seals vendors' keys seals connections too. */
  rotated(): RotatedSecret[] {
    if (this.#host.find(database) === undefined) return [];
    return [
      {
        setting: keyVariable,
        uses: 'connections to servers of tools',
        secrets: this.#source.read().length,
        rotate: async (givesUp) => {
          const { store } = await this.#needed();
          const { done, left } = await store.reseal(givesUp);
          return { done, left, advice: left === 0 ? 'the others can be removed' : 'the others are still needed' };
        },
      },
    ];
  }

  #server(name: string): Server {
    const { servers } = this.#servers().config;
    const settings = Object.hasOwn(servers, name) ? servers[name] : undefined;
    if (settings?.connect === undefined)
      throw new GatewayError('not_found', 'There is no such server to connect.', { field: 'server' });
    return settings as Server;
  }

  #needed(): Promise<Connecting> {
    const opened = this.opened();
    if (opened === undefined) throw new GatewayError('not_found', 'This gateway keeps no connections.');
    return opened;
  }
}
