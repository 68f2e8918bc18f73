/** Follows server-sent events of OpenAI's audio endpoints: passed on as they come but for errors, ended by their last event or an error. */
import { GatewayError } from '../../core/contract/errors.ts';
import { isObject, type JsonObject, tryParse } from '../../core/json/json.ts';
import type { UsageReport } from '../common/domain/calls.ts';
import { Outbox } from '../common/encoding/outbox.ts';
import { envelope } from '../common/kit/error-envelope.ts';
import { maxScrubbedBytes } from '../common/kit/scrub.ts';
import { FrameReader, formatFrame, parseFrame } from '../common/kit/sse.ts';
import type { AnswerContext, StreamMeter } from './description.ts';

/** An event of a few seconds of audio has a hundredth of it. */
const maxFrameBytes = 8 * 2 ** 20;

/** `read`: gets each event; true: it is the last one. */
export class EventMeter implements StreamMeter {
  readonly report: UsageReport;
  readonly #context: AnswerContext;
  readonly #read: (event: JsonObject) => boolean;
  readonly #reader = new FrameReader((raw, end) => this.#frame(raw, end), maxFrameBytes);
  readonly #outbox = new Outbox();
  #isComplete = false;
  #hasFailed = false;

  constructor(report: UsageReport, context: AnswerContext, read: (event: JsonObject) => boolean) {
    this.report = report;
    this.#context = context;
    this.#read = read;
  }

  feed(chunk: Uint8Array): Uint8Array | undefined {
    this.#outbox.begin(chunk);
    this.#reader.feed(chunk);
    this.#outbox.finishChunk(false);
    return this.#outbox.flush();
  }

  /** Without the last event the answer has failed, although its body ended. */
  end(broken?: unknown): Uint8Array | undefined {
    const rest = this.#reader.end();
    if (rest !== undefined) this.#frame(rest, 0);
    if (this.#isComplete || this.#hasFailed) return broken === undefined ? this.#outbox.flush() : undefined;
    const error = this.#fail(broken);
    // The blank line ends a frame that was cut.
    this.#outbox.add(Buffer.from(`\n\n${this.#rendered(error)}`));
    return this.#outbox.flush();
  }

  #frame(raw: Buffer, end: number): void {
    const event = tryParse(parseFrame(raw)?.data ?? '');
    if (!isObject(event)) this.#outbox.replace(raw, end, end === 0 ? this.#context.masked(raw) : raw);
    else if (event['type'] === 'error' || isObject(event['error'])) this.#sendError(raw, end, event);
    else {
      if (this.#read(event)) this.#isComplete = true;
      this.#outbox.pass(raw, end);
    }
  }

  /** The vendor's event without what is the operator's, or the gateway's own where it has a shape of its own. */
  #sendError(raw: Buffer, end: number, event: JsonObject): void {
    const { failed, masked, shapeOf } = this.#context;
    failed(event);
    const error = this.#fail();
    const isOwn = shapeOf !== undefined || raw.length > maxScrubbedBytes;
    this.#outbox.replace(raw, end, isOwn ? Buffer.from(this.#rendered(error)) : masked(raw));
  }

  #rendered(error: GatewayError): string {
    const { exchange, shapeOf } = this.#context;
    const shape = shapeOf?.(error, exchange.id);
    return formatFrame(JSON.stringify({ type: 'error', ...envelope(error), ...shape }), 'error');
  }

  #fail(cause?: unknown): GatewayError {
    this.#hasFailed = true;
    const error = new GatewayError('upstream_failed', 'The model broke off its answer.', { shouldRetry: false, cause });
    this.#context.exchange.fail(error);
    return error;
  }
}
