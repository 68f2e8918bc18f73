/** Fetches from addresses that clients or operators name; connects only to the public addresses that it has checked. */
import { lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { Agent, type Dispatcher, fetch as fetchBy } from 'undici';
import type { UpstreamNetwork } from '../contract/exchange.ts';
import { Agents, connectorFor } from './network.ts';
import { isPublicAddress } from './public-address.ts';

const maxRedirects = 3;
const maxUrlLength = 8192;

/** Why an address is not fetched, in words that a client may read: what is wrong with it, nothing of what stands behind it. */
export class Unfetchable extends Error {
  override readonly name = 'Unfetchable';
  /** The status that its server answered with, if that is the reason. */
  readonly status: number | undefined;

  constructor(reason: string, status?: number) {
    super(reason);
    this.status = status;
  }
}

export interface GuardOptions {
  /** Private and local addresses are allowed, and any port: for tests and closed networks. */
  readonly allowPrivate: boolean;
  readonly maxBytes: number;
  /** Resolves names; default: the system's way. */
  readonly lookup?: LookupFunction;
  /** Whether an address may be connected to; default: `isPublicAddress`. */
  readonly isPublic?: (address: string) => boolean;
  /** Longest silence of a server in `get`, `open` and `post`; default: 20,000. */
  readonly silenceMs?: number;
}

export interface Fetched {
  readonly bytes: Buffer;
  /** As the server declares it. */
  readonly contentType: string | undefined;
}

/** A file that is on its way. */
export interface Opened {
  readonly contentType: string | undefined;
  /** Its chunks, at most `maxBytes` together; throws Unfetchable beyond. Read it, or `close`. */
  readonly body: AsyncIterable<Buffer>;
  close(): void;
}

/** The way to an address that an upstream has named. */
export interface FetchWay {
  /** An origin that the operator has configured: it may have a private address. */
  readonly trustedOrigin?: string | undefined;
  /** Headers for that origin alone. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** With a proxy, which resolves names, only numeric addresses are checked. */
  readonly network?: UpstreamNetwork | undefined;
}

/** A request of the gateway's own. */
export interface OwnRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly signal: AbortSignal;
  /** The most that the answer's body may have, unpacked. */
  readonly maxBytes: number;
}

/** Gets files one at a time or several at once. `close` it in the end. */
export class GuardedClient {
  readonly #options: GuardOptions;
  readonly #agent: Agent;
  readonly #isPublic: (address: string) => boolean;
  /** Agents of all other ways, by network and trust. */
  readonly #agents = new Agents();

  constructor(options: GuardOptions) {
    this.#options = options;
    const { allowPrivate, lookup = systemLookup as LookupFunction, isPublic = isPublicAddress, silenceMs } = options;
    this.#isPublic = isPublic;
    // A name is resolved here and nowhere else: a second answer of a hostile name server is never asked for.
    this.#agent = agentOf(allowPrivate ? lookup : guardedLookup(lookup, isPublic), undefined, silenceMs);
  }

  async close(): Promise<void> {
    await Promise.all([this.#agent.destroy(), this.#agents.destroy()]);
  }

  /** Throws Unfetchable for an address that is refused without a name look-up. */
  check(address: string): void {
    this.#checked(address);
  }

  /** Sends a text, and resolves with the status of the answer, of which nothing is read. A redirect is not followed. */
  async post(address: string, body: string, headers: Readonly<Record<string, string>>, signal: AbortSignal) {
    const url = this.#checked(address);
    const response = await this.#agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: 'POST',
      headers: { ...headers, 'user-agent': 'model-gateway' },
      body,
      signal,
    });
    discard(response);
    return response.statusCode;
  }

  /** The whole file. Throws as `open` does. */
  async get(address: string, signal: AbortSignal): Promise<Fetched> {
    const { contentType, body } = await this.open(address, signal);
    const chunks: Buffer[] = [];
    for await (const chunk of body) chunks.push(chunk);
    return { bytes: Buffer.concat(chunks), contentType };
  }

  /**
   * Follows at most three redirects, each checked and reached like the first address. Throws Unfetchable, or what broke.
   */
  async open(address: string, signal: AbortSignal, way: FetchWay = {}): Promise<Opened> {
    const { trustedOrigin } = way;
    let url = this.#checked(address, trustedOrigin);
    for (let redirects = 0; ; redirects++) {
      const response = await this.#request(url, signal, way);
      const { location } = response.headers;
      if (!isRedirect(response.statusCode) || typeof location !== 'string') return this.#opened(response);
      discard(response);
      if (redirects === maxRedirects) throw new Unfetchable('it redirects too often');
      url = this.#checked(location, trustedOrigin, url);
    }
  }

  /**
   * As `fetch`, for as long as the signal lets it, with a body that throws Unfetchable beyond its bound. At most three redirects of GET and HEAD are followed, each checked and reached
   * like the first address, without the request's headers where they lead to another origin. Throws Unfetchable, or what broke.
   */
  async fetch(
    address: string,
    request: OwnRequest,
    networkTo: (host: string) => UpstreamNetwork | undefined,
    trustedOrigin?: string,
  ): Promise<Response> {
    const { method = 'GET', headers, body, signal, maxBytes } = request;
    const first = this.#checked(address, trustedOrigin);
    const isFollowed = method === 'GET' || method === 'HEAD';
    for (let url = first, redirects = 0; ; redirects++) {
      const response = await fetchBy(url, {
        method,
        headers: { ...ownHeaders, ...(url.origin === first.origin ? headers : {}) },
        ...(body === undefined ? {} : { body }),
        signal,
        redirect: 'manual',
        dispatcher: this.#agentFor(url.origin === trustedOrigin, networkTo(hostOf(url))).compose(patient),
      }).catch((error: Error) => {
        throw error.cause instanceof Error ? error.cause : error;
      });
      const location = response.headers.get('location');
      const isLeft = isFollowed && isRedirect(response.status) && location !== null;
      if (!isLeft) return boundedResponse(response as unknown as Response, maxBytes);
      await response.body?.cancel();
      if (redirects === maxRedirects) throw new Unfetchable('it redirects too often');
      url = this.#checked(location, trustedOrigin, url);
    }
  }

  #request(url: URL, signal: AbortSignal, way: FetchWay): Promise<Dispatcher.ResponseData> {
    const isTrusted = url.origin === way.trustedOrigin;
    return this.#agentFor(isTrusted, way.network).request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: 'GET',
      // Other origins get no header of the client or the gateway. Bodies are not compressed, so the bound is on their real size.
      headers: {
        ...(isTrusted ? way.headers : {}),
        accept: '*/*',
        ...ownHeaders,
      },
      signal,
    });
  }

  #agentFor(isTrusted: boolean, network: UpstreamNetwork | undefined): Agent {
    if (!isTrusted && network === undefined) return this.#agent;
    const { allowPrivate, lookup = systemLookup as LookupFunction, silenceMs } = this.#options;
    return this.#agents.get(`${isTrusted} ${network?.name ?? ''}`, () =>
      agentOf(isTrusted || allowPrivate ? lookup : guardedLookup(lookup, this.#isPublic), network, silenceMs),
    );
  }

  #checked(address: string, trustedOrigin?: string, base?: URL): URL {
    if (address.length > maxUrlLength) throw new Unfetchable('it is too long');
    const url = URL.parse(address, base?.href);
    if (url === null) throw new Unfetchable('it is not a URL');
    if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new Unfetchable('only http and https are fetched');
    if (url.username !== '' || url.password !== '') throw new Unfetchable('it must not carry credentials');
    if (this.#options.allowPrivate || url.origin === trustedOrigin) return url;
    // Below 1024 stand services that might take a request for their own commands.
    if (url.port !== '' && Number(url.port) < 1024) throw new Unfetchable('its port is not allowed');
    // A connection to a literal address asks for no lookup.
    const host = hostOf(url);
    if (isIP(host) !== 0 && !this.#isPublic(host)) throw new Unfetchable(notPublic);
    return url;
  }

  #opened(response: Dispatcher.ResponseData): Opened {
    const { statusCode, headers } = response;
    try {
      if (statusCode !== 200) throw new Unfetchable(`its server answered with status ${statusCode}`, statusCode);
      if ((headers['content-encoding'] ?? 'identity') !== 'identity') throw new Unfetchable('its server packs it');
      if (Number(headers['content-length'] ?? 0) > this.#options.maxBytes) throw tooLarge(this.#options.maxBytes);
    } catch (error) {
      discard(response);
      throw error;
    }
    const contentType = headers['content-type'];
    return {
      contentType: typeof contentType === 'string' ? contentType : undefined,
      body: bounded(response, this.#options.maxBytes),
      close: () => discard(response),
    };
  }
}

/** Without the brackets of an IPv6 address. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

function boundedResponse({ status, statusText, headers, body }: Response, maxBytes: number): Response {
  if (body === null) return new Response(null, { status, statusText, headers });
  let length = 0;
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      length += chunk.length;
      if (length > maxBytes) controller.error(tooLarge(maxBytes));
      else controller.enqueue(chunk);
    },
  });
  return new Response(body.pipeThrough(counted), { status, statusText, headers });
}

async function* bounded(response: Dispatcher.ResponseData, maxBytes: number): AsyncGenerator<Buffer, void> {
  let length = 0;
  try {
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > maxBytes) throw tooLarge(maxBytes);
      yield chunk;
    }
  } finally {
    discard(response);
  }
}

/** Connections that go where `lookup` says. */
function agentOf(lookup: LookupFunction, network?: UpstreamNetwork, silenceMs = 20_000): Agent {
  return new Agent({
    connect: connectorFor(10_000, network, lookup),
    pipelining: 0,
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
    maxHeaderSize: 32_768,
  });
}

/** The signal of the request alone ends a server's silence: its caller says how long all of it may take. */
const patient: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) =>
  dispatch({ ...options, headersTimeout: 0, bodyTimeout: 0 }, handler);

/** Bodies are asked for unpacked. */
const ownHeaders = { 'accept-encoding': 'identity', 'user-agent': 'model-gateway' };

const notPublic = 'its host is not a public address';

function tooLarge(maxBytes: number): Unfetchable {
  const most = maxBytes < 2 ** 20 ? `${maxBytes} bytes` : `${Math.floor(maxBytes / 2 ** 20)} MB`;
  return new Unfetchable(`it is larger than ${most}`);
}

function isRedirect(status: number): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308;
}

function discard({ body }: Dispatcher.ResponseData): void {
  body.on('error', ignore).destroy();
}

/** Ignores the error that a body emits when it is destroyed early. */
function ignore(): void {}

/** Resolves as `lookup` does, and fails when any of the addresses is not public: the caller might connect to any of them. */
function guardedLookup(lookup: LookupFunction, isPublic: (address: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      const addresses = typeof found === 'string' ? [{ address: found, family: isIP(found) }] : (found ?? []);
      const [first] = addresses;
      if (error !== null) return callback(error, '', 0);
      if (first === undefined || !addresses.every(({ address }) => isPublic(address))) {
        return callback(new Unfetchable(notPublic), '', 0);
      }
      if (options.all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}
