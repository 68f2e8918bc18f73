/** A server of the protocol: its connection, negotiated once and again after errors, its lists, and requests to it. */
import {
  type CallToolRequestParams,
  Client,
  type JsonSchemaValidator,
  type JsonSchemaValidatorResult,
  type jsonSchemaValidator,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import type { Host } from '../../core/contract/contract.ts';
import { localUpstreams } from '../common/domain/upstreams.ts';
import { scrubText } from '../common/kit/scrub.ts';
import type { ServerConfig } from './config.ts';
import { refuseLeft, Unavailable } from './errors.ts';
import { HttpTransport } from './http-transport.ts';
import { Kept } from './kept.ts';
import { Program } from './program.ts';
import { type TokenSource, tokensOf, withToken } from './tokens.ts';
import {
  type Listed,
  mostListed,
  offered,
  type RequestOptions,
  type Upstream,
  type UpstreamMethod,
} from './upstream.ts';

const longestError = 500;
/** A list with more of them has no end, for all that is known. */
const mostPages = 64;
/** What a server says that it has, for each list. */
const capabilities = { tools: 'tools', prompts: 'prompts', resources: 'resources', templates: 'resources' } as const;

export class ProtocolServer implements Upstream {
  readonly name: string;
  readonly settings: ServerConfig;
  readonly #host: Host;
  readonly #lists: { readonly [K in keyof Listed]: Kept<Listed[K]> };
  readonly #tokens: TokenSource | undefined;
  readonly #program: Program | undefined;
  #connecting: Promise<Client> | undefined;
  /** Why the last request had no token. */
  #tokenFault: Unavailable | undefined;
  #connected: Client | undefined;

  /** `tokens`: of those who have connected it. */
  constructor(host: Host, name: string, settings: ServerConfig, more: { keepMs: number; tokens?: TokenSource }) {
    const { keepMs, tokens } = more;
    this.name = name;
    this.settings = settings;
    this.#host = host;
    this.#tokens = tokens ?? tokensOf(host, name, settings, settings.url);
    this.#program = settings.command === undefined ? undefined : new Program(host, name, settings);
    const kept = <T>(load: () => Promise<T>) => new Kept(load, host.clock, keepMs);
    // Lists are kept here, and not a second time by the client.
    const fresh = { cacheMode: 'bypass', timeout: settings.within } as const;
    this.#lists = {
      tools: kept(async () => {
        const tools = await this.#listed('tools', async (client) => (await client.listTools(undefined, fresh)).tools);
        return offered(tools, this, host.log);
      }),
      resources: kept(() =>
        this.#listed('resources', async (client) => (await client.listResources(undefined, fresh)).resources),
      ),
      templates: kept(() =>
        this.#listed(
          'templates',
          async (client) => (await client.listResourceTemplates(undefined, fresh)).resourceTemplates,
        ),
      ),
      prompts: kept(() =>
        this.#listed('prompts', async (client) => (await client.listPrompts(undefined, fresh)).prompts),
      ),
    };
  }

  /** The newest known list; rejects with Unavailable where none was ever loaded. */
  list<K extends keyof Listed>(kind: K): Promise<Listed[K]> {
    return this.#lists[kind].get();
  }

  /** Rejects with the server's ProtocolError, or with Unavailable. */
  async request(method: UpstreamMethod, params: object, options: RequestOptions): Promise<object> {
    const { within } = this.settings;
    let client: Client | undefined;
    const send = async () => {
      client = await this.#client();
      const { signal, onprogress } = options;
      refuseLeft(signal);
      const progress = onprogress === undefined ? {} : { onprogress, resetTimeoutOnProgress: true };
      const bounds = { signal, timeout: within, maxTotalTimeout: within, allowInputRequired: true, ...progress };
      if (options.tool === undefined)
        return client.request({ method, params: params as Record<string, unknown> }, bounds);
      return client.callTool(params as CallToolRequestParams, { ...bounds, toolDefinition: options.tool });
    };
    try {
      return await send();
    } catch (error) {
      if (options.signal.aborted) throw left(error);
      if (!this.#forgets(error)) throw this.#shown(error);
      this.#forget(client);
      if (!wasNotExecuted(error)) throw this.#shown(error);
    }
    // The server has lost the session, or speaks another version by now.
    return send().catch((error: unknown) => {
      throw options.signal.aborted ? left(error) : this.#shown(error);
    });
  }

  async close(): Promise<void> {
    const client = this.#connecting;
    this.#connecting = undefined;
    this.#connected = undefined;
    await client?.then(ended).catch(() => {});
  }

  #client(): Promise<Client> {
    this.#connecting ??= this.#connect().catch((error: unknown) => {
      this.#connecting = undefined;
      throw error;
    });
    return this.#connecting;
  }

  async #connect(): Promise<Client> {
    const { within } = this.settings;
    const client = new Client(
      { name: 'model-gateway', version: '1' },
      {
        versionNegotiation: { mode: 'auto', probe: { timeoutMs: within } },
        capabilities: {},
        jsonSchemaValidator: unchecked,
        listMaxPages: mostPages,
      },
    );
    for (const kind of ['tools', 'resources', 'prompts'] as const)
      client.setNotificationHandler(`notifications/${kind}/list_changed`, () => this.#changed(kind));
    client.onerror = (error) =>
      this.#host.log.debug({ server: this.name, error }, 'a message of a tool server was not read');
    try {
      const transport = this.#program?.start() ?? new HttpTransport(this.#address(), this.#fetch);
      await client.connect(transport, { timeout: within });
    } catch (error) {
      await client.close().catch(() => {});
      // A missing connection says where to make it; the library gives an error of its own.
      if (this.#tokenFault !== undefined) throw this.#tokenFault;
      throw new Unavailable('The server of this tool cannot be reached now.', false, error);
    }
    this.#connected = client;
    if (this.#program !== undefined) client.onclose = () => this.#forget(client);
    return client;
  }

  #address(): URL {
    const { url = '' } = this.settings;
    if (/^https?:/.test(url)) return new URL(url);
    const colon = url.indexOf(':');
    const origin = this.#host.find(localUpstreams)?.origin(url.slice(0, colon));
    if (origin === undefined) throw new Error(`"${url}" is no address of this process`);
    return new URL(url.slice(colon + 1), origin);
  }

  /** Requests go the guarded way: to public addresses alone, unless the operator allows this one. */
  readonly #fetch = async (url: string | URL, init: RequestInit = {}): Promise<Response> => {
    const method = init.method ?? 'GET';
    // Nothing listens to messages of servers that belong to no request.
    if (method !== 'POST' && method !== 'DELETE') return new Response(null, { status: 405 });
    const { settings } = this;
    const send = (authorization: { readonly authorization?: string }) =>
      this.#host.fetch(String(url), {
        method,
        headers: { ...Object.fromEntries(new Headers(init.headers)), ...settings.headers, ...authorization },
        ...(typeof init.body === 'string' ? { body: init.body } : {}),
        ...(init.signal === undefined || init.signal === null ? {} : { signal: init.signal }),
        timeoutMs: settings.within + 1_000,
        maxBytes: settings.answer,
        allowPrivate: settings.allow_private || !/^https?:/.test(settings.url ?? ''),
      });
    try {
      const answer = await withToken(this.#tokens, send);
      this.#tokenFault = undefined;
      return answer;
    } catch (error) {
      this.#tokenFault = error instanceof Unavailable ? error : undefined;
      throw error;
    }
  };

  #changed(kind: 'tools' | 'resources' | 'prompts'): void {
    this.#lists[kind].expire();
    if (kind === 'resources') this.#lists.templates.expire();
  }

  async #listed<K extends keyof Listed>(kind: K, read: (client: Client) => Promise<Listed[K]>): Promise<Listed[K]> {
    const client = await this.#client();
    const none = [] as unknown as Listed[K];
    const capability: 'tools' | 'resources' | 'prompts' = capabilities[kind];
    if (client.getServerCapabilities()?.[capability] === undefined) return none;
    try {
      return (await read(client)).slice(0, mostListed) as unknown as Listed[K];
    } catch (error) {
      // Many servers have resources and no templates.
      if (kind === 'templates' && error instanceof ProtocolError) return none;
      if (error instanceof SdkError && error.code === SdkErrorCode.ListPaginationExceeded) {
        this.#host.log.warn({ server: this.name, kind }, 'a list has more pages than are read, and is left out');
        return none;
      }
      if (this.#forgets(error)) this.#forget(client);
      throw this.#shown(error);
    }
  }

  /** Whether the connection must be negotiated again: the server's own errors are answers. */
  #forgets(error: unknown): boolean {
    if (error instanceof ProtocolError) return error.code === unsupportedVersion;
    return !(error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout);
  }

  /** The next request connects again, unless another one has by now. A program ends with its connection. */
  #forget(client: Client | undefined): void {
    if (client === undefined || client !== this.#connected) return;
    this.#connecting = undefined;
    this.#connected = undefined;
    if (this.#program !== undefined) void client.close().catch(() => {});
  }

  #shown(error: unknown): Error {
    if (error instanceof Unavailable) return error;
    if (error instanceof ProtocolError)
      return new ProtocolError(error.code, scrubText(error.message).slice(0, longestError), error.data);
    this.#host.log.warn({ server: this.name, error }, 'a request to a tool server failed');
    const isLate = error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout;
    const message = isLate
      ? 'The server of this tool did not answer in time.'
      : 'The server of this tool did not answer as it should.';
    return new Unavailable(message, true, error);
  }
}

/** Its client is gone: the server has done nothing wrong. */
function left(error: unknown): Unavailable {
  return error instanceof Unavailable ? error : new Unavailable('The request was cancelled.', true, error);
}

/** Takes away the session, where the server has one. */
async function ended(client: Client): Promise<void> {
  const { transport } = client;
  if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession().catch(() => {});
  await client.close();
}

const unsupportedVersion = -32_022;

/** A lost session is 404; an unknown version is refused before anything runs. */
function wasNotExecuted(error: unknown): boolean {
  if (error instanceof ProtocolError) return true;
  return error instanceof SdkHttpError && error.status === 404;
}

/** What a server returns goes to the client as it is. */
const unchecked: jsonSchemaValidator = {
  getValidator: <T>(): JsonSchemaValidator<T> => taken<T>,
};
const taken = <T>(input: unknown): JsonSchemaValidatorResult<T> => ({
  valid: true,
  data: input as T,
  errorMessage: undefined,
});
