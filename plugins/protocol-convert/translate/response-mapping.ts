/** The response mapping of a translated call: converts an upstream's frames or body into the client's. */
import type { GatewayError } from '../../../core/contract/errors.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import type {
  ReplyCodec,
  ReplyContext,
  ReplyDecoder,
  ReplyEncoder,
  ResponseMapping,
  UpstreamCodec,
} from '../../common/canonical/codec.ts';
import { Collector } from '../../common/canonical/collect.ts';
import { ReplyEvents } from '../../common/canonical/events.ts';
import type { Event, Reply, Sink, UsageSeen } from '../../common/canonical/reply.ts';
import { notAnAnswer } from '../../common/kit/upstream-errors.ts';
import type { ReadFrame } from '../../common/wire/frame.ts';
import type { Reshape } from '../../common/wire/protocols.ts';
import type { LiveReport } from '../metering/report.ts';
import type { AnswerTransforms } from '../transforms/chain.ts';
import { JoinedFrames } from '../transforms/joined-frames.ts';
import { emulating } from './emulate.ts';
import { FrameParser } from './frame-parser.ts';
import type { SignatureCollector } from './signature-cache.ts';
import { foreignError } from './upstream-error.ts';

export interface TranslationOptions {
  readonly client: ReplyCodec;
  readonly upstream: UpstreamCodec;
  readonly way: ResponseMapping;
  readonly context: Omit<ReplyContext, 'usage'>;
  /** The client wants a stream. */
  readonly clientStreams: boolean;
  /** The content type of the client's stream, and the frame that the client skips while the stream is silent. */
  readonly streamType: string;
  readonly idleFrame: Uint8Array | 'none';
  /** The id of a call for the client. */
  readonly callId: (id: string) => string;
  /** Collects the parts of the answer that the gateway must remember. */
  readonly collector: SignatureCollector | undefined;
  readonly transforms: AnswerTransforms | undefined;
}

/**
 * One answer's translation. `frame` converts streams to streams; `whole` converts a body to a body or to the text of a
 * whole stream; `gathered` returns the body that the frames of a stream form.
 */
export class ResponseTranslation implements Reshape {
  readonly streamType: string;
  readonly idleFrame: Uint8Array | 'none';
  readonly wholeType: string;
  readonly #options: TranslationOptions;
  readonly #context: ReplyContext;
  readonly #collector: Collector | undefined;
  readonly #encoder: ReplyEncoder | undefined;
  readonly #events: ReplyEvents;
  readonly #decoder: ReplyDecoder;
  readonly #parser: FrameParser;
  readonly #joined: JoinedFrames | undefined;
  /** Text of the client's frames that was not sent yet. */
  #out = '';
  #report: LiveReport | undefined;
  #failure: GatewayError | undefined;
  #isFinished = false;

  constructor(options: TranslationOptions) {
    this.#options = options;
    this.streamType = options.streamType;
    this.idleFrame = options.idleFrame;
    this.wholeType = options.clientStreams ? options.streamType : 'application/json';
    this.#context = { ...options.context, usage: () => this.#usage() };
    if (options.clientStreams) this.#encoder = options.client.createEncoder(this.#context);
    else this.#collector = new Collector();
    this.#events = new ReplyEvents(emulating(options.way, this.#sink()), {
      names: options.way.names,
      idSeed: options.context.exchangeId.replaceAll('-', '').slice(-12),
      audioAsText: options.client.audioAsText,
      mediaAsText: options.client.mediaAsText,
    });
    this.#decoder = options.upstream.createDecoder(this.#events);
    this.#parser = new FrameParser(options.upstream.deltaPaths);
    if (options.transforms !== undefined)
      this.#joined = new JoinedFrames(options.transforms, ({ json, event }) => this.#decoder.payload(json, event));
  }

  /** The source of the usage. */
  begin(report: LiveReport): void {
    this.#report = report;
  }

  read(raw: Buffer): ReadFrame | undefined {
    return this.#parser.read(raw);
  }

  /** Its output is collected for `flush`: the frames of one chunk are sent as one. */
  frame(_raw: Buffer, read: ReadFrame | undefined): undefined {
    if (this.#isFinished || read === undefined || this.#options.transforms?.isEnding === true) return;
    if (this.#joined?.takes(read)) return;
    this.#joined?.leave();
    this.#report?.look(read.json);
    this.#decoder.payload(read.json, read.event);
    this.#checkReadable();
  }

  /** The upstream's answer is complete: returns the remaining frames, up to the client's end. */
  finish(): Uint8Array | undefined {
    const { transforms } = this.#options;
    if (this.#isFinished || transforms?.isEnding === true) return undefined;
    this.#joined?.leave();
    this.#decoder.end();
    this.#checkReadable(true);
    if (transforms === undefined) this.#finished();
    else this.#endTransforms(transforms, () => this.#finished());
    return this.flush();
  }

  #finished(): void {
    this.#isFinished = true;
    if (this.#encoder !== undefined) this.#out += this.#encoder.finish();
  }

  get pending(): Promise<void> | undefined {
    return this.#options.transforms?.pending;
  }

  abandon(): void {
    this.#options.transforms?.abandon();
  }

  /** The answer failed: returns the frames that report this to the client. */
  fail(error: GatewayError): Uint8Array | undefined {
    if (this.#isFinished) return undefined;
    this.#isFinished = true;
    this.#failure = foreignError(error);
    if (this.#encoder !== undefined) this.#out += this.#encoder.fail(this.#failure);
    return this.flush();
  }

  get hasRefused(): boolean {
    return this.#options.transforms?.hasFailed ?? false;
  }

  whole(json: JsonObject): Uint8Array | Promise<Uint8Array> {
    this.#options.upstream.decodeReply(json, this.#events);
    this.#checkReadable(true);
    const { transforms } = this.#options;
    if (transforms !== undefined) {
      this.#endTransforms(transforms, () => {});
      if (transforms.pending !== undefined) return transforms.pending.then(() => this.#whole());
    }
    return this.#whole();
  }

  #whole(): Uint8Array | Promise<Uint8Array> {
    if (this.#encoder === undefined) return this.#gather();
    this.#out += this.#encoder.finish();
    return this.flush() ?? new Uint8Array();
  }

  get gathered(): (() => Uint8Array | Promise<Uint8Array>) | undefined {
    return this.#encoder === undefined ? () => this.#gather() : undefined;
  }

  /** The body that the frames form. Throws the error that broke the stream. */
  #gather(): Uint8Array | Promise<Uint8Array> {
    if (this.#failure !== undefined) throw this.#failure;
    const { client, transforms } = this.#options;
    const encode = (reply: Reply) => Buffer.from(JSON.stringify(client.encodeReply(reply, this.#context)));
    const reply = this.#reply();
    return transforms?.takeReplies ? transforms.reply(reply).then(encode) : encode(reply);
  }

  /** Events that transforms add after the last one. */
  #endTransforms(transforms: AnswerTransforms, done: () => void): void {
    transforms.end(this.#encoder === undefined, (event) => this.#emit(event), done);
  }

  #reply(): Reply {
    if (this.#collector === undefined) throw new Error('a streamed answer is not gathered');
    return this.#collector.reply();
  }

  /** The client's bytes. */
  #emit(made: Event): void {
    const event = made.type === 'tool-start' ? { ...made, id: this.#options.callId(made.id) } : made;
    if (this.#encoder === undefined) this.#collector!.event(event);
    else this.#out += this.#encoder.event(event);
  }

  #sink(): Sink {
    const { collector, transforms } = this.#options;
    if (collector === undefined && transforms === undefined) return (event) => this.#emit(event);
    const isWhole = this.#encoder === undefined;
    const emit = (event: Event) => this.#emit(event);
    return (event) => {
      collector?.event(event);
      if (transforms === undefined) this.#emit(event);
      else transforms.event(event, isWhole, emit);
    };
  }

  /** An answer that the vendor marks as failed, or that is empty, is an error: agents would loop on it. */
  #checkReadable(isEnd = false): void {
    const { failure } = this.#events;
    const isEmpty = isEnd && !this.#events.hasContent && !this.#events.hasStopped;
    if (failure !== undefined || isEmpty) throw notAnAnswer(failure ?? 'the answer is empty', true);
  }

  #usage(): UsageSeen {
    const report = this.#report;
    return report === undefined ? { usage: {}, estimated: true } : { usage: report.usage, estimated: report.estimated };
  }

  flush(): Uint8Array | undefined {
    this.#options.transforms?.settle();
    if (this.#out === '') return undefined;
    const bytes = Buffer.from(this.#out);
    this.#out = '';
    return bytes;
  }
}
