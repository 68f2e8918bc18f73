/** The servers of one configuration: opened by the first request that needs them, closed when the last one that uses them has ended. */
import type { Exchange, Host } from '../../core/contract/contract.ts';
import type { NamedServer } from '../common/wire/hosted-tools.ts';
import { type McpConfig, mcpSchema } from './config.ts';
import type { Connecting } from './connect/connected.ts';
import type { ListedServer, Servers } from './servers.ts';

/** What needs the library of the protocol, which takes a moment to load: most processes that start serve no request to tools at first. */
export const loaded = (): Promise<typeof import('./loaded.ts')> => import('./loaded.ts');

/** What calls of all servers that requests name are called in rows and metrics: no client can add to these. */
const elsewhere = 'tools-elsewhere';

export class Generation {
  readonly config: McpConfig;
  readonly #host: Host;
  #servers: Promise<Servers> | undefined;
  #users = 0;
  #isRetired = false;

  readonly #connecting: () => Promise<Connecting> | undefined;

  constructor(host: Host, config: McpConfig, connecting: () => Promise<Connecting> | undefined) {
    this.#host = host;
    this.#connecting = connecting;
    this.config = config;
  }

  /** The servers, which stay open until the exchange has ended. */
  use(exchange: Exchange): Promise<Servers> {
    this.#users++;
    exchange.defer(() => {
      this.#users--;
      if (this.#isRetired) return this.#closeUnused();
    });
    return this.#opened();
  }

  /** The connection of this owner to the server has changed. */
  async changed(server: string, owner: string): Promise<void> {
    (await this.#servers)?.changed(server, owner);
  }

  /** A server at a public address that is asked for this exchange alone. */
  async useNamed(exchange: Exchange, { name, url, headers }: NamedServer): Promise<Servers> {
    const { Servers } = await loaded();
    const { servers } = mcpSchema.parse({ servers: { [name]: { url, headers } } });
    const named = new Servers(this.#host, { ...this.config, servers, bundles: {} }, undefined, elsewhere);
    exchange.defer(() => named.close());
    return named;
  }

  /** For pages: nothing is loaded where there is no server. */
  async listed(): Promise<readonly ListedServer[]> {
    return Object.keys(this.config.servers).length === 0 ? [] : (await this.#opened()).listed();
  }

  /** Another configuration is used from now on. */
  retire(): void {
    this.#isRetired = true;
    void this.#closeUnused();
  }

  async close(): Promise<void> {
    const servers = await this.#servers?.catch(() => undefined);
    await servers?.close();
  }

  #opened(): Promise<Servers> {
    this.#servers ??= loaded().then(
      async ({ Servers }) => new Servers(this.#host, this.config, await this.#connecting()),
    );
    return this.#servers;
  }

  async #closeUnused(): Promise<void> {
    if (this.#users === 0) await this.close();
  }
}
