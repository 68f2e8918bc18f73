/** Relay of a stream in whole frames with the upstream's own bytes, a usage meter, and a protocol-correct end. */

import type { Exchange } from '../../../core/contract/contract.ts';
import { GatewayError, UpstreamError, UpstreamRefusal } from '../../../core/contract/errors.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import { isObject, tryParse } from '../../../core/json/json.ts';
import type { Call, SpendGuard } from '../../common/domain/calls.ts';
import type { ShapeMembers } from '../../common/domain/error-shape.ts';
import { maxScrubbedBytes, scrubBytes } from '../../common/kit/scrub.ts';
import { FrameReader, formatFrame, keepAliveFrame, parseFrame } from '../../common/kit/sse.ts';
import { classifyFrame, notAnAnswer } from '../../common/kit/upstream-errors.ts';
import { isComment, isWholeFrame, type ReadFrame, readFrame } from '../../common/wire/frame.ts';
import type { AnsweringProtocol, Reshape, StreamReader } from '../../common/wire/protocols.ts';
import type { UsageMeter, Verdict } from '../../common/wire/usage-meter.ts';
import type { LiveReport } from '../metering/report.ts';
import { Outbox } from './outbox.ts';
import { drainBody, streamBreakError } from './stream-end.ts';

/** The bytes that are read of a body that is no stream, to find its error. */
const maxOddBytes = 64 * 1024;
/** How long comments alone may delay the head of an answer that may still turn out to be an error. */
const maxCommentWaitMs = 5_000;

export interface RelayStreamOptions {
  readonly source: Iterator<Uint8Array> | AsyncIterator<Uint8Array>;
  readonly exchange: Exchange;
  readonly protocol: AnsweringProtocol;
  readonly call: Call;
  readonly reshape: Reshape | undefined;
  /** Members of the gateway's own error bodies, if it has its own shape. */
  readonly shapeOf: ((error: GatewayError) => ShapeMembers) | undefined;
  /** The upstream's key, which must not be sent to clients; called when an error comes. */
  readonly key: () => string | undefined;
  readonly usageMeter: UsageMeter;
  readonly report: LiveReport;
  readonly clock: Clock;
  readonly meter: SpendGuard | undefined;
  /** Called when the answer is complete, before its last frame is sent. */
  readonly ended: () => void;
}

/** The body of a streamed answer. One object and one promise for each chunk: this is the hottest path of the gateway. */
export class RelayStream implements AsyncIterableIterator<Uint8Array> {
  readonly #options: RelayStreamOptions;
  readonly #source: RelayStreamOptions['source'];
  readonly #usageMeter: UsageMeter;
  #reader: StreamReader = new FrameReader((raw, end) => this.#frame(raw, end));
  #outbox = new Outbox();
  #reshape: Reshape | undefined;
  /** Chunks that were pulled while the head was held. */
  #held: Uint8Array[] = [];
  /** The last frame that was neither a comment nor an error. */
  #lastFrame: Buffer | undefined;
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
   * Pulls until the first event, while the head can still become an error: throws an UpstreamRefusal for an error in
   * the first frame or for a body that is no stream. Returns the response mapping of the answer.
   */
  async open(): Promise<Reshape | undefined> {
    const { clock, exchange, report } = this.#options;
    const startedAt = clock.monotonic();
    try {
      for (let step = await this.#source.next(); step.done !== true; step = await this.#source.next()) {
        if (!this.#isRecognised) await this.#recognise(step.value);
        const out = this.#take(step.value);
        if (out !== undefined) this.#held.push(out);
        if (this.#isFirstAnError) throw classifyFrame(this.#usageMeter.error!, clock.now(), this.#options.key());
        if (this.#lastFrame !== undefined || clock.monotonic() - startedAt > maxCommentWaitMs) return this.#opened();
      }
      this.#finishLastFrame();
      if (this.#isFirstAnError) throw classifyFrame(this.#usageMeter.error!, clock.now(), this.#options.key());
      if (!this.#usageMeter.complete) throw notAnAnswer('the stream ended before its first event', true);
      if (!this.#ended) this.#complete();
      return this.#opened();
    } catch (error) {
      report.broken = !exchange.signal.aborted;
      void this.#giveUp();
      throw error;
    }
  }

  get #isFirstAnError(): boolean {
    return this.#usageMeter.error !== undefined && this.#lastFrame === undefined;
  }

  #opened(): Reshape | undefined {
    this.#isOpening = false;
    return this.#reshape;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    for (;;) {
      const held = this.#held.shift();
      if (held !== undefined) return { done: false, value: held };
      if (this.#ended) return { done: true, value: undefined };
      try {
        const step = await this.#source.next();
        const out = step.done === true ? this.#finish() : this.#take(step.value);
        if (out !== undefined) return { done: false, value: out };
      } catch (error) {
        this.#break(error);
      }
    }
  }

  /** The client has disconnected, or everything was read: then nothing remains to be done. */
  async return(): Promise<IteratorResult<Uint8Array>> {
    if (!this.#ended) {
      this.#ended = true;
      await this.#giveUp();
    }
    return { done: true, value: undefined };
  }

  /** The rest is not needed: closes the source. */
  async #giveUp(): Promise<void> {
    try {
      await this.#source.return?.();
    } catch {
      // The source closes in any case.
    }
  }

  /** No frame follows those that were pulled or are held: the usage is final. */
  get hasEnded(): boolean {
    return this.#ended;
  }

  /** Bytes that this client skips, or undefined while a frame is sent in part. */
  idleFrame(): Uint8Array | undefined {
    if (this.#outbox.isInsideFrame) return undefined;
    return this.#reshape === undefined ? keepAliveFrame : this.#reshape.idleFrame;
  }

  /** Examines the stream's first byte: SSE, the protocol's own framing, or no stream. */
  async #recognise(chunk: Uint8Array): Promise<void> {
    const { clock, key } = this.#options;
    const first = Buffer.from(chunk.subarray(0, 64)).toString('latin1').trimStart()[0];
    this.#isRecognised = first !== undefined;
    const { framing } = this.#options.protocol;
    if (first !== undefined && framing?.begins(first)) {
      this.#reader = framing.createReader((raw, end) => this.#frame(raw, end));
      this.#reshape ??= framing.reshape;
      return;
    }
    if (first !== '{' && first !== '[' && first !== '<') return;
    const payload = first === '{' ? tryParse(await this.#readOn(chunk)) : undefined;
    if (isObject(payload)) this.#usageMeter.whole(payload);
    if (this.#usageMeter.error !== undefined) throw classifyFrame(this.#usageMeter.error, clock.now(), key());
    throw notAnAnswer('a document came instead of a stream', first !== '<');
  }

  async #readOn(chunk: Uint8Array): Promise<string> {
    const chunks = [chunk];
    let bytes = chunk.length;
    for (let step = await this.#source.next(); step.done !== true; step = await this.#source.next()) {
      chunks.push(step.value);
      bytes += step.value.length;
      if (bytes > maxOddBytes) break;
    }
    return Buffer.concat(chunks).toString('utf8');
  }

  /** Processes one chunk; returns the bytes of it, and of held ones, to send now. */
  #take(chunk: Uint8Array): Uint8Array | undefined {
    this.#outbox.begin(chunk);
    this.#reader.feed(chunk);
    if (this.#reshape === undefined) this.#outbox.finishChunk(this.#ended && !this.#isErrorSent);
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
      return;
    }
    const read = this.#read(raw);
    const verdict = this.#look(raw, read);
    if (verdict === 'error' || verdict === 'failed') this.#sendError(raw, end);
    else this.#send(raw, end, read, verdict);
    if (verdict !== 'last' && verdict !== 'failed' && verdict !== 'overdue') return;
    if (verdict !== 'failed') this.#outbox.add(this.#reshape?.finish?.());
    this.#endNormally();
  }

  #send(raw: Buffer, end: number, read: ReadFrame | undefined, verdict: Verdict): void {
    this.#lastFrame = raw;
    if (this.#reshape !== undefined) this.#outbox.add(this.#reshape.frame(raw, read));
    else if (verdict === 'withhold') this.#outbox.skip(raw, end);
    else if (verdict === 'overdue') this.#outbox.replace(raw, end, Buffer.from(this.#options.protocol.streamEnd ?? ''));
    else this.#outbox.pass(raw, end);
  }

  /** Parses a frame once for the response mapping and the usage meter, if the mapping needs it. */
  #read(raw: Buffer): ReadFrame | undefined {
    return this.#reshape?.readsFrames ? readFrame(raw) : undefined;
  }

  #look(raw: Buffer, read: ReadFrame | undefined): Verdict {
    return read === undefined ? this.#usageMeter.frame(raw) : this.#usageMeter.payload(read.json, read.event);
  }

  /** Sends the upstream's own error, scrubbed. Clients of the protocol read it as the end, so nothing follows it. */
  #sendError(raw: Buffer, end: number): void {
    if (this.#reshape?.fail !== undefined || this.#options.shapeOf !== undefined) {
      if (this.#reshape === undefined) this.#outbox.skip(raw, end);
      this.#sendRenderedError();
      return;
    }
    const error = streamBreakError(new UpstreamError('body', 'the stream told of an error'));
    const clean =
      raw.length > maxScrubbedBytes ? Buffer.from(this.#renderedError(error)) : scrubBytes(raw, this.#options.key());
    if (this.#reshape !== undefined) this.#outbox.add(this.#reshape.frame(Buffer.from(clean)));
    else this.#outbox.replace(raw, end, clean);
    this.#options.report.broken = true;
    // An error in the first frame becomes a separate answer, possibly of another target.
    if (this.#isOpening && this.#lastFrame === undefined) return;
    this.#options.exchange.fail(error);
  }

  /** Sends the upstream's error in the client's protocol, or in the gateway's own shape, and ends the stream. */
  #sendRenderedError(): void {
    this.#options.report.broken = true;
    if (this.#isOpening && this.#lastFrame === undefined) return;
    this.#isErrorSent = true;
    const error = streamBreakError(
      classifyFrame(this.#usageMeter.error!, this.#options.clock.now(), this.#options.key()).error,
    );
    this.#outbox.add(this.#errorFrames(error));
    this.#endNormally();
  }

  /** The protocol's end: the client's stream ends at once, even if the upstream keeps the socket open. */
  #endNormally(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#options.ended();
    void drainBody(this.#source, this.#options.clock).then(() => this.#giveUp());
  }

  #finish(): undefined {
    this.#finishLastFrame();
    if (this.#ended) return;
    if (this.#usageMeter.complete || this.#usageMeter.error !== undefined) this.#complete();
    else this.#break(new UpstreamError('body', 'the stream ended without its end'));
  }

  /** The answer was complete, although its last event did not come. */
  #complete(): void {
    const rest = this.#usageMeter.error === undefined ? this.#reshape?.finish?.() : undefined;
    if (rest !== undefined) this.#held.push(rest);
    this.#ended = true;
    this.#options.ended();
  }

  /** Sends a complete last frame without its blank line as it came; drops a partial one. */
  #finishLastFrame(): void {
    const rest = this.#reader.end();
    if (rest !== undefined) this.#finishFrame(rest);
    const out = this.#outbox.flush();
    if (out !== undefined) this.#held.push(out);
  }

  #finishFrame(rest: Buffer): void {
    const data = parseFrame(rest)?.data;
    const read = this.#read(rest);
    const verdict = this.#look(rest, read);
    if (verdict === 'error' || verdict === 'failed') {
      this.#sendError(rest, 0);
      if (data === undefined && this.#reshape === undefined && !this.#isErrorSent) {
        // An error object without its frame: official clients read it only inside a frame.
        this.#outbox.clear();
        this.#outbox.add(
          scrubBytes(Buffer.from(formatFrame(JSON.stringify(this.#usageMeter.error))), this.#options.key()),
        );
      }
    } else if (isWholeFrame(rest, data)) {
      if (this.#reshape !== undefined) this.#outbox.add(this.#reshape.frame(rest, read));
      else if (verdict !== 'withhold') this.#outbox.pass(rest, 0);
    }
  }

  /** Handles a failure. A complete answer ends normally; otherwise the client gets an error in its protocol. */
  #break(cause: unknown): void {
    const { exchange, report } = this.#options;
    this.#ended = true;
    void this.#giveUp();
    // A translation may reject a complete answer.
    if (this.#usageMeter.error !== undefined || (this.#usageMeter.complete && !(cause instanceof UpstreamRefusal))) {
      this.#complete();
      return;
    }
    const reason: unknown = exchange.signal.aborted ? exchange.signal.reason : cause;
    if (reason instanceof GatewayError && reason.kind === 'client_left') return;
    report.broken = !exchange.signal.aborted;
    const frames = this.#errorFrames(streamBreakError(reason));
    if (frames !== undefined) this.#held.push(frames);
  }

  #stopForBalance(): void {
    this.#ended = true;
    void this.#giveUp();
    const error = new GatewayError('insufficient_balance', 'The balance is used up; the answer stops here.', {
      shouldRetry: false,
    });
    this.#outbox.add(this.#errorFrames(error));
  }

  #errorFrames(error: GatewayError): Uint8Array | undefined {
    this.#options.exchange.fail(error);
    if (this.#reshape?.fail !== undefined) return this.#reshape.fail(error);
    const frames = this.#renderedError(error);
    const converted = this.#reshape?.error?.(frames) ?? frames;
    return Buffer.from(this.#outbox.isInsideFrame ? `\n\n${converted}` : converted);
  }

  #renderedError(error: GatewayError): string {
    const { exchange, protocol, call, usageMeter, shapeOf } = this.#options;
    return protocol.streamError!(error, {
      exchangeId: exchange.id,
      call,
      upstreamId: usageMeter.upstreamId,
      createdAt: Math.floor(exchange.receivedAt / 1000),
      lastFrame: this.#lastFrame,
      shape: shapeOf?.(error),
    });
  }
}
