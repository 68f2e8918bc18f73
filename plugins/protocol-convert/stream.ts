/** Relays a stream: the upstream's own bytes in whole frames, a tap looking on, and a true ending whatever happens. */
import type { Clock, Exchange } from '../../core/contract.ts';
import { GatewayError, UpstreamError, UpstreamRefusal } from '../../core/errors.ts';
import { classifyFrame, notAnAnswer } from '../../core/refusals.ts';
import { maxScrubbedBytes, scrubBytes } from '../../core/scrub.ts';
import { FrameReader, formatFrame, keepAliveFrame, parseFrame } from '../../core/sse.ts';
import type { Call, Meter } from '../../core/vocabulary.ts';
import { brokeOff } from './broke-off.ts';
import { isComment, isWholeFrame, type ReadFrame, readFrame } from './frame.ts';
import { isObject, tryParse } from './json.ts';
import { Outbox } from './outbox.ts';
import type { Protocol, Reshape, ShapeMembers, StreamReader, Tap, Verdict } from './protocol.ts';
import { readOut } from './read-out.ts';
import type { LiveReport } from './report.ts';

/** What of a body that is no stream is read, to tell what it says. */
const maxOddBytes = 64 * 1024;
/** How long comments alone may hold back the head of an answer that could still turn out to be an error. */
const maxCommentWaitMs = 5_000;

export interface RelayStreamOptions {
  readonly source: Iterator<Uint8Array> | AsyncIterator<Uint8Array>;
  readonly exchange: Exchange;
  readonly protocol: Protocol;
  readonly call: Call;
  readonly reshape: Reshape | undefined;
  /** Members of the gateway's own error bodies, if it has a shape of its own. */
  readonly shapeOf: ((error: GatewayError) => ShapeMembers) | undefined;
  /** The upstream's key, which must not go out; asked for when an error comes. */
  readonly key: () => string | undefined;
  readonly tap: Tap;
  readonly report: LiveReport;
  readonly clock: Clock;
  readonly meter: Meter | undefined;
  /** Called when the answer is complete, before its last frame goes out. */
  readonly ended: () => void;
}

/** The body of a streamed answer. One object and one promise for each chunk: this is the hottest path of the gateway. */
export class RelayStream implements AsyncIterableIterator<Uint8Array> {
  readonly #options: RelayStreamOptions;
  readonly #source: RelayStreamOptions['source'];
  readonly #tap: Tap;
  #reader: StreamReader = new FrameReader((raw, end) => this.#frame(raw, end));
  #outbox = new Outbox();
  #reshape: Reshape | undefined;
  /** Chunks that were pulled while the head was held. */
  #held: Uint8Array[] = [];
  /** The last frame that was no comment and told of no error. */
  #lastFrame: Buffer | undefined;
  #isRecognised = false;
  #isOpening = true;
  #ended = false;
  /** The stream ended with words of our own: what the upstream says behind its error is not handed on. */
  #isTold = false;

  constructor(options: RelayStreamOptions) {
    this.#options = options;
    this.#source = options.source;
    this.#tap = options.tap;
    this.#reshape = options.reshape;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * Pulls until the first event, while the head can still become an error: throws an UpstreamRefusal for an error in the
   * first frame or for something that is no stream, and lets the source's own errors through. Returns the form it will have.
   */
  async open(): Promise<Reshape | undefined> {
    const { clock, exchange, report } = this.#options;
    const startedAt = clock.monotonic();
    try {
      for (let step = await this.#source.next(); step.done !== true; step = await this.#source.next()) {
        if (!this.#isRecognised) await this.#recognise(step.value);
        const out = this.#take(step.value);
        if (out !== undefined) this.#held.push(out);
        if (this.#isFirstAnError) throw classifyFrame(this.#tap.error!, clock.now(), this.#options.key());
        if (this.#lastFrame !== undefined || clock.monotonic() - startedAt > maxCommentWaitMs) return this.#opened();
      }
      this.#residual();
      if (this.#isFirstAnError) throw classifyFrame(this.#tap.error!, clock.now(), this.#options.key());
      if (!this.#tap.complete) throw notAnAnswer('the stream ended before its first event', true);
      this.#complete();
      return this.#opened();
    } catch (error) {
      report.broken = !exchange.signal.aborted;
      void this.#giveUp();
      throw error;
    }
  }

  get #isFirstAnError(): boolean {
    return this.#tap.error !== undefined && this.#lastFrame === undefined;
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
        if (step.done === true) this.#finish();
        else {
          const out = this.#take(step.value);
          if (out !== undefined) return { done: false, value: out };
        }
      } catch (error) {
        this.#break(error);
      }
    }
  }

  /** The client has left, or all has been read: then nothing is left to do. */
  async return(): Promise<IteratorResult<Uint8Array>> {
    if (!this.#ended) {
      this.#ended = true;
      await this.#giveUp();
    }
    return { done: true, value: undefined };
  }

  /** Nobody wants the rest. How the upstream takes it is its own affair. */
  async #giveUp(): Promise<void> {
    try {
      await this.#source.return?.();
    } catch {
      // It was about to be closed anyway.
    }
  }

  /** Bytes that this client skips, or undefined while a frame is halfway out. */
  idleFrame(): Uint8Array | undefined {
    if (this.#outbox.isInsideFrame) return undefined;
    return this.#reshape === undefined ? keepAliveFrame : this.#reshape.idleFrame;
  }

  /** Looks at the stream's first byte: SSE, an array of a protocol that streams those, or no stream at all. */
  async #recognise(chunk: Uint8Array): Promise<void> {
    const { clock, key } = this.#options;
    const { arrayStreams } = this.#options.protocol;
    const first = Buffer.from(chunk.subarray(0, 64)).toString('latin1').trimStart()[0];
    this.#isRecognised = first !== undefined;
    if (first !== '{' && first !== '[' && first !== '<') return;
    if (first === '<' || arrayStreams === undefined) {
      const payload = first === '{' ? tryParse(await this.#readOn(chunk)) : undefined;
      if (isObject(payload)) this.#tap.whole(payload);
      if (this.#tap.error !== undefined) throw classifyFrame(this.#tap.error, clock.now(), key());
      throw notAnAnswer('a document came instead of a stream', first !== '<');
    }
    this.#reader = arrayStreams.createReader((raw, end) => this.#frame(raw, end));
    this.#reshape ??= arrayStreams.reshape;
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

  /** Feeds one chunk; returns what of it, and of held bytes, goes out now. */
  #take(chunk: Uint8Array): Uint8Array | undefined {
    this.#outbox.begin(chunk);
    this.#reader.feed(chunk);
    if (this.#reshape === undefined) this.#outbox.finishChunk(this.#ended && !this.#isTold);
    const { meter, report } = this.#options;
    if (meter !== undefined && !this.#ended && !meter.observe(report.answeredTokens)) this.#stopUnpaid();
    return this.#outbox.flush();
  }

  #frame(raw: Buffer, end: number): void {
    if (this.#isTold) {
      this.#outbox.skip(raw, end);
      return;
    }
    if (isComment(raw)) {
      if (this.#reshape === undefined) this.#outbox.pass(raw, end);
      return;
    }
    const read = this.#read(raw);
    const verdict = this.#look(raw, read);
    if (verdict === 'error' || verdict === 'failed') this.#tell(raw, end);
    else {
      this.#lastFrame = raw;
      if (this.#reshape !== undefined) this.#outbox.add(this.#reshape.frame(raw, read));
      else if (verdict === 'withhold') this.#outbox.skip(raw, end);
      else if (verdict === 'overdue')
        this.#outbox.replace(raw, end, Buffer.from(this.#options.protocol.streamEnd ?? ''));
      else this.#outbox.pass(raw, end);
    }
    if (verdict !== 'last' && verdict !== 'failed' && verdict !== 'overdue') return;
    if (verdict !== 'failed') this.#outbox.add(this.#reshape?.finish?.());
    this.#endWell();
  }

  /** A frame that the client's form is made of is parsed once, for the tap too; others only where the tap must. */
  #read(raw: Buffer): ReadFrame | undefined {
    return this.#reshape?.readsFrames ? readFrame(raw) : undefined;
  }

  #look(raw: Buffer, read: ReadFrame | undefined): Verdict {
    return read === undefined ? this.#tap.frame(raw) : this.#tap.payload(read.json, read.event);
  }

  /** The upstream's own words of an error, scrubbed. The stream's protocol has been told, so nothing is added at the end. */
  #tell(raw: Buffer, end: number): void {
    if (this.#reshape?.fail !== undefined || this.#options.shapeOf !== undefined) {
      if (this.#reshape === undefined) this.#outbox.skip(raw, end);
      this.#tellAnew();
      return;
    }
    const error = brokeOff(new UpstreamError('body', 'the stream told of an error'));
    const clean =
      raw.length > maxScrubbedBytes ? Buffer.from(this.#worded(error)) : scrubBytes(raw, this.#options.key());
    if (this.#reshape !== undefined) this.#outbox.add(this.#reshape.frame(Buffer.from(clean)));
    else this.#outbox.replace(raw, end, clean);
    this.#options.report.broken = true;
    // An error in the first frame becomes an answer of its own, perhaps of another target.
    if (this.#isOpening && this.#lastFrame === undefined) return;
    this.#options.exchange.fail(error);
  }

  /** The upstream's error in the words of the client's protocol, or in the gateway's own shape; they end the stream. */
  #tellAnew(): void {
    this.#options.report.broken = true;
    if (this.#isOpening && this.#lastFrame === undefined) return;
    this.#isTold = true;
    const error = brokeOff(classifyFrame(this.#tap.error!, this.#options.clock.now(), this.#options.key()).error);
    this.#outbox.add(this.#errorFrames(error));
    this.#endWell();
  }

  /** The protocol's end: the client gets its own at once, even if the upstream keeps the socket open. */
  #endWell(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#options.ended();
    void readOut(this.#source, this.#options.clock).then(() => this.#giveUp());
  }

  /** The upstream has closed in good order. */
  #finish(): void {
    this.#residual();
    if (this.#tap.complete || this.#tap.error !== undefined) this.#complete();
    else this.#break(new UpstreamError('body', 'the stream ended without its end'));
  }

  /** The answer was all there, although its last event did not come. */
  #complete(): void {
    const rest = this.#tap.error === undefined ? this.#reshape?.finish?.() : undefined;
    if (rest !== undefined) this.#held.push(rest);
    this.#ended = true;
    this.#options.ended();
  }

  /** The last frame without its blank line goes out as it came, if it is whole; half a frame is of no use to a client. */
  #residual(): void {
    const rest = this.#reader.end();
    if (rest === undefined) return;
    const data = parseFrame(rest)?.data;
    const read = this.#read(rest);
    const verdict = this.#look(rest, read);
    if (verdict === 'error' || verdict === 'failed') {
      this.#tell(rest, 0);
      if (data === undefined && this.#reshape === undefined && !this.#isTold) {
        // An error object without its frame: official clients do not see it unless it stands in one.
        this.#outbox.clear();
        this.#outbox.add(scrubBytes(Buffer.from(formatFrame(JSON.stringify(this.#tap.error))), this.#options.key()));
      }
    } else if (isWholeFrame(rest, data)) {
      if (this.#reshape !== undefined) this.#outbox.add(this.#reshape.frame(rest, read));
      else if (verdict !== 'withhold') this.#outbox.pass(rest, 0);
    }
    const out = this.#outbox.flush();
    if (out !== undefined) this.#held.push(out);
  }

  /** Something broke. If the answer was all there, the client need not know; else it is told in its protocol. */
  #break(cause: unknown): void {
    const { exchange, report } = this.#options;
    this.#ended = true;
    void this.#giveUp();
    // A translation may find that a complete answer is none.
    if (this.#tap.error !== undefined || (this.#tap.complete && !(cause instanceof UpstreamRefusal))) {
      this.#complete();
      return;
    }
    const reason: unknown = exchange.signal.aborted ? exchange.signal.reason : cause;
    if (reason instanceof GatewayError && reason.kind === 'client_left') return;
    report.broken = !exchange.signal.aborted;
    const frames = this.#errorFrames(brokeOff(reason));
    if (frames !== undefined) this.#held.push(frames);
  }

  /** The money that was held is used up, and there is no more. */
  #stopUnpaid(): void {
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
    const frames = this.#worded(error);
    const worded = this.#reshape?.error?.(frames) ?? frames;
    return Buffer.from(this.#outbox.isInsideFrame ? `\n\n${worded}` : worded);
  }

  #worded(error: GatewayError): string {
    const { exchange, protocol, call, tap, shapeOf } = this.#options;
    return protocol.streamError(error, {
      exchangeId: exchange.id,
      call,
      upstreamId: tap.upstreamId,
      createdAt: Math.floor(exchange.receivedAt / 1000),
      lastFrame: this.#lastFrame,
      shape: shapeOf?.(error),
    });
  }
}
