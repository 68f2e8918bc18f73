/**
 * A relayed answer with transforms: the vendor's bytes until a transform changes an event, then the output of the client's
 * encoder.
 */
import type { GatewayError } from '../../../core/contract/errors.ts';
import { type JsonObject, tryParse } from '../../../core/json/json.ts';
import type {
  Codec,
  ReplyContext,
  ReplyDecoder,
  ReplyEncoder,
  StreamContinuation,
} from '../../common/canonical/codec.ts';
import { Collector } from '../../common/canonical/collect.ts';
import { ReplyEvents } from '../../common/canonical/events.ts';
import type { Event } from '../../common/canonical/reply.ts';
import { formatFrame, parseFrame } from '../../common/kit/sse.ts';
import { type ReadFrame, readFrame } from '../../common/wire/frame.ts';
import type { Reshape } from '../../common/wire/protocols.ts';
import type { Verdict } from '../../common/wire/usage-meter.ts';
import type { LiveReport } from '../metering/report.ts';
import { FrameParser } from '../translate/frame-parser.ts';
import type { AnswerTransforms } from './chain.ts';
import { JoinedFrames } from './joined-frames.ts';
import { OpenBlocks } from './open-blocks.ts';
import { type Waiting, WaitingFrames } from './waiting-frames.ts';

/** The most bytes of frames that are held for a transform; beyond them the answer is encoded again. */
const maxHeldBytes = 2 ** 20;

export interface RelayedOptions {
  readonly codec: Codec;
  readonly transforms: AnswerTransforms;
  readonly context: Omit<ReplyContext, 'usage'>;
  /** Converts the vendor's frames where the client's dialect differs. */
  readonly dialect: Reshape | undefined;
  /** The terminal frame, added if the vendor omits it. */
  readonly streamEnd: string | undefined;
  /** Called with the whole answer as JSON text if it was changed. */
  readonly changed: ((response: string) => void) | undefined;
}

export class RelayedAnswer implements Reshape {
  readonly streamType: string;
  readonly idleFrame: Reshape['idleFrame'];
  readonly #options: RelayedOptions;
  #dialect: Reshape | undefined;
  readonly #decoder: ReplyDecoder;
  readonly #events: ReplyEvents;
  readonly #parser: FrameParser;
  readonly #joined: JoinedFrames;
  readonly #continuation: StreamContinuation | undefined;
  readonly #blocks = new OpenBlocks();
  readonly #waiting = new WaitingFrames();
  /** Set from the first change on. */
  #encoder: ReplyEncoder | undefined;
  #out: Uint8Array[] = [];
  #report: LiveReport | undefined;
  #isFinished = false;
  #isChanged = false;

  constructor(options: RelayedOptions) {
    const { codec, context, dialect } = options;
    this.#options = options;
    this.#dialect = dialect;
    this.streamType = dialect?.streamType ?? 'text/event-stream';
    this.idleFrame = dialect?.idleFrame;
    this.#continuation = codec.createContinuation?.();
    this.#events = new ReplyEvents((event) => this.#take(event), {
      names: new Map(),
      idSeed: context.exchangeId.replaceAll('-', '').slice(-12),
    });
    this.#decoder = codec.createDecoder(this.#events);
    this.#parser = new FrameParser(codec.deltaPaths);
    this.#joined = new JoinedFrames(options.transforms, ({ json, event }) => {
      const { last } = this.#waiting;
      if (this.#encoder === undefined && last !== undefined) last.returned = 0;
      this.#decoder.payload(json, event);
    });
  }

  get hasRefused(): boolean {
    return this.#options.transforms.hasFailed;
  }

  /** The client's answer differs from the vendor's. */
  get isChanged(): boolean {
    return this.#isChanged || this.hasRefused;
  }

  adopt(framing: Reshape | undefined): void {
    this.#dialect ??= framing;
  }

  begin(report: LiveReport): void {
    this.#report = report;
  }

  comment(raw: Buffer): Uint8Array | undefined {
    const bytes = this.#dialect === undefined ? raw : this.#dialect.comment?.(raw);
    if (this.#isChanged || bytes === undefined) return undefined;
    if (this.#isFinished) return bytes;
    this.#joined.leave();
    this.#push({ bytes, json: undefined, events: [], returned: 0 });
    return this.#flush();
  }

  frame(raw: Buffer, _read?: unknown, verdict: Verdict = 'pass'): Uint8Array | undefined {
    // Bytes that arrived with the end are sent too.
    if (this.#options.transforms.isEnding) {
      this.#options.transforms.after(() => {
        const bytes = this.#isChanged ? undefined : this.#bytesOf(raw, verdict);
        if (bytes !== undefined) this.#out.push(bytes);
      });
      return this.#flush();
    }
    if (verdict === 'error' || verdict === 'failed') return this.#broken(raw);
    const read = this.#parser.read(raw);
    const mayJoin = verdict === 'pass' && this.#waiting.bytes <= maxHeldBytes;
    if (read !== undefined && mayJoin && this.#joins(raw, read)) return undefined;
    this.#joined.leave();
    const bytes = this.#encoder === undefined ? this.#bytesOf(raw, verdict) : undefined;
    const waiting: Waiting = { bytes, json: undefined, events: [], returned: 0 };
    if (this.#encoder === undefined) this.#push(waiting);
    if (read !== undefined) this.#decode(raw, read, waiting);
    if (verdict === 'last' || verdict === 'overdue') this.#end();
    else if (this.#waiting.bytes > maxHeldBytes) this.#change();
    return this.#flush();
  }

  /** Whether the frame waits with those before it. */
  #joins(raw: Buffer, read: ReadFrame): boolean {
    const { isOpen } = this.#joined;
    if (!this.#joined.takes(read)) return false;
    if (this.#encoder === undefined) this.#waiting.join(this.#bytesOf(raw, 'pass'), !isOpen);
    return true;
  }

  finish(): Uint8Array | undefined {
    if (this.#options.transforms.isEnding || this.#isFinished) return undefined;
    this.#end();
    this.#options.transforms.after(() => {
      const rest = this.#encoder === undefined ? this.#dialect?.finish?.() : undefined;
      if (rest !== undefined) this.#out.push(rest);
    });
    return this.#flush();
  }

  flush(): Uint8Array | undefined {
    this.#options.transforms.settle();
    return this.#flush();
  }

  get pending(): Promise<void> | undefined {
    return this.#options.transforms.pending;
  }

  abandon(): void {
    this.#options.transforms.abandon();
  }

  /** Absent until the first change or refusal: the vendor's protocol is the client's. Frames that were held are not numbered. */
  get fail(): ((error: GatewayError) => Uint8Array | undefined) | undefined {
    if (this.#encoder === undefined && !this.hasRefused) return undefined;
    return (error) => {
      if (this.#isFinished) return undefined;
      if (this.#encoder === undefined) this.#change();
      this.#isFinished = true;
      this.#write(this.#encoder!.fail(error));
      return this.#flush();
    };
  }

  error(frames: string): string {
    return this.#dialect?.error?.(frames) ?? frames;
  }

  whole(json: JsonObject, body: Uint8Array): Uint8Array | Promise<Uint8Array> {
    const given: Event[] = [];
    const made: Event[] = [];
    const { codec, transforms } = this.#options;
    const take = (event: Event) => void made.push(event);
    const events = new ReplyEvents(
      (event) => {
        given.push(event);
        transforms.event(event, true, take);
      },
      { names: new Map(), idSeed: this.#options.context.exchangeId.replaceAll('-', '').slice(-12) },
    );
    codec.decodeReply(json, events);
    transforms.end(true, take, () => {});
    const { pending } = transforms;
    const result = () => this.#wholeOf(json, body, given, made);
    return pending === undefined ? result() : pending.then(result);
  }

  #wholeOf(json: JsonObject, body: Uint8Array, given: Event[], made: Event[]): Uint8Array | Promise<Uint8Array> {
    const collector = new Collector();
    const { codec, transforms } = this.#options;
    const isSame = made.length === given.length && made.every((event, index) => event === given[index]);
    if (isSame && !transforms.takeReplies) return this.#wholeAsIs(json, body);
    for (const event of made) collector.event(event);
    const before = collector.reply();
    return transforms.reply(before).then((reply) => {
      if (isSame && reply === before) return this.#wholeAsIs(json, body);
      this.#isChanged = true;
      const context = { ...this.#context(), continues: true as const, onResponse: this.#options.changed };
      return Buffer.from(JSON.stringify(codec.encodeReply(reply, context)));
    });
  }

  #wholeAsIs(json: JsonObject, body: Uint8Array): Uint8Array | Promise<Uint8Array> {
    return this.#dialect === undefined ? body : this.#dialect.whole(json, body);
  }

  #context(): ReplyContext {
    const usage = () => ({ usage: this.#report?.usage ?? {}, estimated: this.#report?.estimated ?? true });
    return { ...this.#options.context, usage };
  }

  #bytesOf(raw: Buffer, verdict: Verdict): Uint8Array | undefined {
    if (verdict === 'withhold') return undefined;
    if (verdict === 'overdue') return Buffer.from(this.#options.streamEnd ?? '');
    return this.#dialect === undefined ? raw : this.#dialect.frame(raw);
  }

  #decode(raw: Buffer, { json, event, growth }: ReadFrame, waiting: Waiting): void {
    if (growth === undefined) {
      this.#report?.look(json);
      waiting.json = json;
    }
    this.#decoder.payload(json, event);
    // The parser uses its object again for the next frame.
    if (growth !== undefined && waiting.events.length === 0) waiting.json = readFrame(raw)?.json;
  }

  #push(waiting: Waiting): void {
    this.#waiting.push(waiting);
    this.#release();
  }

  /** An event of the vendor. */
  #take(event: Event): void {
    if (this.#encoder === undefined) {
      // The end of the stream adds events, to no frame.
      if (this.#waiting.last === undefined) this.#push({ bytes: undefined, json: undefined, events: [], returned: 0 });
      this.#waiting.last!.events.push(event);
    }
    this.#options.transforms.event(event, false, this.#give);
  }

  readonly #give = (made: Event): void => this.#returned(made);

  #returned(event: Event): void {
    if (this.#encoder === undefined) {
      const frame = this.#waiting.all.find(({ events, returned }) => returned < events.length);
      if (frame !== undefined && frame.events[frame.returned] === event) {
        frame.returned++;
        this.#release();
        return;
      }
      this.#change();
    }
    this.#write(this.#encoder!.event(event));
  }

  /** Sends frames after the transforms have returned all their events. The newest frame is held: it may have more events. */
  #release(isRead = false): void {
    for (const frame of this.#waiting.ready(isRead, this.#waits)) {
      const { json, events } = frame;
      this.#send(frame);
      if (json !== undefined) this.#continuation?.sent(json);
      for (const event of events) this.#blocks.add(event);
    }
  }

  #send({ bytes, more }: Waiting): void {
    if (bytes !== undefined) this.#out.push(bytes);
    if (more !== undefined) this.#out.push(...more);
  }

  readonly #waits = ({ events, json }: Waiting): boolean => {
    if (events.length > 0 || json === undefined) return false;
    return this.#continuation?.waits(json) === true || this.#options.codec.beginsEarly?.(json) === true;
  };

  /** The first change: the returned events of unsent frames are encoded again. */
  #change(): void {
    const waiting = this.#waiting.take();
    this.#isChanged = true;
    this.#encoder = this.#options.codec.createEncoder({ ...this.#context(), continues: true });
    const before = this.#blocks.replay(this.#continuation === undefined);
    const known = before.map((event) => this.#encoder!.event(event)).join('');
    this.#continuation?.fit(known);
    for (const { events, returned } of waiting)
      for (const event of events.slice(0, returned)) this.#write(this.#encoder!.event(event));
  }

  #write(frames: string): void {
    const fitting = this.#continuation === undefined || frames === '' ? frames : this.#continuation.fit(frames);
    if (fitting !== '') this.#out.push(Buffer.from(fitting));
  }

  #end(): void {
    this.#joined.leave();
    this.#decoder.end();
    this.#options.transforms.end(false, this.#give, () => this.#ended());
  }

  #ended(): void {
    if (this.#encoder === undefined && !this.#waiting.isReturned) this.#change();
    this.#isFinished = true;
    if (this.#encoder === undefined) {
      for (const frame of this.#waiting.take()) this.#send(frame);
      return;
    }
    this.#write(this.#encoder.finish());
    const response = this.#continuation?.response;
    if (response !== undefined) this.#options.changed?.(response);
  }

  /** On an error of the vendor held events are dropped. */
  #broken(raw: Buffer): Uint8Array | undefined {
    this.#options.transforms.abandon();
    this.#joined.drop();
    this.#waiting.take();
    // Official clients find an error object only inside a frame.
    const bare = parseFrame(raw) === undefined ? tryParse(raw.toString()) : undefined;
    const own = bare === undefined ? raw : Buffer.from(formatFrame(JSON.stringify(bare)));
    const converted = this.#dialect?.frame(raw);
    this.#out.push(converted === undefined || converted === raw ? own : converted);
    return this.#flush();
  }

  #flush(): Uint8Array | undefined {
    if (this.#encoder === undefined && !this.#isFinished) this.#release(true);
    const [first] = this.#out;
    if (first === undefined) return undefined;
    const bytes = this.#out.length === 1 ? first : Buffer.concat(this.#out);
    this.#out = [];
    return bytes;
  }
}
