/** A person connects a server: discovery, registration, authorization code with PKCE, and other tokens later, by the official library. */
import {
  type AuthorizationServerMetadata,
  checkResourceAllowed,
  discoverOAuthServerInfo,
  exchangeAuthorization,
  extractWWWAuthenticateParams,
  type FetchLike,
  type OAuthClientInformationMixed,
  OAuthError,
  type OAuthTokens,
  refreshAuthorization,
  registerClient,
  startAuthorization,
} from '@modelcontextprotocol/client';
import type { Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { ServerConfig } from '../config.ts';
import type { ConnectConfig } from './owner.ts';

const withinMs = 10_000;
const largestAnswer = 256 * 1024;
/** The longest that a token is believed to be valid. */
const longestMs = 86_400_000;

/** A server's authorization server, and what the gateway is there. */
interface Service {
  readonly issuer: string;
  readonly metadata: AuthorizationServerMetadata;
  readonly client: OAuthClientInformationMixed;
  readonly resource: string;
}

/** A browser is on its way. */
export interface Started extends Service {
  readonly state: string;
  readonly verifier: string;
  readonly redirectUri: string;
}

/** A connection's tokens. */
export interface Grant extends Service {
  readonly access: string;
  readonly refresh: string | undefined;
  /** Wall-clock milliseconds; undefined: it is not known. */
  readonly until: number | undefined;
}

export type Server = ServerConfig & { readonly connect: ConnectConfig };

export class Flow {
  readonly #host: Host;

  constructor(host: Host) {
    this.#host = host;
  }

  /** Where the browser goes, and what is kept meanwhile. Throws upstream_failed, in words for the person. */
  async start(server: Server, redirectUri: string): Promise<{ readonly location: string; readonly started: Started }> {
    try {
      return await this.#start(server, redirectUri);
    } catch (error) {
      throw this.#shown(error, 'The server does not offer a way to connect.');
    }
  }

  async #start({ url = '', ...server }: Server, redirectUri: string) {
    const { connect } = server;
    const fetchFn = this.#fetch(connect);
    // The server's own refusal says where its metadata are.
    const asked = await this.#ask(url, server.allow_private);
    const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(asked);
    const info = await discoverOAuthServerInfo(url, { fetchFn, ...(resourceMetadataUrl && { resourceMetadataUrl }) });
    const { authorizationServerUrl: issuer, authorizationServerMetadata: metadata, resourceMetadata } = info;
    if (metadata === undefined) throw new Error('no metadata of an authorization server');
    const resource = resourceMetadata?.resource ?? url;
    if (!checkResourceAllowed({ requestedResource: url, configuredResource: resource }))
      throw new Error('the metadata are of another resource');
    const wanted = connect.scope ?? scope ?? resourceMetadata?.scopes_supported?.join(' ');
    const client = await this.#client(connect, { issuer, metadata, redirectUri, fetchFn });
    const state = this.#host.random.bytes(32).toString('base64url');
    const { authorizationUrl, codeVerifier: verifier } = await startAuthorization(issuer, {
      ...{ metadata, clientInformation: client, redirectUrl: redirectUri, state, resource },
      ...(wanted === undefined ? {} : { scope: wanted }),
    });
    // The browser opens it: nothing that it would run itself.
    const isSafe =
      authorizationUrl.protocol === 'https:' || (connect.allow_private && authorizationUrl.protocol === 'http:');
    if (!isSafe) throw new Error('the authorization endpoint has no https address');
    const started = { issuer, metadata, client, resource, state, verifier, redirectUri };
    return { location: authorizationUrl.href, started };
  }

  /** The code that the browser has brought becomes tokens. Throws upstream_failed. */
  async finish(
    { connect }: Server,
    started: Started,
    { code, iss }: { code: string; iss: string | undefined },
  ): Promise<Grant> {
    const { issuer, metadata, client, resource, verifier, redirectUri } = started;
    try {
      const tokens = await exchangeAuthorization(issuer, {
        ...{ metadata, clientInformation: client, authorizationCode: code, codeVerifier: verifier },
        // The library refuses an answer of another issuer (RFC 9207).
        ...(iss === undefined ? {} : { iss }),
        ...{ redirectUri, resource, fetchFn: this.#fetch(connect) },
      });
      return this.#grant({ issuer, metadata, client, resource }, tokens, undefined);
    } catch (error) {
      throw this.#shown(error, 'The server has refused the connection. Connect it again.');
    }
  }

  /** null: the service gives no tokens for this connection any more. Rejects where it is away. */
  async renew({ connect }: Server, { issuer, metadata, client, resource, refresh = '' }: Grant): Promise<Grant | null> {
    try {
      const tokens = await refreshAuthorization(issuer, {
        ...{ metadata, clientInformation: client, refreshToken: refresh, resource, fetchFn: this.#fetch(connect) },
      });
      return this.#grant({ issuer, metadata, client, resource }, tokens, refresh);
    } catch (error) {
      if (error instanceof OAuthError && ended.has(error.code)) return null;
      throw error;
    }
  }

  /** Takes the tokens back, where the service has a way (RFC 7009). */
  async revoke({ connect }: Server, { metadata, client, refresh, access }: Grant): Promise<void> {
    const { revocation_endpoint: url } = metadata as { readonly revocation_endpoint?: string };
    if (url === undefined) return;
    const secret = 'client_secret' in client && client.client_secret ? { client_secret: client.client_secret } : {};
    const body = new URLSearchParams({ token: refresh ?? access, client_id: client.client_id, ...secret });
    await this.#fetch(connect)(url, { method: 'POST', body });
  }

  async #client(
    { client: client_id, secret: client_secret }: ConnectConfig,
    at: { issuer: string; metadata: AuthorizationServerMetadata; redirectUri: string; fetchFn: FetchLike },
  ): Promise<OAuthClientInformationMixed> {
    if (client_id !== undefined) return { client_id, ...(client_secret === undefined ? {} : { client_secret }) };
    const { issuer, metadata, redirectUri, fetchFn } = at;
    const clientMetadata = {
      ...{ client_name: 'Model gateway', redirect_uris: [redirectUri], response_types: ['code'] },
      ...{ grant_types: ['authorization_code', 'refresh_token'], token_endpoint_auth_method: 'none' },
    };
    return registerClient(issuer, { metadata, clientMetadata, fetchFn });
  }

  #ask(url: string, allowPrivate: boolean): Promise<Response> {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
    const bounds = { timeoutMs: withinMs, maxBytes: largestAnswer, allowPrivate };
    return this.#host.fetch(url, { method: 'POST', headers, body, ...bounds });
  }

  #grant(service: Service, tokens: OAuthTokens, refresh: string | undefined): Grant {
    const { access_token: access, token_type: type, expires_in: seconds } = tokens;
    if (!/^[\x21-\x7e]{1,16384}$/.test(access)) throw new Error('the token is no text of a header');
    if (type.toLowerCase() !== 'bearer') throw new Error('the token is of another type than Bearer');
    const lifeMs = seconds === undefined ? undefined : Math.min(Number(seconds) * 1_000, longestMs);
    const until = lifeMs === undefined ? undefined : this.#host.clock.now() + lifeMs;
    return { ...service, access, refresh: tokens.refresh_token ?? refresh, until };
  }

  /** To addresses that others have named: public ones, unless the operator allows these. */
  #fetch({ allow_private: allowPrivate }: ConnectConfig): FetchLike {
    return async (url, init = {}) => {
      const { method = 'GET', headers, body } = init;
      return this.#host.fetch(String(url), {
        method: method as 'GET' | 'POST',
        headers: Object.fromEntries(new Headers(headers)),
        ...(body === undefined || body === null ? {} : { body: String(body) }),
        ...(body instanceof URLSearchParams
          ? { headers: { ...Object.fromEntries(new Headers(headers)), ...form } }
          : {}),
        ...{ timeoutMs: withinMs, maxBytes: largestAnswer, allowPrivate },
      });
    };
  }

  #shown(error: unknown, message: string): GatewayError {
    if (error instanceof GatewayError) return error;
    this.#host.log.warn({ error }, 'a server of tools was not connected');
    return new GatewayError('upstream_failed', message, { code: 'not_connected', cause: error });
  }
}

const form = { 'content-type': 'application/x-www-form-urlencoded' };
/** A refresh token that is used up, revoked or not the client's. */
const ended = new Set<string>(['invalid_grant', 'invalid_client', 'unauthorized_client']);
