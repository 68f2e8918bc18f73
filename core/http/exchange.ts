/** The state of one request: context, hooks, abort, client disconnect and concurrent branches. */

import {
  type Branch,
  type ContextKey,
  type DrainBounds,
  type Endpoint,
  type Exchange,
  type Outcome,
  type SendHook,
  upstreamRequest,
} from '../contract/contract.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Clock, RequestLog } from '../contract/host-tools.ts';
import type { AnswerWatcher } from '../contract/message.ts';
import { both } from './answers.ts';
import type { Share } from './bounds/body-budget.ts';
import { ExchangeLog, type ExchangeLogs } from './exchange-log.ts';
import { emptyBody, type Incoming, type IncomingRequest, type Outgoing } from './incoming-request.ts';

/** A running attempt. */
export interface Abortable {
  abort(reason: GatewayError): void;
}

/** The exchange with the members that only the server and the centre use. */
export class LiveExchange implements Exchange {
  readonly id: string;
  readonly endpoint: Endpoint;
  readonly request: IncomingRequest;
  readonly receivedAt: number;
  /** Monotonic milliseconds of arrival. */
  readonly startedAt: number;
  readonly incoming: Incoming;
  readonly outgoing: Outgoing;
  aborted: GatewayError | undefined;
  /** Set when an error was sent inside the stream. */
  failure: GatewayError | undefined;
  /** A request of this exchange was handed to an upstream. */
  hasSent = false;
  /** Whether the request of the current or last attempt was handed to an upstream. */
  attemptSent = false;
  /** Set when the client has disconnected and the answer is read on without it. */
  clientDisconnected: GatewayError | undefined;
  /** Observes the answer as it is sent. */
  watcher: AnswerWatcher | undefined;
  /** Bytes of the body that count against the server's budget. */
  heldBytes = 0;
  /** The account's share of that budget, which counts them too. */
  share: Share | undefined;
  /** Status of the latest head that came from an upstream; 0: none yet. */
  headStatus = 0;
  readonly #logs: ExchangeLogs;
  #context: unknown[] = [];
  #deferred: ((outcome: Outcome) => void | Promise<void>)[] = [];
  #beforeSend: SendHook[] | undefined;
  #beforeFirstByte: SendHook[] | undefined;
  #beforeEnd: ((kind: Outcome['kind']) => void | Promise<void>)[] | undefined;
  #controller: AbortController | undefined;
  #continueBounds: DrainBounds | undefined;
  /** After a disconnect: until when (monotonic), and how many more bytes, the answer is read. */
  #readUntil = 0;
  #bytesLeft = 0;
  #running: Abortable | undefined;
  /** Concurrent attempts in the order of their start. */
  #branches: LiveBranch[] | undefined;
  /** The branch that was joined. */
  #joined: LiveBranch | undefined;

  constructor(
    id: string,
    endpoint: Endpoint,
    request: IncomingRequest,
    incoming: Incoming,
    outgoing: Outgoing,
    clock: Clock,
    logs: ExchangeLogs,
  ) {
    this.id = id;
    this.endpoint = endpoint;
    this.request = request;
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.receivedAt = clock.now();
    this.startedAt = clock.monotonic();
    this.#logs = logs;
  }

  get log(): RequestLog {
    return new ExchangeLog(this, this.#logs);
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.aborted !== undefined) this.#controller.abort(this.aborted);
    }
    return this.#controller.signal;
  }

  get<T>(key: ContextKey<T>): T {
    const value = this.#context[key.slot];
    if (value === undefined)
      throw new Error(`the context value "${key.name}" is not set on ${this.endpoint.method} ${this.endpoint.path}`);
    return value as T;
  }

  find<T>(key: ContextKey<T>): T | undefined {
    return this.#context[key.slot] as T | undefined;
  }

  set<T>(key: ContextKey<T>, value: T): void {
    this.#context[key.slot] = value;
  }

  defer(work: (outcome: Outcome) => void | Promise<void>): void {
    this.#deferred.push(work);
  }

  beforeSend(work: SendHook): void {
    if (this.#beforeSend === undefined) this.#beforeSend = [work];
    else this.#beforeSend.push(work);
  }

  beforeFirstByte(work: SendHook): void {
    if (this.#beforeFirstByte === undefined) this.#beforeFirstByte = [work];
    else this.#beforeFirstByte.push(work);
  }

  beforeEnd(work: (kind: Outcome['kind']) => void | Promise<void>): void {
    if (this.#beforeEnd === undefined) this.#beforeEnd = [work];
    else this.#beforeEnd.push(work);
  }

  continueAfterDisconnect(bounds: DrainBounds): void {
    this.#continueBounds = bounds;
  }

  fail(error: GatewayError): void {
    this.failure ??= error;
  }

  watch(watcher: AnswerWatcher): void {
    this.watcher = this.watcher === undefined ? watcher : both(this.watcher, watcher);
  }

  async replaceBody(body: Uint8Array): Promise<void> {
    await this.request.replaceBody(body, this.endpoint.body === 'json');
    await this.endpoint.open?.(this);
  }

  /** Runs the `beforeSend` hooks; undefined when there is nothing to wait for. */
  readyToSend(): Promise<void> | undefined {
    const hooks = this.#beforeSend;
    return hooks === undefined ? undefined : runInOrder(hooks, this);
  }

  /** Runs the `beforeFirstByte` hooks; undefined when there is nothing to wait for. */
  readyForFirstByte(): Promise<void> | undefined {
    const hooks = this.#beforeFirstByte;
    return hooks === undefined ? undefined : runInOrder(hooks, this);
  }

  /** Runs the `beforeEnd` hooks, once; undefined when there is nothing to wait for. */
  readyToEnd(): Promise<void> | undefined {
    const hooks = this.#beforeEnd;
    this.#beforeEnd = undefined;
    if (hooks === undefined || this.clientDisconnected !== undefined || this.aborted?.kind === 'client_left')
      return undefined;
    return runInOrder(hooks, this.failure === undefined ? 'complete' : 'failed');
  }

  /** Frees the request's body and what attempts wait for: the answer has begun, so no other attempt will be made. */
  forgetBody(): void {
    this.#beforeSend = undefined;
    this.#beforeFirstByte = undefined;
    this.request.body = emptyBody;
    const sent = this.find(upstreamRequest);
    if (sent !== undefined) sent.body = undefined;
  }

  /** Aborts the exchange, its attempt and its branches. Only the first reason counts. */
  abort(reason: GatewayError): void {
    this.#stop(reason, reason.kind === 'client_left');
  }

  /** Ends the exchange as failed because the answer's body broke; the closed connection does not count as a disconnect. */
  breakOff(reason: GatewayError): void {
    this.fail(reason);
    this.#stop(reason, true);
  }

  /** `keepsLostBranches`: a branch that lost is read on for its cost, not for the client, and continues. */
  #stop(reason: GatewayError, keepsLostBranches: boolean): void {
    if (this.aborted !== undefined) return;
    this.aborted = reason;
    this.#controller?.abort(reason);
    this.#running?.abort(reason);
    for (const branch of this.#branches ?? []) {
      const isLost = this.#joined !== undefined && branch !== this.#joined;
      if (!isLost || !keepsLostBranches) branch.abort(reason);
    }
  }

  /** The client disconnected: aborts, unless a sent request's answer is to be read on. `now` is monotonic. */
  disconnect(now: number): void {
    if (this.clientDisconnected !== undefined || this.aborted !== undefined) return;
    // The first branch that still runs decides.
    const running = this.#branches?.find(({ aborted }) => aborted === undefined);
    const sending = (this.#joined === undefined ? running : undefined) ?? this;
    const bounds = this.#continueBounds ?? sending.find(upstreamRequest)?.drain;
    if (!sending.attemptSent || bounds === undefined) {
      this.abort(clientDisconnected());
      return;
    }
    this.clientDisconnected = clientDisconnected();
    for (const branch of this.#branches ?? []) branch.clientDisconnected = this.clientDisconnected;
    this.#readUntil = now + bounds.longestMs;
    this.#bytesLeft = bounds.maxBytes;
  }

  /** Whether the answer is read on after a disconnect, counting `bytes` more; aborts when the bounds are used up. */
  shouldKeepReading(now: number, bytes: number): boolean {
    if (this.clientDisconnected === undefined || this.aborted !== undefined) return false;
    this.#bytesLeft -= bytes;
    if (now <= this.#readUntil && this.#bytesLeft >= 0) return true;
    this.abort(this.clientDisconnected);
    return false;
  }

  fork(): LiveBranch {
    this.#beforeSend ??= [];
    this.#beforeFirstByte ??= [];
    const branch = new LiveBranch(this, this.#logs);
    branch.#context = this.#context.slice();
    branch.#beforeSend = this.#beforeSend;
    branch.#beforeFirstByte = this.#beforeFirstByte;
    branch.clientDisconnected = this.clientDisconnected;
    if (this.aborted !== undefined) branch.abort(this.aborted);
    // The branches of an earlier round have ended.
    if (this.#branches === undefined || this.#joined !== undefined) this.#branches = [];
    this.#joined = undefined;
    this.#branches.push(branch);
    return branch;
  }

  /** Exchange and branch share one context from here on. */
  adoptBranch(branch: LiveBranch): void {
    this.#joined = branch;
    this.#context = branch.#context;
    this.hasSent ||= branch.hasSent;
    this.attemptSent = branch.attemptSent;
    this.failure = branch.failure;
  }

  /** Sets the running attempt, which is aborted with the exchange: at once when that has happened already. */
  runs(attempt: Abortable | undefined): void {
    this.#running = attempt;
    if (attempt !== undefined && this.aborted !== undefined) attempt.abort(this.aborted);
  }

  /** Gives lists that have room to grow their own size. For answers that take long: most end before it would pay. */
  shrink(): void {
    this.#deferred = this.#deferred.slice();
    // A branch that was joined shares the context.
    if (this.#branches === undefined) this.#context = this.#context.slice();
  }

  /** Runs the deferred work once, last in first out; undefined: nothing to wait for. An error is logged, and the rest runs. */
  end(outcome: Outcome): Promise<void> | undefined {
    for (let work = this.#deferred.pop(); work !== undefined; work = this.#deferred.pop()) {
      try {
        const pending = work(outcome);
        if (pending !== undefined) return this.#endAfter(pending, outcome);
      } catch (error) {
        this.log.error({ error }, 'deferred work failed');
      }
    }
    return undefined;
  }

  async #endAfter(pending: Promise<void>, outcome: Outcome): Promise<void> {
    try {
      await pending;
    } catch (error) {
      this.log.error({ error }, 'deferred work failed');
    }
    await this.end(outcome);
  }
}

/** One of several concurrent attempts: it has its own context, abort and failure, and shares all else with the exchange. */
export class LiveBranch extends LiveExchange implements Branch {
  readonly #trunk: LiveExchange;
  #isJoined = false;

  constructor(trunk: LiveExchange, logs: ExchangeLogs) {
    const { id, endpoint, request, incoming, outgoing, receivedAt, startedAt } = trunk;
    super(id, endpoint, request, incoming, outgoing, { now: () => receivedAt, monotonic: () => startedAt }, logs);
    this.#trunk = trunk;
  }

  stop(reason: GatewayError): void {
    this.abort(reason);
  }

  join(): void {
    this.#isJoined = true;
    this.#trunk.adoptBranch(this);
  }

  override defer(work: (outcome: Outcome) => void | Promise<void>): void {
    this.#trunk.defer(work);
  }

  override beforeEnd(work: (kind: Outcome['kind']) => void | Promise<void>): void {
    this.#trunk.beforeEnd(work);
  }

  override continueAfterDisconnect(bounds: DrainBounds): void {
    this.#trunk.continueAfterDisconnect(bounds);
  }

  override watch(watcher: AnswerWatcher): void {
    this.#trunk.watch(watcher);
  }

  override fail(error: GatewayError): void {
    super.fail(error);
    if (this.#isJoined) this.#trunk.fail(error);
  }
}

/** undefined when there is nothing to wait for. */
function runInOrder<T>(
  hooks: readonly ((given: T) => void | Promise<void>)[],
  given: T,
  from = 0,
): Promise<void> | undefined {
  for (let index = from; index < hooks.length; index++) {
    const pending = hooks[index]!(given);
    if (pending === undefined) continue;
    return index === hooks.length - 1 ? pending : pending.then(() => runInOrder(hooks, given, index + 1));
  }
  return undefined;
}

export const clientDisconnected = () => new GatewayError('client_left', 'The client closed the connection.');
export const deadlinePassed = () =>
  new GatewayError('upstream_timeout', 'The request took longer than this endpoint allows.', { shouldRetry: false });
