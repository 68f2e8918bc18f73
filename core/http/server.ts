/** The HTTP server: routes requests, runs their chains, writes the answers, enforces deadlines, and drains. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, type BlockList, Server as SocketServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Outcome, PluginInstance } from '../contract/contract.ts';
import type { DirectAnswer, DirectRequest } from '../contract/direct-request.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Clock } from '../contract/host-tools.ts';
import type { Answer } from '../contract/message.ts';
import type { Unrouted } from '../contract/public-operation.ts';
import { toGatewayError } from '../contract/upstream-failures.ts';
import { renderUnrouted } from './answers.ts';
import type { BodyReader } from './body.ts';
import type { Run } from './chain.ts';
import { type AllowedOrigins, admitPage } from './cross-origin.ts';
import { answerOf, DirectIncoming, DirectOutgoing } from './direct.ts';
import { LiveExchange } from './exchange.ts';
import type { ExchangeLogs } from './exchange-log.ts';
import { checkHead, hasArrived, refuseNonRequests, unmetExpectation } from './head-checks.ts';
import { InFlightExchange, type InFlightServices, type SweepLimits } from './in-flight-exchange.ts';
import { InFlightSet } from './in-flight-set.ts';
import { IncomingRequest } from './incoming-request.ts';
import { type Match, matchRoute, type Router } from './router.ts';
import { socketEndpoints, WebSocketGate } from './websockets.ts';

export interface ServerLimits extends SweepLimits {
  readonly maxHeaderBytes: number;
  readonly maxHeaders: number;
  /** Most WebSockets open at once. */
  readonly maxSockets: number;
  /** From the first byte of a request to the last of its body. */
  readonly requestTimeoutMs: number;
  /** From arrival to the end of the answer, unless the endpoint has its own. */
  readonly exchangeTimeoutMs: number;
  /** Trusted senders of X-Forwarded-For; absent: none. */
  readonly proxies?: BlockList | undefined;
  readonly allowedOrigins?: AllowedOrigins;
}

export interface ServerOptions {
  readonly limits: ServerLimits;
  readonly router: Router;
  readonly bodies: BodyReader;
  /** Plugins with WebSocket addresses. */
  readonly sockets: readonly PluginInstance[];
  /** Plugins with the gateway's own error shape. */
  readonly errorShapes: readonly PluginInstance[];
  readonly unrouted?: Unrouted | undefined;
  readonly newId: () => string;
  readonly clock: Clock;
  readonly logs: ExchangeLogs;
  /** Names of plugins that cannot serve at the moment. */
  readonly notReady: () => readonly string[];
  /** The stores of the plugins, by name. */
  /** Details that `/readyz` shows beside its verdict. */
  readonly details: () => object;
  /** Names of plugins that need a restart to serve again. */
  readonly notAlive: () => readonly string[];
}

const sweepIntervalMs = 1_000;
/** How long an idle connection is kept; sent to clients in `keep-alive`. */
const keepAliveMs = 75_000;

export class GatewayServer {
  readonly #options: ServerOptions;
  #router: Router;
  #limits: ServerLimits;
  readonly #server: Server;
  readonly #inFlight = new InFlightSet<InFlightExchange>();
  readonly #webSockets: WebSocketGate;
  readonly #services: InFlightServices;
  #sweeper: NodeJS.Timeout | undefined;
  #draining = false;
  /** Answers carry `connection: close`. */
  #closing = false;
  #emptied: (() => void) | undefined;

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#router = options.router;
    this.#limits = options.limits;
    const { limits, bodies, errorShapes, clock } = options;
    this.#services = {
      bodies,
      errorShapes,
      clock,
      isClosing: () => this.#closing,
      onSettled: (running) => {
        this.#inFlight.delete(running);
        if (this.#inFlight.size === 0) this.#emptied?.();
      },
    };
    this.#server = createServer({
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: headersTimeoutMs(limits),
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: 2_000,
      keepAliveTimeout: keepAliveMs,
      noDelay: true,
      // `checkHead` answers with an error body, which Node would not.
      requireHostHeader: false,
    });
    // Node would silently drop headers past its own limit; `checkHead` counts and refuses them.
    this.#server.maxHeadersCount = 0;
    this.#server.on('request', (incoming, outgoing) => this.#serve(incoming, outgoing));
    // `100 Continue` is sent when the body is read.
    this.#server.on('checkContinue', (incoming, outgoing) => this.#serve(incoming, outgoing));
    refuseNonRequests(this.#server, options.errorShapes);
    this.#server.on('checkExpectation', (incoming, outgoing) =>
      this.#refuse(incoming, outgoing, incoming.url!.split('?', 1)[0]!, unmetExpectation()),
    );
    this.#webSockets = new WebSocketGate({
      endpoints: socketEndpoints(options.sockets),
      normalize: (path) => this.#router.normalize(path),
      newId: options.newId,
      render: (error, id, request) => this.#rendered(toGatewayError(error), { id, request }),
      limits,
      log: options.logs.log,
    });
    this.#server.on('upgrade', (incoming, socket, head) => this.#webSockets.handleUpgrade(incoming, socket, head));
  }

  /** Resolves with the port in use. */
  listen(port: number, host: string | undefined): Promise<number> {
    this.#sweeper = setInterval(() => this.#sweep(), sweepIntervalMs);
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, () => {
        this.#server.off('error', reject);
        resolve((this.#server.address() as AddressInfo).port);
      });
    });
  }

  /** Chains and limits for requests from now on; the maximum header size stays. */
  applyConfig(router: Router, limits: ServerLimits): void {
    this.#router = router;
    this.#limits = limits;
    this.#server.requestTimeout = limits.requestTimeoutMs;
    this.#server.headersTimeout = headersTimeoutMs(limits);
    this.#webSockets.applyConfig(limits);
  }

  /** Exchanges and open sockets. */
  get inFlight(): number {
    return this.#inFlight.size + this.#webSockets.size;
  }

  /**
   * Stops accepting while another process serves the same address; resolves when all connections have ended. Idle
   * connections are not closed, since a request may be on its way: it is served with `connection: close`. The others end
   * by the keep-alive timeout.
   */
  async closeGracefully(): Promise<void> {
    this.#closing = true;
    const hungUp = this.#webSockets.close(keepAliveMs);
    await Promise.race([this.#stopListening(), pause(keepAliveMs, undefined, { ref: false })]);
    await hungUp;
  }

  /** Idle connections stay. Resolves when all have ended. */
  #stopListening(): Promise<void> {
    // `close` of http's own server would close idle connections too.
    return new Promise((resolve) => void Reflect.apply(SocketServer.prototype.close, this.#server, [() => resolve()]));
  }

  /**
   * Drains: `/readyz` fails at once; after `graceMs` new connections are refused and WebSockets closed; at `deadlineMs`
   * running exchanges end with an error in their protocol. Idle connections end last, when nothing has come over one for
   * `graceMs`. Resolves when nothing is in running.
   */
  async drain(graceMs: number, deadlineMs: number): Promise<void> {
    this.#draining = true;
    this.#closing = true;
    this.#webSockets.shut();
    await pause(graceMs);
    const closed = this.#stopListening();
    const hungUp = this.#webSockets.close(deadlineMs);
    await this.#untilQuiet(graceMs, deadlineMs, closed);
    if (!(await this.#empty(0))) {
      const reason = new GatewayError('overloaded', 'The gateway is shutting down.', { shouldRetry: false });
      this.#inFlight.forEach(({ exchange }) => void exchange.abort(reason));
      await this.#empty(5_000);
    }
    await hungUp;
    clearInterval(this.#sweeper);
    this.#server.closeAllConnections();
    await closed;
  }

  /** Nothing runs, and nothing has come for a grace time: a proxy uses a kept connection again, and repeats no POST where it closes. */
  async #untilQuiet(graceMs: number, deadlineMs: number, closed: Promise<void>): Promise<void> {
    const until = performance.now() + deadlineMs;
    let came = 0;
    this.#server.on('request', () => void came++);
    for (let seen = -1; seen !== came && (await this.#empty(until - performance.now())); ) {
      seen = came;
      await Promise.race([closed, pause(graceMs, undefined, { ref: false })]);
    }
  }

  #empty(withinMs: number): Promise<boolean> {
    if (this.#inFlight.size === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), withinMs);
      this.#emptied = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }

  #serve(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { newId, clock, logs } = this.#options;
    const target = incoming.url!;
    const mark = target.indexOf('?');
    const path = this.#router.normalize(mark === -1 ? target : target.slice(0, mark));
    if (incoming.headers.origin !== undefined && this.#isPreflight(incoming, outgoing, path)) return;
    const known = this.#ownAnswer(incoming.method!, path);
    if (known !== undefined) {
      this.#answerPlainly(outgoing, known);
      return;
    }
    let match: Match;
    try {
      checkHead(incoming, this.#limits.maxHeaders);
      match = matchRoute(this.#router, incoming.method!, path);
    } catch (error) {
      this.#refuse(incoming, outgoing, path, error);
      return;
    }
    const { endpoint, run } = match.route;
    const search = mark === -1 ? '' : target.slice(mark);
    const request = new IncomingRequest(incoming, path, search, match.params, this.#limits.proxies);
    const exchange = new LiveExchange(newId(), endpoint, request, incoming, outgoing, clock, logs);
    this.#begin(exchange, run);
  }

  /** Runs a request that did not come over HTTP. Rejects when its client left before the head. */
  perform(direct: DirectRequest): Promise<DirectAnswer> {
    const mark = direct.path.indexOf('?');
    const path = this.#router.normalize(mark === -1 ? direct.path : direct.path.slice(0, mark));
    const { route, params } = matchRoute(this.#router, direct.method, path);
    const incoming = new DirectIncoming(direct);
    const outgoing = new DirectOutgoing();
    const { newId, clock, logs } = this.#options;
    const request = new IncomingRequest(incoming, path, mark === -1 ? '' : direct.path.slice(mark), params);
    const exchange = new LiveExchange(direct.id ?? newId(), route.endpoint, request, incoming, outgoing, clock, logs);
    direct.prepare?.(exchange);
    // Deferred work runs last in first out: this is the last.
    const ended = new Promise<Outcome>((resolve) => exchange.defer(resolve));
    const answer = answerOf(outgoing, ended, direct.signal);
    this.#begin(exchange, route.run);
    return answer;
  }

  #begin(exchange: LiveExchange, run: Run): void {
    const timeoutMs = exchange.endpoint.timeoutMs ?? this.#limits.exchangeTimeoutMs;
    const running = new InFlightExchange(exchange, timeoutMs, this.#services);
    this.#inFlight.add(running);
    running.begin(run);
  }

  /** Lets a page of another origin read the answer. true: the request was a preflight, and is answered. */
  #isPreflight(incoming: IncomingMessage, outgoing: ServerResponse, path: string): boolean {
    const { allowedOrigins } = this.#limits;
    if (allowedOrigins === undefined || this.#router.nearest(path)?.sameOrigin === true) return false;
    const answer = admitPage(incoming, outgoing, allowedOrigins);
    if (answer === undefined) return false;
    this.#answerPlainly(outgoing, answer);
    return true;
  }

  #ownAnswer(method: string, path: string): Answer | undefined {
    if (method !== 'GET' && method !== 'HEAD') return undefined;
    if (path === '/healthz') {
      const ended = this.#options.notAlive();
      return ended.length === 0
        ? statusAnswer(200, { status: 'alive' })
        : statusAnswer(503, { status: 'must be restarted', ended });
    }
    if (path === '/readyz') {
      const waiting = this.#draining ? ['draining'] : this.#options.notReady();
      const shown = this.#options.details();
      return waiting.length === 0
        ? statusAnswer(200, { status: 'ready', ...shown })
        : statusAnswer(503, { status: 'not ready', waiting, ...shown });
    }
    // A plugin may have a page there.
    return path === '/' && this.#router.nearest('/') === undefined ? statusAnswer(200, { status: 'ok' }) : undefined;
  }

  /** Renders the error in the protocol of the endpoint nearest to the path. */
  #refuse(incoming: IncomingMessage, outgoing: ServerResponse, path: string, error: unknown): void {
    const context = { id: this.#options.newId(), request: new IncomingRequest(incoming, path, '', {}) };
    this.#answerPlainly(outgoing, this.#rendered(toGatewayError(error), context));
  }

  #rendered(error: GatewayError, context: { readonly id: string; readonly request: IncomingRequest }): Answer {
    const { errorShapes, unrouted } = this.#options;
    return renderUnrouted(error, this.#router.nearest(context.request.path), context, errorShapes, unrouted);
  }

  #answerPlainly(outgoing: ServerResponse, answer: Answer): void {
    const body = answer.body as string;
    outgoing.writeHead(answer.status, {
      ...answer.headers,
      ...(answer.status === 204 ? {} : { 'content-length': Buffer.byteLength(body) }),
      ...(this.#closing && hasArrived(outgoing.req) ? { connection: 'close' } : {}),
    });
    outgoing.end(body);
  }

  /** Once a second for all exchanges: deadlines, stalled clients, silent streams. There is no timer per stream. */
  #sweep(): void {
    const now = this.#options.clock.monotonic();
    this.#inFlight.forEach((running) => {
      running.sweep(now, this.#limits);
    });
  }
}

function headersTimeoutMs({ requestTimeoutMs }: ServerLimits): number {
  return Math.min(15_000, requestTimeoutMs);
}

function statusAnswer(status: number, value: object): Answer {
  return {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
    body: JSON.stringify(value),
  };
}
