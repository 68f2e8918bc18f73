/** Sockets to exchanges to answers to sockets: accepts, bounds, routes, runs the chain, and sees every end. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, type BlockList, Server as SocketServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { renderError, renderStray } from './answers.ts';
import { Bag, type BagMember } from './bag.ts';
import type { BodyReader } from './body.ts';
import type { Answer, Clock, Log, Outcome, Part } from './contract.ts';
import { GatewayError, toGatewayError } from './errors.ts';
import { deadlinePassed, IncomingRequest, LiveExchange } from './exchange.ts';
import { checkHead, hasArrived, refuseWhatIsNoRequest, unmetExpectation } from './head.ts';
import { type Match, matched, type Router, withoutDoubledVersion } from './router.ts';
import { SocketDoor, socketEndpoints } from './sockets.ts';
import { newProgress, type Progress, writeAnswer, writePart } from './writer.ts';

export interface ServerLimits {
  readonly maxHeaderBytes: number;
  readonly maxHeaders: number;
  /** Most WebSockets that are open at once. */
  readonly maxSockets: number;
  /** From the first byte of a request to the last of its body. */
  readonly requestTimeoutMs: number;
  /** From arrival to the end of the answer, where the endpoint names no other. */
  readonly exchangeTimeoutMs: number;
  /** How long a client may take nothing of what waits for it. */
  readonly stallTimeoutMs: number;
  /** Silence in a streamed answer after which an idle frame is sent. */
  readonly idleFrameAfterMs: number;
  /** Those whose X-Forwarded-For is believed; absent: nobody. */
  readonly proxies?: BlockList | undefined;
}

export interface ServerOptions {
  readonly limits: ServerLimits;
  readonly router: Router;
  readonly bodies: BodyReader;
  /** Parts that take WebSockets. */
  readonly sockets: readonly Part[];
  /** Parts that have the gateway's own error shape. */
  readonly errorShapes: readonly Part[];
  readonly newId: () => string;
  readonly clock: Clock;
  readonly log: Log;
  /** Names of parts that cannot serve at the moment. */
  readonly notReady: () => readonly string[];
  /** Names of parts that serve again only after a restart. */
  readonly notAlive: () => readonly string[];
}

interface Flight extends BagMember {
  readonly exchange: LiveExchange;
  readonly progress: Progress;
  readonly deadline: number;
}

const sweepIntervalMs = 1_000;
/** How long an idle connection is kept; clients are told it, and most close theirs earlier. */
const keepAliveMs = 75_000;

export class GatewayServer {
  readonly #options: ServerOptions;
  #router: Router;
  #limits: ServerLimits;
  readonly #server: Server;
  readonly #flights = new Bag<Flight>();
  readonly #door: SocketDoor;
  #sweeper: NodeJS.Timeout | undefined;
  #draining = false;
  /** Whoever is answered is told to come by another connection. */
  #closing = false;
  #emptied: (() => void) | undefined;

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#router = options.router;
    this.#limits = options.limits;
    const { limits } = options;
    this.#server = createServer({
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: headersTimeoutMs(limits),
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: 2_000,
      keepAliveTimeout: keepAliveMs,
      noDelay: true,
      // Node would answer without a word; `checkHead` says what is missing.
      requireHostHeader: false,
    });
    // Node would drop headers past its own count in silence; ours are counted and refused.
    this.#server.maxHeadersCount = 0;
    this.#server.on('request', (incoming, outgoing) => void this.#serve(incoming, outgoing));
    refuseWhatIsNoRequest(this.#server, options.errorShapes);
    this.#server.on('checkExpectation', (incoming, outgoing) =>
      this.#refuse(incoming, outgoing, incoming.url!.split('?', 1)[0]!, unmetExpectation()),
    );
    this.#door = new SocketDoor({
      endpoints: socketEndpoints(options.sockets),
      errorShapes: options.errorShapes,
      limits,
      log: options.log,
    });
    this.#server.on('upgrade', (incoming, socket, head) => this.#door.enter(incoming, socket, head));
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

  /** Other chains and limits for who comes from now on; the largest head stays what it was. */
  follow(router: Router, limits: ServerLimits): void {
    this.#router = router;
    this.#limits = limits;
    this.#server.requestTimeout = limits.requestTimeoutMs;
    this.#server.headersTimeout = headersTimeoutMs(limits);
    this.#door.follow(limits);
  }

  /** Exchanges and open sockets. */
  get inFlight(): number {
    return this.#flights.size + this.#door.size;
  }

  /**
   * For whom others serve already: accepts no more, and resolves when nobody is connected any longer. Idle connections are
   * not closed, as their clients may be sending a request at this moment; who does is served, and told that the connection
   * ends with the answer. They are idle for as long as any connection may be, at most.
   */
  async letGo(): Promise<void> {
    this.#closing = true;
    // Of http's server it would close the idle connections too.
    const emptied = new Promise<void>((resolve) => {
      Reflect.apply(SocketServer.prototype.close, this.#server, [() => resolve()]);
    });
    const hungUp = this.#door.close(keepAliveMs);
    await Promise.race([emptied, pause(keepAliveMs, undefined, { ref: false })]);
    await hungUp;
  }

  /**
   * Lets every exchange end: `/readyz` fails at once, new connections are refused and WebSockets are ended after `graceMs`,
   * and what still runs at `deadlineMs` is told in its own protocol that the gateway stops. Resolves when nothing is in flight.
   */
  async drain(graceMs: number, deadlineMs: number): Promise<void> {
    this.#draining = true;
    this.#closing = true;
    this.#door.shut();
    await pause(graceMs);
    const closed = new Promise<void>((resolve) => void this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    const hungUp = this.#door.close(deadlineMs);
    if (!(await this.#empty(deadlineMs))) {
      const reason = new GatewayError('overloaded', 'The gateway is shutting down.', { shouldRetry: false });
      this.#flights.forEach(({ exchange }) => void exchange.abort(reason));
      await this.#empty(5_000);
    }
    await hungUp;
    clearInterval(this.#sweeper);
    this.#server.closeAllConnections();
    await closed;
  }

  #empty(withinMs: number): Promise<boolean> {
    if (this.#flights.size === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), withinMs);
      this.#emptied = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { newId, clock, log } = this.#options;
    const target = incoming.url!;
    const mark = target.indexOf('?');
    const path = withoutDoubledVersion(mark === -1 ? target : target.slice(0, mark));
    const known = this.#ownAnswer(incoming.method!, path);
    if (known !== undefined) return this.#answerPlainly(outgoing, known);
    let match: Match;
    try {
      checkHead(incoming, this.#limits.maxHeaders);
      match = matched(this.#router, incoming.method!, path);
    } catch (error) {
      return this.#refuse(incoming, outgoing, path, error);
    }
    const { endpoint, run } = match.route;
    const search = mark === -1 ? '' : target.slice(mark);
    const request = new IncomingRequest(incoming, path, search, match.params, this.#limits.proxies);
    const exchange = new LiveExchange(newId(), endpoint, request, incoming, outgoing, clock);
    const progress = newProgress(exchange.startedAt);
    const flight = {
      bagIndex: -1,
      exchange,
      progress,
      deadline: exchange.startedAt + (endpoint.timeoutMs ?? this.#limits.exchangeTimeoutMs),
    };
    this.#flights.add(flight);
    const gone = closed(exchange, clock);
    const error = await this.#run(exchange, run, progress);
    await gone;
    await exchange.end(outcomeOf(exchange, progress, error, clock.monotonic()), log);
    this.#options.bodies.release(exchange);
    this.#flights.delete(flight);
    if (this.#flights.size === 0) this.#emptied?.();
  }

  /** Runs the chain and writes its answer. Resolves with the error that the client was told, or that broke the answer. */
  async #run(
    exchange: LiveExchange,
    run: (exchange: LiveExchange) => Promise<Answer>,
    progress: Progress,
  ): Promise<GatewayError | undefined> {
    const { errorShapes, bodies, clock, log } = this.#options;
    let answer: Answer;
    let told: GatewayError | undefined;
    try {
      answer = await run(exchange);
      exchange.forgetBody();
      bodies.release(exchange);
    } catch (thrown) {
      const rendered = renderError(exchange.aborted ?? thrown, exchange, errorShapes);
      if (rendered.error.kind === 'internal')
        log.error(
          { error: rendered.error.cause ?? thrown, exchange: exchange.id },
          'the exchange failed inside the gateway',
        );
      // What was sent may have been executed: a repetition could be billed twice.
      if (rendered.error.kind === 'internal' && exchange.hasSent) rendered.answer.headers['x-should-retry'] = 'false';
      ({ answer, error: told } = rendered);
    }
    try {
      await writeAnswer(exchange, answer, progress, clock, this.#closing && hasArrived(exchange.incoming));
      return exchange.failure ?? told;
    } catch (thrown) {
      // The head is out: all that can be said is said by a connection that breaks.
      exchange.outgoing.destroy();
      if (exchange.aborted !== undefined) return exchange.aborted;
      log.warn({ error: thrown, exchange: exchange.id }, 'the answer broke off');
      return renderError(thrown, exchange, []).error;
    }
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
      return waiting.length === 0
        ? statusAnswer(200, { status: 'ready' })
        : statusAnswer(503, { status: 'not ready', waiting });
    }
    return path === '/' || path === '/api/hello' ? statusAnswer(200, { status: 'ok' }) : undefined;
  }

  /** In the words of whatever is next to the path: who uses a method that is not there has a client of that protocol. */
  #refuse(incoming: IncomingMessage, outgoing: ServerResponse, path: string, error: unknown): void {
    const told = { id: this.#options.newId(), request: new IncomingRequest(incoming, path, '', {}) };
    const { errorShapes } = this.#options;
    this.#answerPlainly(outgoing, renderStray(toGatewayError(error), this.#router.nearest(path), told, errorShapes));
  }

  #answerPlainly(outgoing: ServerResponse, answer: Answer): void {
    const body = answer.body as string;
    outgoing.writeHead(answer.status, {
      ...answer.headers,
      'content-length': Buffer.byteLength(body),
      ...(this.#closing && hasArrived(outgoing.req) ? { connection: 'close' } : {}),
    });
    outgoing.end(body);
  }

  /** Once a second for all exchanges together: deadlines, clients that take nothing, streams that have been silent. */
  #sweep(): void {
    const now = this.#options.clock.monotonic();
    const { stallTimeoutMs, idleFrameAfterMs } = this.#limits;
    this.#flights.forEach(({ exchange, progress, deadline }) => {
      if (now > deadline) exchange.abort(deadlinePassed());
      if (exchange.left !== undefined) exchange.readsOn(now, 0);
      if (progress.blockedSince !== undefined) {
        if (now - progress.blockedSince > stallTimeoutMs) exchange.outgoing.destroy();
      } else if (progress.idleFrame !== undefined && now - progress.lastByteAt >= idleFrameAfterMs) {
        const frame = progress.idleFrame();
        if (frame !== undefined) writePart(exchange.outgoing, frame, progress);
        progress.lastByteAt = now;
      }
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

/** Resolves when the response is over; a client that left before that is told to the exchange at once. */
function closed(exchange: LiveExchange, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    exchange.outgoing.once('close', () => {
      if (!exchange.outgoing.writableFinished) exchange.leave(clock.monotonic());
      resolve();
    });
  });
}

function outcomeOf(exchange: LiveExchange, progress: Progress, error: GatewayError | undefined, now: number): Outcome {
  const finished = exchange.outgoing.writableFinished;
  // What went on without its client and then broke has failed; else the client's leaving is how it ended.
  const gone = exchange.aborted?.kind === 'client_left' || (exchange.left !== undefined && error === undefined);
  const left = !finished && gone && exchange.failure === undefined;
  const broke = exchange.failure ?? (finished ? undefined : error);
  const firstByte = progress.firstByteAt;
  return {
    kind: left ? 'client_left' : broke === undefined ? 'complete' : 'failed',
    status: progress.status === 0 ? 499 : progress.status,
    bytesOut: progress.bytesOut,
    totalMs: now - exchange.startedAt,
    ...(error === undefined ? {} : { error }),
    ...(firstByte === undefined ? {} : { firstByteMs: firstByte - exchange.startedAt }),
  };
}
