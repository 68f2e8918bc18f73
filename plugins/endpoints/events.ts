/** Follows server-sent events of OpenAI's audio endpoints: passed on as they come, ended by their last event or an error. */
import { GatewayError } from '../../core/contract/errors.ts';
import { isObject, type JsonObject, tryParse } from '../../core/json/json.ts';
import type { UsageReport } from '../common/domain/calls.ts';
import { envelope } from '../common/kit/error-envelope.ts';
import { FrameReader, formatFrame, parseFrame } from '../common/kit/sse.ts';
import type { AnswerContext, StreamMeter } from './description.ts';

/** An event of a few seconds of audio has a hundredth of it. */
const maxFrameBytes = 8 * 2 ** 20;

/** `read`: gets each event; true: it is the last one. */
export class EventMeter implements StreamMeter {
  readonly report: UsageReport;
  readonly #context: AnswerContext;
  readonly #reader: FrameReader;
  #isComplete = false;
  #hasFailed = false;

  constructor(report: UsageReport, context: AnswerContext, read: (event: JsonObject) => boolean) {
    this.report = report;
    this.#context = context;
    this.#reader = new FrameReader((raw) => {
      const event = tryParse(parseFrame(raw)?.data ?? '');
      if (!isObject(event)) return;
      if (event['type'] === 'error' || isObject(event['error'])) {
        context.failed(event);
        this.#fail();
      } else if (read(event)) this.#isComplete = true;
    }, maxFrameBytes);
  }

  feed(chunk: Uint8Array): void {
    this.#reader.feed(chunk);
  }

  /** Without the last event the answer has failed, although its body ended. */
  end(broken?: unknown): Uint8Array | undefined {
    if (this.#isComplete || this.#hasFailed) return undefined;
    const error = this.#fail(broken);
    const { exchange, shapeOf } = this.#context;
    const shape = shapeOf?.(error, exchange.id);
    // The blank line ends a frame that was cut.
    return Buffer.from(`\n\n${formatFrame(JSON.stringify({ type: 'error', ...envelope(error), ...shape }), 'error')}`);
  }

  #fail(cause?: unknown): GatewayError {
    this.#hasFailed = true;
    const error = new GatewayError('upstream_failed', 'The model broke off its answer.', { shouldRetry: false, cause });
    this.#context.exchange.fail(error);
    return error;
  }
}
