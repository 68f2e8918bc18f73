/** One exchange from its arrival to its end: runs the chain, writes the answer, and then the deferred work. */
import type { Outcome, PluginInstance } from '../contract/contract.ts';
import { type GatewayError, isPassing } from '../contract/errors.ts';
import type { Clock } from '../contract/host-tools.ts';
import type { Answer } from '../contract/message.ts';
import { renderError } from './answers.ts';
import type { BodyReader } from './body.ts';
import type { Run } from './chain.ts';
import { deadlinePassed, type LiveExchange } from './exchange.ts';
import { hasArrived } from './head-checks.ts';
import type { InFlightMember } from './in-flight-set.ts';
import { type AnswerEnd, endWith, newProgress, type Progress, writeAnswer, writePart } from './writer.ts';

export interface SweepLimits {
  /** How long a client may read nothing of an answer that waits for it. */
  readonly stallTimeoutMs: number;
  /** Silence in a streamed answer after which an idle frame is sent. */
  readonly idleFrameAfterMs: number;
}

/** Tools that all exchanges of a server share. */
export interface InFlightServices {
  readonly bodies: BodyReader;
  readonly errorShapes: readonly PluginInstance[];
  readonly clock: Clock;
  /** Whether answers carry `connection: close`. */
  isClosing(): boolean;
  /** The exchange has ended and its deferred work is done. */
  onSettled(running: InFlightExchange): void;
}

/** Exchanges that take longer give back memory that they have no use for. */
const shrunkAfterMs = 1_000;

/** Works by callbacks: a promise for each step would cost a tenth of forwarding. */
export class InFlightExchange implements InFlightMember, AnswerEnd {
  inFlightIndex = -1;
  readonly exchange: LiveExchange;
  readonly progress: Progress;
  /** Monotonic milliseconds. */
  readonly deadline: number;
  readonly #services: InFlightServices;
  /** The answer was written, or broke. */
  #isAnswered = false;
  #isClosed = false;
  #isShrunk = false;
  /** The error that was sent as the answer, or broke it. */
  #error: GatewayError | undefined;
  /** `failed` of the answer: its head and headers need not be kept while it streams. */
  #failed: Answer['failed'];

  constructor(exchange: LiveExchange, timeoutMs: number, services: InFlightServices) {
    this.exchange = exchange;
    this.progress = newProgress(exchange.startedAt);
    this.deadline = exchange.startedAt + timeoutMs;
    this.#services = services;
  }

  /** Looks at the deadline, a stalled client and a silent stream. `now` is monotonic. */
  sweep(now: number, { stallTimeoutMs, idleFrameAfterMs }: SweepLimits): void {
    const { exchange, progress } = this;
    if (now > this.deadline) exchange.abort(deadlinePassed());
    if (exchange.clientDisconnected !== undefined) exchange.shouldKeepReading(now, 0);
    if (!this.#isShrunk && now - exchange.startedAt > shrunkAfterMs) this.#shrink();
    if (progress.blockedSince !== undefined) {
      if (now - progress.blockedSince > stallTimeoutMs) exchange.outgoing.destroy();
    } else if (progress.idleFrame !== undefined && now - progress.lastByteAt >= idleFrameAfterMs) {
      const frame = progress.idleFrame();
      if (frame !== undefined) writePart(exchange.outgoing, frame, progress);
      progress.lastByteAt = now;
    }
  }

  #shrink(): void {
    this.#isShrunk = true;
    this.exchange.shrink();
    // It is all in `headers`, too.
    Object.assign(this.exchange.incoming, { rawHeaders: [] });
  }

  /** Runs the chain in the next tick: by then a body that came in one packet with its head has arrived. */
  begin(run: Run): void {
    this.exchange.outgoing.on('close', () => this.#close());
    process.nextTick(InFlightExchange.#enter, this, run);
  }

  static #enter(running: InFlightExchange, run: Run): void {
    run(running.exchange).then(
      (given) => {
        running.exchange.forgetBody();
        running.#services.bodies.release(running.exchange);
        running.#write(given, undefined);
      },
      (thrown) => running.#refuse(thrown),
    );
  }

  #refuse(thrown: unknown): void {
    const { exchange } = this;
    const { errorShapes } = this.#services;
    const { answer, error } = renderError(exchange.aborted ?? thrown, exchange, errorShapes);
    const passes = isPassing(error);
    if (error.kind === 'internal' || passes) {
      const what = passes ? 'requests are refused: what they need fails' : 'the exchange failed inside the gateway';
      exchange.log.error({ error: error.cause ?? thrown }, what);
      // A sent request may have been executed: a repetition could be billed twice.
      if (exchange.hasSent) {
        answer.headers['x-should-retry'] = 'false';
        delete answer.headers['retry-after'];
      }
    }
    this.#write(answer, error);
  }

  #write(answer: Answer, sent: GatewayError | undefined): void {
    const { exchange, progress } = this;
    const { clock } = this.#services;
    this.#error = sent;
    this.#failed = answer.failed;
    try {
      const closing = this.#services.isClosing() && hasArrived(exchange.incoming);
      if (!writeAnswer(exchange, answer, progress, clock, closing, this)) return;
    } catch (thrown) {
      this.broke(thrown);
      return;
    }
    this.#answered(exchange.failure ?? sent);
  }

  /** Called once, by what writes the answer; so is `broke`. */
  written(): void {
    this.#answered(this.exchange.failure ?? this.#error);
  }

  broke(thrown: unknown): void {
    const { exchange } = this;
    const failed = this.#failed;
    this.#failed = undefined;
    if (exchange.aborted === undefined) {
      exchange.log.warn({ error: thrown }, 'the answer broke off');
      const { error } = renderError(thrown, exchange, []);
      const last = exchange.outgoing.destroyed ? undefined : failed?.(error);
      if (last !== undefined) {
        this.#endFailed(error, last);
        return;
      }
      exchange.breakOff(error);
    }
    // The head was sent: only a closed connection can show the failure.
    exchange.outgoing.destroy();
    this.#answered(exchange.aborted);
  }

  /** Ends a stream by the error in the client's protocol. */
  #endFailed(error: GatewayError, last: Uint8Array): void {
    const { exchange, progress } = this;
    exchange.fail(error);
    endWith(exchange, last, progress).then(
      () => this.#answered(exchange.failure),
      (thrown) => this.broke(thrown),
    );
  }

  #answered(error: GatewayError | undefined): void {
    this.#isAnswered = true;
    this.#error = error;
    if (this.#isClosed) this.#end();
  }

  /** The response has ended; an early disconnect is reported to the exchange at once. */
  #close(): void {
    if (this.#isClosed) return;
    if (!this.exchange.outgoing.writableFinished) this.exchange.disconnect(this.#services.clock.monotonic());
    this.#isClosed = true;
    if (this.#isAnswered) this.#end();
  }

  #end(): void {
    const { clock } = this.#services;
    const outcome = outcomeOf(this.exchange, this.progress, this.#error, clock.monotonic());
    const ending = this.exchange.end(outcome);
    if (ending === undefined) this.#land();
    else void ending.then(() => this.#land());
  }

  #land(): void {
    this.#services.bodies.release(this.exchange);
    this.#services.onSettled(this);
  }
}

function outcomeOf(exchange: LiveExchange, progress: Progress, error: GatewayError | undefined, now: number): Outcome {
  const finished = exchange.outgoing.writableFinished;
  // An answer that was read on after the disconnect and then broke has failed; else the disconnect is the outcome.
  const gone =
    exchange.aborted?.kind === 'client_left' || (exchange.clientDisconnected !== undefined && error === undefined);
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
