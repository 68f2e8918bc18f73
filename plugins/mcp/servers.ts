/** The servers of a configuration, and what a request finds among them. */
import type { Prompt, Resource, ResourceTemplateType, Tool } from '@modelcontextprotocol/client';
import type { Host } from '../../core/contract/contract.ts';
import type { Model } from '../common/domain/models.ts';
import { formatUsd, type Money } from '../common/domain/money.ts';
import { flatBook } from '../common/domain/prices.ts';
import type { McpConfig, ServerConfig } from './config.ts';
import { ConnectedServer, type Connecting } from './connect/connected.ts';
import { HttpApi } from './http-api/api.ts';
import { Allowed, shownName, shownUri, uriParts, type View } from './names.ts';
import { ProtocolServer } from './protocol-server.ts';
import type { Listed, Upstream } from './upstream.ts';

/** A tool of one server, with its catalogue entry: what it is called here, and its price. */
export interface FoundTool {
  readonly upstream: Upstream;
  readonly tool: Tool;
  readonly entry: Model;
  readonly health: ServerHealth;
}

/** What this process has seen of a server since it was opened. */
export interface ServerHealth {
  calls: number;
  failed: number;
  /** Wall-clock milliseconds; undefined: none has failed. */
  lastFailureAt: number | undefined;
}

/** A server as pages show it. `tools`: undefined where it was never reached. */
export interface ListedServer {
  readonly name: string;
  readonly tools:
    | readonly { readonly shown: string; readonly description: string; readonly price: string }[]
    | undefined;
  readonly health: Readonly<ServerHealth>;
}

export class Servers {
  readonly config: McpConfig;
  readonly #rowName: string | undefined;
  readonly #upstreams: readonly Upstream[];
  readonly #health: ReadonlyMap<Upstream, ServerHealth>;

  /** `connecting`: for servers that people connect. `rowName`: what all tools are called in rows and metrics; absent: each by its own name. */
  constructor(host: Host, config: McpConfig, connecting: Connecting | undefined, rowName?: string) {
    this.config = config;
    this.#rowName = rowName;
    this.#upstreams = Object.entries(config.servers)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, settings]) => {
        const { lists: keepMs } = config;
        if (settings.connect === undefined || connecting === undefined) return opened(host, name, settings, keepMs);
        return new ConnectedServer(host, name, settings, { keepMs, connecting });
      });
    this.#health = new Map(this.#upstreams.map((one) => [one, { calls: 0, failed: 0, lastFailureAt: undefined }]));
  }

  allowed(words: Iterable<string>): Allowed {
    return new Allowed(words, this.config.bundles);
  }

  /** In the order of servers and names. A server that cannot be reached adds what was last known of it. */
  async tools(view: View): Promise<Tool[]> {
    const all = await this.#all('tools', this.#for(view, this.#upstreams));
    return all.flatMap(([{ name: server }, tools]) =>
      tools
        .filter(({ name }) => view.tool(server, name))
        .map((tool) => ({ ...tool, name: shownName(server, tool.name) })),
    );
  }

  async resources(view: View): Promise<Resource[]> {
    const all = await this.#all('resources', this.#whole(view));
    return all.flatMap(([{ name }, list]) => list.map((one) => ({ ...one, uri: shownUri(name, one.uri) })));
  }

  async templates(view: View): Promise<ResourceTemplateType[]> {
    const all = await this.#all('templates', this.#whole(view));
    return all.flatMap(([{ name }, list]) =>
      list.map((one) => ({ ...one, uriTemplate: shownUri(name, one.uriTemplate) })),
    );
  }

  async prompts(view: View): Promise<Prompt[]> {
    const all = await this.#all('prompts', this.#whole(view));
    return all.flatMap(([{ name }, list]) => list.map((one) => ({ ...one, name: shownName(name, one.name) })));
  }

  /** undefined: the request may use no such tool. Rejects with Unavailable. */
  async findTool(shown: string, view: View): Promise<FoundTool | undefined> {
    const named = this.#named(shown);
    if (named === undefined) return undefined;
    const upstream = named.as?.(view.who) ?? named;
    const tools = await upstream.list('tools');
    const tool = tools.find(({ name }) => shownName(upstream.name, name) === shown);
    if (tool === undefined || !view.tool(upstream.name, tool.name)) return undefined;
    const rowName = this.#rowName;
    const target = { provider: rowName ?? upstream.name, model: rowName ?? tool.name };
    const entry = entryOf(target, rowName ?? shown, priceOf(upstream, tool.name));
    return { upstream, tool, entry, health: this.#health.get(named)! };
  }

  /** All servers with what they offer, whatever a key may use of it. */
  listed(): Promise<ListedServer[]> {
    return Promise.all(
      this.#upstreams.map(async (upstream) => {
        const tools = await upstream.list('tools').catch(() => undefined);
        const shown = tools?.map(({ name, description = '' }) => ({
          ...{ shown: shownName(upstream.name, name), description, price: formatUsd(priceOf(upstream, name)) },
        }));
        return { name: upstream.name, tools: shown, health: this.#health.get(upstream)! };
      }),
    );
  }

  async findPrompt(shown: string, view: View): Promise<readonly [Upstream, name: string] | undefined> {
    const named = this.#named(shown);
    if (named === undefined || !view.whole(named.name)) return undefined;
    const upstream = named.as?.(view.who) ?? named;
    const prompts = await upstream.list('prompts');
    const prompt = prompts.find(({ name }) => shownName(upstream.name, name) === shown);
    return prompt === undefined ? undefined : [upstream, prompt.name];
  }

  findResource(shown: string, view: View): readonly [Upstream, uri: string] | undefined {
    const [server, uri] = uriParts(shown) ?? [];
    const named = this.#upstreams.find(({ name }) => name === server);
    return named === undefined || !view.whole(named.name) ? undefined : [named.as?.(view.who) ?? named, uri!];
  }

  /** The connection of this owner to the server has changed. */
  changed(server: string, owner: string): void {
    const upstream = this.#upstreams.find(({ name }) => name === server);
    if (upstream instanceof ConnectedServer) upstream.forget(owner);
  }

  async close(): Promise<void> {
    await Promise.all(this.#upstreams.map((upstream) => upstream.close()));
  }

  /** Names of servers have no "_", so the first two end one. */
  #named(shown: string): Upstream | undefined {
    const end = shown.indexOf('__');
    return end < 0 ? undefined : this.#upstreams.find(({ name }) => name === shown.slice(0, end));
  }

  #whole(view: View): Upstream[] {
    return this.#for(
      view,
      this.#upstreams.filter(({ name }) => view.whole(name)),
    );
  }

  #for({ who }: View, upstreams: readonly Upstream[]): Upstream[] {
    return upstreams.map((one) => one.as?.(who) ?? one);
  }

  async #all<K extends keyof Listed>(kind: K, upstreams: readonly Upstream[]) {
    const lists = await Promise.all(
      upstreams.map(async (upstream) => [upstream, await upstream.list(kind).catch(() => undefined)] as const),
    );
    return lists.flatMap(([upstream, list]) => (list === undefined ? [] : [[upstream, list] as const]));
  }
}

function opened(host: Host, name: string, settings: ServerConfig, keepMs: number): Upstream {
  if (settings.openapi !== undefined) return new HttpApi(host, name, settings, keepMs);
  return new ProtocolServer(host, name, settings, { keepMs });
}

/** What it costs and is called in rows, as the catalogue says it of a model. */
function entryOf(target: { readonly provider: string; readonly model: string }, id: string, price: Money): Model {
  return {
    ...{ id, ownedBy: target.provider, created: 0, displayName: id, kind: 'chat' },
    targets: [{ ...target, weight: 0 }],
    ...{ contextTokens: undefined, maxOutputTokens: 0 },
    prices: flatBook({ call: price }, 'tools'),
  };
}

function priceOf({ settings: { price } }: Upstream, tool: string): Money {
  return Object.hasOwn(price.tools, tool) ? price.tools[tool]! : price.call;
}
