/** How an upstream is reached other than directly: proxies, certificates, address families; and connections made that way. */

import { lookup } from 'node:dns';
import { request as requestPlain } from 'node:http';
import { type RequestOptions, request as requestTls } from 'node:https';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { Agent, type buildConnector as BuildConnector, buildConnector, errors, fetch as fetchBy } from 'undici';
import type { UpstreamNetwork } from '../contract/exchange.ts';
import type { Secret } from '../contract/secret.ts';

/** `ipv4`, `ipv6`: these addresses alone. */
export const addressFamilies = ['ipv4_first', 'ipv6_first', 'ipv4', 'ipv6'] as const satisfies readonly NonNullable<
  UpstreamNetwork['family']
>[];

export interface Certificates {
  readonly ca: readonly string[];
  readonly cert?: string | undefined;
  readonly key?: Secret | undefined;
  readonly passphrase?: Secret | undefined;
}

/** Throws when the texts are no certificates, or the key does not fit. */
export function secureContextOf({ ca, cert, key, passphrase }: Certificates): SecureContext {
  return createSecureContext({
    ...(ca.length === 0 ? {} : { ca: trusted(ca) }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key: key.reveal() }),
    ...(passphrase === undefined ? {} : { passphrase: passphrase.reveal() }),
  });
}

function trusted(extra: readonly string[]): string[] {
  return [...getCACertificates('default'), ...extra];
}

type Connector = BuildConnector.connector;

/**
 * The function that undici's clients call for a connection. `timeoutMs`: for all of it, from the proxy to TLS. `lookup`: instead of the
 * system's; a proxy resolves names itself.
 */
export function connectorFor(
  timeoutMs: number,
  network: UpstreamNetwork | undefined,
  lookup?: LookupFunction,
): Connector {
  // One for all sockets: it keeps the TLS sessions.
  const direct = withoutTraces(
    buildConnector({
      timeout: timeoutMs,
      allowH2: false,
      ...optionsOf(network, lookup),
    } as BuildConnector.BuildOptions),
  );
  const proxy = network?.proxy;
  if (proxy === undefined) return direct;
  return (options, callback) => {
    const { signal, done } = bounded(timeoutMs, callback);
    const target = { host: options.hostname, port: Number(options.port) || (options.protocol === 'https:' ? 443 : 80) };
    tunnel(new URL(proxy.reveal()), target, network!, signal).then(
      (socket) => {
        socket.setNoDelay(true);
        if (options.protocol !== 'https:') done(null, socket);
        else if (!signal.aborted) direct({ ...options, httpSocket: socket }, done as BuildConnector.Callback);
      },
      (error: unknown) => done(error as Error, null),
    );
  };
}

/** Once connected, a socket would keep the listener for a failure to connect, with its timer and options, for as long as it is open. */
function withoutTraces(connect: Connector): Connector {
  return (options, callback) => {
    const connecting = connect(options, (...[error, socket]) => {
      if (error !== null) callback(error, null);
      // undici adds a listener of its own a little later.
      else callback(null, socket.on('error', ignored).off('error', waiting));
    }) as unknown as Socket;
    const waiting = connecting.listeners('error').at(-1) as () => void;
  };
}

const ignored = () => {};

function optionsOf(network: UpstreamNetwork | undefined, own: LookupFunction | undefined): object {
  if (network === undefined) return own === undefined ? {} : { lookup: own };
  const { secureContext, family } = network;
  return {
    ...(own === undefined ? {} : { lookup: own }),
    ...(secureContext === undefined ? {} : { secureContext }),
    ...(family === 'ipv4' || family === 'ipv6' ? { family: family === 'ipv4' ? 4 : 6 } : {}),
    ...(family === 'ipv4_first' || family === 'ipv6_first'
      ? { lookup: lookupIn(family, own), autoSelectFamily: true }
      : {}),
  };
}

/** All addresses of a name, those of one family first: Node tries them in this order. */
function lookupIn(family: 'ipv4_first' | 'ipv6_first', own = lookup as LookupFunction): LookupFunction {
  const order = family === 'ipv4_first' ? 'ipv4first' : 'ipv6first';
  return (name, options, callback) => own(name, { ...options, order }, callback);
}

/** `fetch` over a network, for requests beside calls of models, such as tokens. Its sockets are not kept. */
export function fetchOver(network: UpstreamNetwork | undefined, connectTimeoutMs: number): typeof fetch {
  const dispatcher = new Agent({ connect: connectorFor(connectTimeoutMs, network), keepAliveTimeout: 1 });
  return ((url: string, init: object) => fetchBy(url, { ...init, dispatcher })) as unknown as typeof fetch;
}

/** The first result counts; after the time the connection fails, and a later connection is closed. */
function bounded(timeoutMs: number, callback: BuildConnector.Callback) {
  const controller = new AbortController();
  let isDone = false;
  const done = (error: Error | null, socket: Socket | null) => {
    if (isDone) {
      socket?.on('error', () => {}).destroy();
      return;
    }
    isDone = true;
    clearTimeout(timer);
    if (error === null) callback(null, socket as never);
    else callback(error, null);
  };
  const timer = setTimeout(() => {
    controller.abort();
    done(new errors.ConnectTimeoutError('the connection through the proxy takes too long'), null);
  }, timeoutMs);
  return { signal: controller.signal, done: done as (error: Error | null, socket: Socket | null) => void };
}

interface Address {
  readonly host: string;
  readonly port: number;
}

/** A failure on the way through a proxy: nothing has reached the upstream. Its message names no address and no credentials. */
class ProxyError extends Error {
  override readonly name = 'ProxyError';
  readonly code = 'proxy_failed';
}

/** A socket to the target through the proxy. Rejects with a ProxyError. */
function tunnel(proxy: URL, target: Address, network: UpstreamNetwork, signal: AbortSignal): Promise<Socket> {
  return proxy.protocol.startsWith('socks')
    ? socksTunnel(proxy, target, signal)
    : httpTunnel(proxy, target, network, signal);
}

function httpTunnel(proxy: URL, target: Address, network: UpstreamNetwork, signal: AbortSignal): Promise<Socket> {
  const send = proxy.protocol === 'https:' ? requestTls : requestPlain;
  return new Promise((resolve, reject) => {
    const refuse = (status: number | undefined) =>
      reject(new ProxyError(`the proxy refused the connection with the status ${status}`));
    const request = send({ ...connectRequest(proxy, target, network), signal });
    request.on('connect', ({ statusCode }, socket: Socket, head) => {
      if (statusCode === 200) {
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
        return;
      }
      socket.on('error', () => {}).destroy();
      refuse(statusCode);
    });
    request.on('response', (response) => {
      response.destroy();
      refuse(response.statusCode);
    });
    request.on('error', (error) => reject(unreachable(error)));
    request.end();
  });
}

/** https://www.rfc-editor.org/rfc/rfc9110#name-connect */
function connectRequest(proxy: URL, target: Address, { ca }: UpstreamNetwork): RequestOptions {
  const isTls = proxy.protocol === 'https:';
  const host = withoutBrackets(proxy.hostname);
  const authority = `${target.host}:${target.port}`;
  const [user, password] = credentialsOf(proxy);
  const basic = Buffer.from(`${user}:${password}`).toString('base64');
  const tls = { servername: isIP(host) === 0 ? host : '', ...(ca === undefined ? {} : { ca: trusted(ca) }) };
  return {
    host,
    port: proxy.port === '' ? (isTls ? 443 : 80) : proxy.port,
    method: 'CONNECT',
    path: authority,
    agent: false,
    headers: { host: authority, ...(user === '' ? {} : { 'proxy-authorization': `Basic ${basic}` }) },
    ...(isTls ? tls : {}),
  };
}

/** Loaded when the first proxy of this kind is used. */
async function socksTunnel(proxy: URL, target: Address, signal: AbortSignal): Promise<Socket> {
  const { SocksClient } = await import('socks');
  const [userId, password] = credentialsOf(proxy);
  const client = new SocksClient({
    proxy: {
      host: withoutBrackets(proxy.hostname),
      port: Number(proxy.port) || 1080,
      type: 5,
      ...(userId === '' ? {} : { userId, password }),
    },
    command: 'connect',
    destination: { host: withoutBrackets(target.host), port: target.port },
    timeout: 2 ** 31 - 1,
  });
  return new Promise((resolve, reject) => {
    // Its errors carry the proxy's password.
    client.on('error', (error) => reject(new ProxyError(`the proxy refused the connection: ${error.message}`)));
    client.on('established', ({ socket }) => {
      if (signal.aborted) socket.destroy();
      resolve(socket);
    });
    client.connect();
  });
}

function credentialsOf(proxy: URL): [user: string, password: string] {
  return [decodeURIComponent(proxy.username), decodeURIComponent(proxy.password)];
}

/** A code alone: the error's own text may name addresses. */
function unreachable(error: Error): ProxyError {
  const { code } = error as NodeJS.ErrnoException;
  return new ProxyError(`the proxy cannot be reached (${code ?? 'the connection failed'})`);
}

function withoutBrackets(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

const mostAgents = 200;

/** Agents of undici by name, such as one for each network; the one that has not been used for longest makes room. */
export class Agents {
  readonly #byName = new Map<string, Agent>();

  get(name: string, create: () => Agent): Agent {
    const agent = this.#byName.get(name) ?? create();
    this.#byName.delete(name);
    this.#byName.set(name, agent);
    if (this.#byName.size > mostAgents) this.#dropOldest();
    return agent;
  }

  /** Breaks off what they are doing. */
  async destroy(): Promise<void> {
    await Promise.all([...this.#byName.values()].map((agent) => agent.destroy()));
  }

  #dropOldest(): void {
    const [[name, agent]] = this.#byName as unknown as [[string, Agent]];
    this.#byName.delete(name);
    void agent.close();
  }
}
