/** Access tokens for one server, by the client's own credentials (RFC 6749, section 4.4): kept while they are valid, one request for all who wait. */
import type { Host } from '../../core/contract/contract.ts';
import { isObject, type JsonObject, tryParse } from '../../core/json/json.ts';
import type { ServerConfig } from './config.ts';
import { Unavailable } from './errors.ts';

type OauthConfig = NonNullable<ServerConfig['oauth']>;

const withinMs = 10_000;
const largestAnswer = 64 * 1024;
/** Before its end, so that no request arrives with a token that has just ended. */
const earlyMs = 30_000;
/** How long a token is used that does not say, and the longest that one is believed. */
const [usualMs, longestMs] = [300_000, 86_400_000];
/** A token is asked for once in so long at most: behind a failure, and when a server refuses one that is as young. */
const pauseMs = 5_000;

interface Token {
  readonly header: string;
  readonly since: number;
  readonly until: number;
}

/** Gives the header `authorization` of requests to a server. */
export interface TokenSource {
  /** Rejects with Unavailable. */
  header(): Promise<string>;
  /** The server takes it no more. */
  refused(header: string): void;
}

export class Tokens implements TokenSource {
  readonly #host: Host;
  readonly #server: string;
  readonly #settings: OauthConfig;
  readonly #resource: string | undefined;
  #token: Token | undefined;
  /** From then on another one is asked for. */
  #renewAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<Token> | undefined;

  /** `resource`: the server that the token is for (RFC 8707), where the settings name none. */
  constructor(host: Host, server: string, settings: OauthConfig, resource: string | undefined) {
    this.#host = host;
    this.#server = server;
    this.#settings = settings;
    this.#resource = settings.resource ?? resource;
  }

  /** The header `authorization`. Rejects with Unavailable. */
  async header(): Promise<string> {
    const now = this.#host.clock.monotonic();
    if (this.#token !== undefined && now < this.#renewAt) return this.#token.header;
    this.#asking ??= this.#renewed().finally(() => {
      this.#asking = undefined;
    });
    return (await this.#asking).header;
  }

  /** The server takes it no more. */
  refused(header: string): void {
    const now = this.#host.clock.monotonic();
    if (this.#token?.header !== header || now < this.#token.since + pauseMs) return;
    this.#token = undefined;
    this.#renewAt = Number.NEGATIVE_INFINITY;
  }

  async #renewed(): Promise<Token> {
    try {
      const token = await this.#asked();
      this.#token = token;
      const early = Math.min(earlyMs, (token.until - token.since) / 2);
      this.#renewAt = token.until - early;
      return token;
    } catch (error) {
      this.#host.log.warn({ server: this.#server, error }, 'an access token for a tool server was not given');
      const now = this.#host.clock.monotonic();
      // A service that is away for a moment takes nothing from a token that is still valid.
      if (this.#token !== undefined && now < this.#token.until) {
        this.#renewAt = now + pauseMs;
        return this.#token;
      }
      throw new Unavailable('The server of this tool cannot be reached now.', false, error);
    }
  }

  async #asked(): Promise<Token> {
    const { client, secret, token_url: url, scope, secret_in: place, allow_private: allowPrivate } = this.#settings;
    const since = this.#host.clock.monotonic();
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      ...(scope === undefined ? {} : { scope }),
      ...(this.#resource === undefined ? {} : { resource: this.#resource }),
      ...(place === 'body' ? { client_id: client, client_secret: secret } : {}),
    });
    const answer = await this.#host.fetch(url, {
      method: 'POST',
      headers: {
        ...{ 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
        ...(place === 'body' ? {} : { authorization: basic(client, secret) }),
      },
      body: form.toString(),
      ...{ timeoutMs: withinMs, maxBytes: largestAnswer, allowPrivate },
    });
    const json = tryParse(await answer.text());
    return tokenOf(answer.status, isObject(json) ? json : {}, since);
  }
}

/** undefined: its requests have no tokens. */
export function tokensOf(host: Host, server: string, { oauth }: ServerConfig, resource?: string): Tokens | undefined {
  return oauth === undefined ? undefined : new Tokens(host, server, oauth, resource);
}

/** A request that is refused for its token was not executed: it is sent once more with another one. */
export async function withToken(
  tokens: TokenSource | undefined,
  send: (authorization: { readonly authorization?: string }) => Promise<Response>,
): Promise<Response> {
  if (tokens === undefined) return send({});
  const first = await tokens.header();
  const answer = await send({ authorization: first });
  if (answer.status !== 401) return answer;
  tokens.refused(first);
  const second = await tokens.header();
  if (second === first) return answer;
  await answer.body?.cancel();
  return send({ authorization: second });
}

/** Its parts are encoded as forms are (RFC 6749, section 2.3.1). */
function basic(client: string, secret: string): string {
  const encoded = [client, secret].map((part) => new URLSearchParams([['', part]]).toString().slice(1));
  return `Basic ${Buffer.from(encoded.join(':')).toString('base64')}`;
}

function tokenOf(status: number, json: JsonObject, since: number): Token {
  const { access_token: token, token_type: type, expires_in: seconds, error } = json;
  if (status !== 200 || typeof token !== 'string' || !/^[\x21-\x7e]{1,16384}$/.test(token)) {
    const reason = typeof error === 'string' && /^[a-z_]{1,40}$/.test(error) ? error : 'no token';
    throw new Error(`the token service answered with status ${status} (${reason})`);
  }
  if (typeof type === 'string' && type.toLowerCase() !== 'bearer')
    throw new Error('the token is of another type than Bearer');
  const lifeMs = typeof seconds === 'number' && seconds > 0 ? Math.min(seconds * 1_000, longestMs) : usualMs;
  return { header: `Bearer ${token}`, since, until: since + lifeMs };
}
