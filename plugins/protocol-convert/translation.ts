/** The way back of a translated answer: an upstream's frames or body in, the client's out. */
import type { GatewayError } from '../../core/errors.ts';
import { notAnAnswer } from '../../core/refusals.ts';
import type { Codec, ReplyContext, ReplyDecoder, ReplyEncoder, WayBack } from './codec.ts';
import { Collector } from './collect.ts';
import { emulating } from './emulate.ts';
import { foreignError } from './foreign-error.ts';
import type { ReadFrame } from './frame.ts';
import type { JsonObject } from './json.ts';
import type { KeepsakeCollector } from './keepsake-memory.ts';
import type { Reshape } from './protocol.ts';
import type { Event, Reply, Sink, UsageSeen } from './reply.ts';
import { ReplyEvents } from './reply-events.ts';
import type { LiveReport } from './report.ts';
import type { ReplyWords } from './state/compaction-reply.ts';

export interface TranslationOptions {
  readonly client: ReplyWords;
  readonly upstream: Codec;
  readonly way: WayBack;
  readonly context: Omit<ReplyContext, 'usage'>;
  /** The client wants a stream. */
  readonly clientStreams: boolean;
  /** Of the client's stream, and what it skips while that is silent. */
  readonly streamType: string;
  readonly idleFrame: Uint8Array | undefined;
  /** Who must remember something of the answer. */
  readonly collector: KeepsakeCollector | undefined;
}

/**
 * One answer's translation. `frame` for streams to streams; `whole` for bodies, to a body or to a whole stream's text;
 * frames that are to become one body are gathered and asked for with `gathered`.
 */
export class Translation implements Reshape {
  readonly streamType: string;
  readonly idleFrame: Uint8Array | undefined;
  readonly wholeType: string;
  readonly readsFrames = true;
  readonly #options: TranslationOptions;
  readonly #context: ReplyContext;
  readonly #collector: Collector | undefined;
  readonly #encoder: ReplyEncoder | undefined;
  readonly #events: ReplyEvents;
  readonly #decoder: ReplyDecoder;
  /** Text of the client's frames that has not gone out yet. */
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
    });
    this.#decoder = options.upstream.createDecoder(this.#events);
  }

  /** Where the usage will be found. */
  begin(report: LiveReport): void {
    this.#report = report;
  }

  frame(_raw: Buffer, read: ReadFrame | undefined): Uint8Array | undefined {
    if (this.#isFinished || read === undefined) return undefined;
    this.#decoder.payload(read.json, read.event);
    this.#checkReadable();
    return this.#flush();
  }

  /** The upstream's answer is complete: what is still to be said, up to the client's end. */
  finish(): Uint8Array | undefined {
    if (this.#isFinished) return undefined;
    this.#decoder.end();
    this.#checkReadable(true);
    this.#isFinished = true;
    if (this.#encoder !== undefined) this.#out += this.#encoder.finish();
    return this.#flush();
  }

  /** The answer broke: what tells a client of its stream so. */
  fail(error: GatewayError): Uint8Array | undefined {
    if (this.#isFinished) return undefined;
    this.#isFinished = true;
    this.#failure = foreignError(error);
    if (this.#encoder !== undefined) this.#out += this.#encoder.fail(this.#failure);
    return this.#flush();
  }

  whole(json: JsonObject): Uint8Array {
    this.#options.upstream.decodeReply(json, this.#events);
    this.#checkReadable(true);
    if (this.#encoder === undefined) return this.gathered();
    this.#out += this.#encoder.finish();
    return this.#flush() ?? new Uint8Array();
  }

  /** The body that the frames amounted to. Throws what broke the stream. */
  gathered(): Uint8Array {
    if (this.#failure !== undefined) throw this.#failure;
    return Buffer.from(JSON.stringify(this.#options.client.encodeReply(this.#reply(), this.#context)));
  }

  #reply(): Reply {
    if (this.#collector === undefined) throw new Error('a streamed answer is not gathered');
    return this.#collector.reply();
  }

  #sink(): Sink {
    const keepsakes = this.#options.collector;
    const encoder = this.#encoder;
    const collector = this.#collector;
    const tell =
      encoder === undefined
        ? (event: Event) => collector!.event(event)
        : (event: Event) => {
            this.#out += encoder.event(event);
          };
    if (keepsakes === undefined) return tell;
    return (event) => {
      keepsakes.event(event);
      tell(event);
    };
  }

  /** An answer that the vendor itself calls none, or in which nothing was said, is an error: agents would loop on it. */
  #checkReadable(isEnd = false): void {
    const { failure } = this.#events;
    const isEmpty = isEnd && !this.#events.hasContent && !this.#events.hasStopped;
    if (failure !== undefined || isEmpty) throw notAnAnswer(failure ?? 'the answer is empty', true);
  }

  #usage(): UsageSeen {
    const report = this.#report;
    return report === undefined ? { usage: {}, estimated: true } : { usage: report.usage, estimated: report.estimated };
  }

  #flush(): Uint8Array | undefined {
    if (this.#out === '') return undefined;
    const bytes = Buffer.from(this.#out);
    this.#out = '';
    return bytes;
  }
}
