/** One request on its way through the plugins: its facts, its end, and what is to be done when it has ended. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BlockList } from 'node:net';
import type { Branch } from './branch.ts';
import { clientAddress } from './client-address.ts';
import {
  type AnswerWatcher,
  type ClientRequest,
  type Clock,
  type DrainBounds,
  type Endpoint,
  type Exchange,
  type Fact,
  type Headers,
  type Log,
  type Outcome,
  upstreamRequest,
} from './contract.ts';
import { GatewayError } from './errors.ts';

/** The request as plugins see it. What few ask for (query, address) is made when it is asked for. */
export class IncomingRequest implements ClientRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Headers>;
  readonly params: Readonly<Record<string, string | undefined>>;
  body: Uint8Array = emptyBody;
  bodyBytes = 0;
  readonly #search: string;
  readonly #incoming: IncomingMessage;
  readonly #proxies: BlockList | undefined;
  #query: URLSearchParams | undefined;
  #remoteAddress: string | undefined;

  /** `proxies`: those whose X-Forwarded-For is believed. */
  constructor(
    incoming: IncomingMessage,
    path: string,
    search: string,
    params: Record<string, string | undefined>,
    proxies?: BlockList,
  ) {
    this.method = incoming.method!;
    this.path = path;
    this.headers = incoming.headers as Headers;
    this.params = params;
    this.#search = search;
    this.#incoming = incoming;
    this.#proxies = proxies;
  }

  get query(): URLSearchParams {
    this.#query ??= this.#search === '' ? noQuery : new URLSearchParams(this.#search);
    return this.#query;
  }

  get remoteAddress(): string {
    const { socket, headers } = this.#incoming;
    this.#remoteAddress ??= clientAddress(
      socket.remoteAddress ?? '',
      headers['x-forwarded-for'] as string | undefined,
      this.#proxies,
    );
    return this.#remoteAddress;
  }
}

const emptyBody = new Uint8Array(0);
/** Shared: nobody has a reason to write into a request's query. */
const noQuery = new URLSearchParams();

/** The exchange as the core holds it: the contract's face, and what only the server and the centre may touch. */
export class LiveExchange implements Exchange {
  readonly id: string;
  readonly endpoint: Endpoint;
  readonly request: IncomingRequest;
  readonly receivedAt: number;
  /** Monotonic milliseconds of arrival. */
  readonly startedAt: number;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  /** Set when a stream's error went out inside the stream. */
  failure: GatewayError | undefined;
  /** A request of this exchange was handed to an upstream. */
  hasSent = false;
  /** Set when the client has left and what it asked for is finished all the same. */
  left: GatewayError | undefined;
  /** Is shown the answer as it goes out. */
  watcher: AnswerWatcher | undefined;
  /** Bytes of the body that count against the server's budget. */
  heldBytes = 0;
  /** Status of the latest head that came from an upstream; 0: none yet. */
  headStatus = 0;
  #facts: unknown[] = [];
  readonly #deferred: ((outcome: Outcome) => void | Promise<void>)[] = [];
  #beforeSend: ((sending: Exchange) => void | Promise<void>)[] | undefined;
  #controller: AbortController | undefined;
  #aborted: GatewayError | undefined;
  #outlives: DrainBounds | undefined;
  /** From when the client has left: until when (monotonic), and how many bytes, the answer is read on. */
  #readsUntil = 0;
  #bytesLeft = 0;
  #onAbort: ((reason: GatewayError) => void) | undefined;
  /** Attempts that run at the same time, the first one first. */
  #branches: LiveBranch[] | undefined;
  /** The one of them as which the exchange goes on. */
  #joined: LiveBranch | undefined;

  constructor(
    id: string,
    endpoint: Endpoint,
    request: IncomingRequest,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    clock: Clock,
  ) {
    this.id = id;
    this.endpoint = endpoint;
    this.request = request;
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.receivedAt = clock.now();
    this.startedAt = clock.monotonic();
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted);
    }
    return this.#controller.signal;
  }

  get aborted(): GatewayError | undefined {
    return this.#aborted;
  }

  get<T>(fact: Fact<T>): T {
    const value = this.#facts[fact.slot];
    if (value === undefined)
      throw new Error(`nobody has stated the fact "${fact.name}" on ${this.endpoint.method} ${this.endpoint.path}`);
    return value as T;
  }

  find<T>(fact: Fact<T>): T | undefined {
    return this.#facts[fact.slot] as T | undefined;
  }

  set<T>(fact: Fact<T>, value: T): void {
    this.#facts[fact.slot] = value;
  }

  defer(work: (outcome: Outcome) => void | Promise<void>): void {
    this.#deferred.push(work);
  }

  beforeSend(work: (sending: Exchange) => void | Promise<void>): void {
    this.#beforeSend ??= [];
    this.#beforeSend.push(work);
  }

  outlive(bounds: DrainBounds): void {
    this.#outlives = bounds;
  }

  fail(error: GatewayError): void {
    this.failure ??= error;
  }

  watch(watcher: AnswerWatcher): void {
    this.watcher = watcher;
  }

  /** Runs what waits for the moment before sending; undefined when nothing has to be waited for. */
  readyToSend(): Promise<void> | undefined {
    const hooks = this.#beforeSend;
    return hooks === undefined ? undefined : runInOrder(hooks, this);
  }

  /** The answer has begun and no other attempt will be made: what was sent is forgotten. */
  forgetBody(): void {
    this.request.body = emptyBody;
    const sent = this.find(upstreamRequest);
    if (sent !== undefined) sent.body = undefined;
  }

  /** Tells everybody who waits for the upstream to stop. Only the first reason counts. */
  abort(reason: GatewayError): void {
    if (this.#aborted !== undefined) return;
    this.#aborted = reason;
    this.#controller?.abort(reason);
    this.#onAbort?.(reason);
    if (this.#branches !== undefined) this.#abortBranches(this.#branches, reason);
  }

  #abortBranches(branches: readonly LiveBranch[], reason: GatewayError): void {
    for (const branch of branches) {
      // What a branch that lost is read on for is no longer the client's: it goes on without it.
      const isLost = this.#joined !== undefined && branch !== this.#joined;
      if (!isLost || reason.kind !== 'client_left') branch.abort(reason);
    }
  }

  /** The client is gone: all stops, unless something was sent whose answer is read on. `now` is monotonic. */
  leave(now: number): void {
    if (this.left !== undefined || this.#aborted !== undefined) return;
    // While several run it is the first by which the client is served; what was told to stop runs no more.
    const running = this.#branches?.find(({ aborted }) => aborted === undefined);
    const sending = (this.#joined === undefined ? running : undefined) ?? this;
    const bounds = this.#outlives ?? sending.find(upstreamRequest)?.drain;
    if (!sending.hasSent || bounds === undefined) {
      this.abort(clientLeft());
      return;
    }
    this.left = clientLeft();
    for (const branch of this.#branches ?? []) branch.left = this.left;
    this.#readsUntil = now + bounds.longestMs;
    this.#bytesLeft = bounds.maxBytes;
  }

  /** Whether the answer is still read on without its client, `bytes` more of it; if no longer, all stops. */
  readsOn(now: number, bytes: number): boolean {
    if (this.left === undefined || this.#aborted !== undefined) return false;
    this.#bytesLeft -= bytes;
    if (now <= this.#readsUntil && this.#bytesLeft >= 0) return true;
    this.abort(this.left);
    return false;
  }

  fork(): LiveBranch {
    this.#beforeSend ??= [];
    const branch = new LiveBranch(this);
    branch.#facts = this.#facts.slice();
    branch.#beforeSend = this.#beforeSend;
    branch.left = this.left;
    if (this.#aborted !== undefined) branch.abort(this.#aborted);
    // The branches of an earlier round have ended.
    if (this.#branches === undefined || this.#joined !== undefined) this.#branches = [];
    this.#joined = undefined;
    this.#branches.push(branch);
    return branch;
  }

  /** From here on both have the same facts. */
  goOnAs(branch: LiveBranch): void {
    this.#joined = branch;
    this.#facts = branch.#facts;
    this.hasSent ||= branch.hasSent;
    this.failure = branch.failure;
  }

  /** One listener at a time: the running attempt. Called at once when the exchange is aborted already. */
  onAbort(listener: ((reason: GatewayError) => void) | undefined): void {
    this.#onAbort = listener;
    if (listener !== undefined && this.#aborted !== undefined) listener(this.#aborted);
  }

  /** Runs the deferred work once, last in first out. One work's error is logged and stops no other. */
  async end(outcome: Outcome, log: Log): Promise<void> {
    for (let work = this.#deferred.pop(); work !== undefined; work = this.#deferred.pop()) {
      try {
        const pending = work(outcome);
        if (pending !== undefined) await pending;
      } catch (error) {
        log.error({ error, exchange: this.id }, 'deferred work failed');
      }
    }
  }
}

/** One of several attempts that run at the same time: facts, abort and failure of its own, all else is the exchange's. */
export class LiveBranch extends LiveExchange implements Branch {
  readonly #trunk: LiveExchange;
  #isJoined = false;

  constructor(trunk: LiveExchange) {
    const { id, endpoint, request, incoming, outgoing, receivedAt, startedAt } = trunk;
    super(id, endpoint, request, incoming, outgoing, { now: () => receivedAt, monotonic: () => startedAt });
    this.#trunk = trunk;
  }

  stop(reason: GatewayError): void {
    this.abort(reason);
  }

  join(): void {
    this.#isJoined = true;
    this.#trunk.goOnAs(this);
  }

  override defer(work: (outcome: Outcome) => void | Promise<void>): void {
    this.#trunk.defer(work);
  }

  override outlive(bounds: DrainBounds): void {
    this.#trunk.outlive(bounds);
  }

  override watch(watcher: AnswerWatcher): void {
    this.#trunk.watch(watcher);
  }

  override fail(error: GatewayError): void {
    super.fail(error);
    if (this.#isJoined) this.#trunk.fail(error);
  }
}

async function runInOrder(
  hooks: readonly ((sending: Exchange) => void | Promise<void>)[],
  sending: Exchange,
): Promise<void> {
  for (const hook of hooks) await hook(sending);
}

export const clientLeft = () => new GatewayError('client_left', 'The client closed the connection.');
export const deadlinePassed = () =>
  new GatewayError('upstream_timeout', 'The request took longer than this endpoint allows.', { shouldRetry: false });
