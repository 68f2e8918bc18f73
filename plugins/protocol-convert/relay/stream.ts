/** Relay of a stream in whole frames with the upstream's own bytes, a usage meter, and a protocol-correct end. */
import { GatewayError } from '../../../core/contract/errors.ts';
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';
import { usedUp } from '../../common/domain/calls.ts';
import { Outbox } from '../../common/encoding/outbox.ts';
import { FrameReader, parseFrame } from '../../common/kit/sse.ts';
import { notAnAnswer } from '../../common/kit/upstream-errors.ts';
import { wholeBody } from '../../common/wire/answer-body.ts';
import { isComment, isWholeFrame, type ReadFrame } from '../../common/wire/frame.ts';
import type { Reshape, StreamReader } from '../../common/wire/protocols.ts';
import type { UsageMeter, Verdict } from '../../common/wire/usage-meter.ts';
import { keepAsEstimate, Opening, refuseKeptBack } from './opening.ts';
import {
  cleanError,
  drainBody,
  endOf,
  framedError,
  giveUp,
  idleFrameOf,
  isAnswered,
  keepsLastFrame,
  type RelayStreamOptions,
  recordedRefusal,
  refusalIn,
  renderedError,
  streamBreakError,
  withRest,
} from './stream-end.ts';

type Step = IteratorResult<Uint8Array>;

/** The body of a streamed answer. One object and one promise for each chunk: this is the hottest path of the gateway. */
export class RelayStream implements AsyncIterableIterator<Uint8Array> {
  readonly #options: RelayStreamOptions;
  readonly #source: RelayStreamOptions['source'];
  readonly #usageMeter: UsageMeter;
  /** Set by `open`: the body is one document. */
  document: Uint8Array | undefined;
  #reader: StreamReader = new FrameReader((raw, end) => this.#frame(raw, end));
  #outbox = new Outbox();
  #reshape: Reshape | undefined;
  /** Chunks that were pulled while the head was held. */
  #held: Uint8Array[] = [];
  /** The last frame that was neither a comment nor an error. */
  #lastFrame: Buffer | undefined;
  /** A frame has come that is more than an opening one. */
  #hasContent = false;
  /** A chunk that did not come before the head went out. */
  #late: Promise<Step> | undefined;
  #isRecognised = false;
  #isOpening = true;
  #ended = false;
  /** The stream ended with the gateway's own error: later bytes of the upstream are not forwarded. */
  #isErrorSent = false;

  constructor(options: RelayStreamOptions) {
    this.#options = options;
    this.#source = options.source;
    this.#usageMeter = options.usageMeter;
    this.#reshape = options.reshape;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * Pulls until the first event that a client can use, while the head can still become an error: throws an UpstreamRefusal for an
   * error up to there, or for a body that is no answer. Returns the response mapping of the answer.
   */
  async open(): Promise<Reshape | undefined> {
    const opening = new Opening(this.#options);
    try {
      let step: Step | undefined = await this.#source.next();
      for (; step?.done === false; step = await opening.next()) {
        if (!this.#isRecognised) await this.#recognise(step.value);
        if (this.document !== undefined) return this.#reshape;
        this.#hold(this.#take(step.value));
        if (this.#isFirstAnError) throw refusalIn(this.#options, this.#usageMeter);
        if (this.#hasContent) return this.#opened();
      }
      this.#late = opening.late;
      if (step === undefined) return this.#opened();
      this.#finishLastFrame();
      if (this.#isFirstAnError) throw refusalIn(this.#options, this.#usageMeter);
      if (!this.#usageMeter.complete) throw notAnAnswer('the stream ended before anything that a client can use', true);
      if (!this.#ended) this.#complete();
      return this.#opened();
    } catch (error) {
      this.#options.report.broken = this.#isUpstreamBroken;
      keepAsEstimate(this.#options.exchange, error);
      void giveUp(this.#source);
      throw error;
    }
  }

  get #isFirstAnError(): boolean {
    return this.#usageMeter.error !== undefined && !this.#hasContent;
  }

  #opened(): Reshape | undefined {
    refuseKeptBack(this.#options.exchange, this.#usageMeter, this.#options.report);
    this.#isOpening = false;
    if (this.#held.length > 1) this.#held = [Buffer.concat(this.#held)];
    return this.#reshape;
  }

  next(): Promise<Step> {
    const held = this.#held.shift();
    if (held !== undefined) return Promise.resolve({ done: false, value: held });
    const pending = this.#reshape?.pending;
    if (pending !== undefined) return this.#behind(pending);
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    const pulled = this.#late ?? this.#source.next();
    this.#late = undefined;
    return Promise.resolve(pulled).then(this.#pulled, this.#broke);
  }

  /** Made once: an async function would make callbacks for each chunk, and keep more than these while the stream is silent. */
  readonly #pulled = (step: Step): Step | Promise<Step> => {
    try {
      const out = step.done === true ? this.#finish() : this.#take(step.value);
      if (out !== undefined) return { done: false, value: out };
    } catch (error) {
      this.#break(error);
    }
    return this.next();
  };

  readonly #broke = (error: unknown): Promise<Step> => {
    this.#break(error);
    return this.next();
  };

  /** Goes on when the transforms do. */
  #behind(pending: Promise<void>): Promise<Step> {
    const isEnd = this.#ended;
    const settled = () => {
      this.#hold(this.#reshape?.flush?.());
      if (isEnd) this.#options.ended();
      return this.next();
    };
    return pending.then(settled).catch(this.#broke);
  }

  /** The client has disconnected, or everything was read: then nothing remains to be done. */
  async return(): Promise<Step> {
    if (!this.#ended) {
      this.#ended = true;
      await giveUp(this.#source);
    }
    return { done: true, value: undefined };
  }

  /** No frame follows those that were pulled or are held: the usage is final. */
  get hasEnded(): boolean {
    return this.#ended && this.#reshape?.pending === undefined;
  }

  /** Bytes that this client skips, or undefined while a frame is sent in part. */
  idleFrame(): Uint8Array | undefined {
    if (this.#outbox.isInsideFrame) return undefined;
    return idleFrameOf(this.#options, this.#reshape === undefined ? this.#lastFrame : undefined);
  }

  /** A plugin above broke the stream: the frames that report it. The blank line ends a frame that was sent in part. */
  fail(cause: GatewayError): Uint8Array | undefined {
    this.#ended = true;
    const frames = this.#errorFrames(streamBreakError(cause));
    return frames && (this.#reshape === undefined ? Buffer.concat([Buffer.from('\n\n'), frames]) : frames);
  }

  /** Examines the stream's first byte: SSE, the protocol's own framing, or no stream. */
  async #recognise(chunk: Uint8Array): Promise<void> {
    const [first] = Buffer.from(chunk.subarray(0, 64)).toString('latin1').trimStart();
    this.#isRecognised = first !== undefined;
    const { protocol, prefersDocument } = this.#options;
    const framing = prefersDocument && first === '{' ? undefined : protocol.framing;
    if (first !== undefined && framing?.begins(first)) {
      this.#reader = framing.createReader((raw, end) => this.#frame(raw, end));
      if (this.#reshape?.adopt === undefined) this.#reshape ??= framing.reshape;
      else this.#reshape.adopt(framing.reshape);
      return;
    }
    if (first !== '{' && first !== '[' && first !== '<') return;
    if (first !== '{') throw notAnAnswer('a document came instead of a stream', first !== '<');
    this.document = await wholeBody(withRest(chunk, this.#source), Number.POSITIVE_INFINITY);
  }

  /** Processes one chunk; returns the bytes of it, and of held ones, to send now. */
  #take(chunk: Uint8Array): Uint8Array | undefined {
    this.#outbox.begin(chunk);
    this.#reader.feed(chunk);
    if (this.#reshape === undefined) this.#outbox.finishChunk(this.#ended && !this.#isErrorSent);
    else this.#outbox.add(this.#reshape.flush?.());
    const { meter, report } = this.#options;
    if (meter !== undefined && !this.#ended && !meter.observe(report.answeredTokens)) this.#stopForBalance();
    return this.#outbox.flush();
  }

  #frame(raw: Buffer, end: number): void {
    if (this.#isErrorSent) {
      this.#outbox.skip(raw, end);
      return;
    }
    if (isComment(raw)) {
      if (this.#reshape === undefined) this.#outbox.pass(raw, end);
      else this.#outbox.add(this.#reshape.comment?.(raw));
      return;
    }
    const read = this.#reshape?.read?.(raw);
    const verdict = this.#look(raw, read);
    if (verdict === 'error' || verdict === 'failed') this.#sendError(raw, end);
    else this.#send(raw, end, read, verdict);
    if (verdict !== 'last' && verdict !== 'failed' && verdict !== 'overdue') return;
    if (verdict !== 'failed') this.#outbox.add(this.#reshape?.finish?.());
    this.#endNormally();
  }

  #send(raw: Buffer, end: number, read: ReadFrame | undefined, verdict: Verdict): void {
    if (keepsLastFrame(this.#options)) this.#lastFrame = raw;
    if (!this.#hasContent) this.#hasContent = verdict !== 'pass' || this.#options.protocol.isOpening?.(raw) !== true;
    if (this.#reshape !== undefined) this.#outbox.add(this.#reshape.frame(raw, read, verdict));
    else if (verdict === 'withhold') this.#outbox.skip(raw, end);
    else if (verdict === 'overdue') this.#outbox.replace(raw, end, Buffer.from(this.#options.protocol.streamEnd ?? ''));
    else this.#outbox.pass(raw, end);
  }

  #look(raw: Buffer, read: ReadFrame | undefined): Verdict {
    if (read?.growth !== undefined && this.#usageMeter.again?.(read.growth)) return 'pass';
    return read === undefined ? this.#usageMeter.frame(raw) : this.#usageMeter.payload(read.json, read.event);
  }

  /** Sends the upstream's error, scrubbed, or in the client's protocol or the gateway's own shape. Clients read it as the end, so nothing follows. */
  #sendError(raw: Buffer, end: number): void {
    const { protocol, shapeOf, report, exchange } = this.#options;
    const forms = [this.#reshape?.fail, shapeOf, protocol.readError];
    const isRendered = this.#usageMeter.hidesError || forms.some((form) => form !== undefined);
    const error = streamBreakError(new UpstreamError('body', 'the stream reported an error'));
    if (!isRendered) {
      const clean = cleanError(raw, error, this.#options, this.#lastFrame);
      if (this.#reshape !== undefined) this.#outbox.add(this.#reshape.frame(Buffer.from(clean), undefined, 'error'));
      else this.#outbox.replace(raw, end, clean);
    } else if (this.#reshape === undefined) this.#outbox.skip(raw, end);
    report.broken = true;
    // An error in the opening becomes a separate answer, possibly of another target.
    if (this.#isOpening && !this.#hasContent) return;
    const refusal = recordedRefusal(this.#options, this.#usageMeter);
    if (isRendered) {
      this.#isErrorSent = true;
      this.#outbox.add(this.#errorFrames(streamBreakError(refusal.error)));
      this.#endNormally();
    } else exchange.fail(error);
  }

  /** The protocol's end: the client's stream ends at once, even if the upstream keeps the socket open. */
  #endNormally(): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#reshape?.pending === undefined) this.#options.ended();
    void drainBody(this.#source, this.#options.clock).then(() => giveUp(this.#source));
  }

  #finish(): undefined {
    this.#finishLastFrame();
    if (this.#ended) return;
    if (this.#usageMeter.complete || this.#usageMeter.error !== undefined) this.#complete();
    else this.#break(new UpstreamError('body', 'the stream ended without its end'));
  }

  /** The answer was complete, although its last event did not come. */
  #complete(): void {
    const end = this.#reshape ?? endOf(this.#options);
    this.#hold(this.#usageMeter.error === undefined ? end.finish?.() : undefined);
    this.#ended = true;
    if (this.#reshape?.pending === undefined) this.#options.ended();
  }

  /** Sends a complete last frame without its blank line as it came; drops a partial one. */
  #finishLastFrame(): void {
    const rest = this.#reader.end();
    if (rest !== undefined) this.#finishFrame(rest);
    this.#outbox.add(this.#reshape?.flush?.());
    this.#hold(this.#outbox.flush());
  }

  #hold(out: Uint8Array | undefined): void {
    if (out !== undefined) this.#held.push(out);
  }

  #finishFrame(rest: Buffer): void {
    const data = parseFrame(rest)?.data;
    const read = this.#reshape?.read?.(rest);
    const verdict = this.#look(rest, read);
    if (verdict === 'error' || verdict === 'failed') {
      this.#sendError(rest, 0);
      if (data === undefined && this.#reshape === undefined && !this.#isErrorSent) {
        // An error object without its frame: official clients read it only inside a frame.
        this.#outbox.clear();
        this.#outbox.add(framedError(this.#options));
      }
    } else if (isWholeFrame(rest, data)) {
      if (this.#reshape !== undefined) this.#outbox.add(this.#reshape.frame(rest, read, verdict));
      else if (verdict !== 'withhold') this.#outbox.pass(rest, 0);
    }
  }

  /** Handles a failure. A complete answer ends normally; otherwise the client gets an error in its protocol. */
  #break(cause: unknown): void {
    const { exchange, report } = this.#options;
    this.#ended = true;
    void giveUp(this.#source);
    const refusal = isAnswered(this.#usageMeter, cause) ? this.#completeOrRefused(cause) : cause;
    if (refusal === undefined) return;
    const reason: unknown = exchange.signal.aborted ? exchange.signal.reason : refusal;
    if (reason instanceof GatewayError && reason.kind === 'client_left') return;
    report.broken = this.#isUpstreamBroken;
    this.#hold(this.#errorFrames(streamBreakError(reason)));
  }

  /** The error by which a transform ends a complete answer; undefined: the answer ends normally. */
  #completeOrRefused(cause: unknown): unknown {
    if (this.#reshape?.hasRefused === true) return cause;
    try {
      this.#complete();
    } catch (error) {
      return error;
    }
    return undefined;
  }

  get #isUpstreamBroken(): boolean {
    return !this.#options.exchange.signal.aborted && this.#reshape?.hasRefused !== true;
  }

  #stopForBalance(): void {
    this.#ended = true;
    void giveUp(this.#source);
    this.#outbox.add(this.#errorFrames(usedUp(this.#options.meter)));
  }

  #errorFrames(error: GatewayError): Uint8Array | undefined {
    this.#options.exchange.fail(error);
    this.#reshape?.abandon?.();
    if (this.#reshape?.fail !== undefined) return this.#reshape.fail(error);
    const frames = renderedError(error, this.#options, this.#lastFrame);
    const converted = this.#reshape?.error?.(frames) ?? frames;
    return Buffer.from(this.#outbox.isInsideFrame ? `\n\n${converted}` : converted);
  }
}
