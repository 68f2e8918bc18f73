/** Answers of Llama and Mistral by InvokeModel, whole and in chunks: decoding, and their usage from bodies, headers and metrics. */
import { UpstreamError } from '../../core/contract/upstream-failures.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf, tryParse } from '../../core/json/json.ts';
import type { ReplyDecoder, UpstreamCodec } from '../common/canonical/codec.ts';
import type { ReplyEvents } from '../common/canonical/events.ts';
import type { StopReason } from '../common/canonical/reply.ts';
import { readCount } from '../common/domain/usage.ts';
import { formatFrame } from '../common/kit/sse.ts';
import type { Reading } from '../common/wire/counts.ts';
import { FrameMeter, readSides } from '../common/wire/frame-meter.ts';
import { openingWhere } from '../common/wire/opening-frames.ts';
import type { WireProtocol } from '../common/wire/protocols.ts';
import type { UsageMeterOptions, Verdict } from '../common/wire/usage-meter.ts';
import { readError } from './errors.ts';
import { chunkStream } from './event-stream.ts';
import { invokeHeaders, withoutMetrics } from './invoke.ts';

/** A protocol for Llama or Mistral; `partOf` reads its answers. */
export function completions(
  name: string,
  encodeRequest: UpstreamCodec['encodeRequest'],
  needsBytes: UpstreamCodec['needsBytes'] = [],
): WireProtocol {
  return {
    name,
    path: '/model/{model}/invoke',
    ...invokeHeaders,
    codec: { needsBytes, encodeRequest, createDecoder: (events) => new CompletionDecoder(events), decodeReply },
    createUsageMeter: (_call, options) => new CompletionUsageMeter(options),
    isOpening: openingWhere((json) => {
      const part = partOf(json);
      return part?.text === '' && part.calls.length === 0 && part.stop === undefined;
    }),
    framing: chunkStream(() => frameOf),
    readError,
  };
}

function frameOf(data: string): string {
  if (!isObject(tryParse(data))) throw new UpstreamError('body', 'a chunk of the stream is no JSON object');
  return formatFrame(data);
}

/** A whole answer, or the content of one chunk. */
interface AnswerPart {
  readonly text: string;
  readonly calls: readonly JsonObject[];
  readonly stop: string | undefined;
  readonly input: unknown;
  readonly output: unknown;
}

/** Llama has a `generation`, Mistral `outputs` for a prompt and `choices` for messages. undefined: it is none of them. */
function partOf(json: JsonObject): AnswerPart | undefined {
  const own = [json['outputs'], json['choices']].map((list) => objectOf(listOf(list)[0])).find(Boolean);
  const part = typeof json['generation'] === 'string' ? json : own;
  if (part === undefined) return undefined;
  const message = objectOf(part['message']) ?? objectOf(part['delta']) ?? {};
  const usage = objectOf(json['usage']) ?? {};
  return {
    text: textOf(part['generation']) ?? textOf(part['text']) ?? contentOf(message['content']),
    calls: listOf(message['tool_calls']).filter(isObject),
    stop: textOf(part['stop_reason']) ?? textOf(part['finish_reason']),
    input: json['prompt_token_count'] ?? usage['prompt_tokens'],
    output: json['generation_token_count'] ?? usage['completion_tokens'],
  };
}

function contentOf(content: unknown): string {
  const parts = listOf(content).map((part) => textOf(objectOf(part)?.['text']) ?? '');
  return textOf(content) ?? parts.join('');
}

const reasons: ReadonlyMap<unknown, StopReason> = new Map([
  ['length', 'length'],
  ['model_length', 'length'],
  ['tool_calls', 'tool-calls'],
  ['content_filter', 'refusal'],
]);

class CompletionDecoder implements ReplyDecoder {
  readonly #events: ReplyEvents;

  constructor(events: ReplyEvents) {
    this.#events = events;
  }

  payload(json: JsonObject): void {
    const part = partOf(json);
    if (part !== undefined) emit(part, this.#events);
  }

  end(): void {
    this.#events.stop(0, 'stop');
  }
}

function decodeReply(json: JsonObject, events: ReplyEvents): void {
  events.start();
  const part = partOf(json);
  if (part !== undefined) emit(part, events);
  events.stop(0, 'stop');
}

function emit({ text, calls, stop }: AnswerPart, events: ReplyEvents): void {
  events.text(0, text);
  for (const [position, call] of calls.entries()) {
    const { index } = call;
    const id = textOf(call['id']);
    const { name, arguments: input } = objectOf(call['function']) ?? {};
    const key = typeof index === 'number' ? index : `${id ?? ''}/${position}`;
    events.call(0, key, { id, name: textOf(name), input: textOf(input) });
  }
  if (stop !== undefined) events.stop(0, reasons.get(stop) ?? 'stop');
}

/** Without usage in the body, whole answers are metered by headers and streams by the metrics of their last chunk. */
export class CompletionUsageMeter extends FrameMeter {
  constructor({ headers = {} }: Pick<UsageMeterOptions, 'headers'>) {
    super();
    this.#take(headers['x-amzn-bedrock-input-token-count'], headers['x-amzn-bedrock-output-token-count']);
  }

  get reading(): Reading {
    return this.counts.reading(readSides);
  }

  payload(json: JsonObject): Verdict {
    if (objectOf(json['error']) !== undefined) {
      this.error = json;
      return 'failed';
    }
    const part = partOf(json);
    if (part !== undefined) this.#add(part);
    const { metrics } = withoutMetrics(json);
    if (metrics === undefined) return 'pass';
    this.#take(metrics['inputTokenCount'], metrics['outputTokenCount']);
    return this.complete ? 'last' : 'pass';
  }

  whole(json: JsonObject): void {
    const part = partOf(json);
    if (part === undefined) {
      this.error = { error: { message: textOf(json['message']) ?? 'The model failed to answer.' } };
      return;
    }
    this.#add(part);
    this.complete = true;
  }

  #add({ text, calls, stop, input, output }: AnswerPart): void {
    const called = calls.flatMap(({ function: of }) => Object.values(objectOf(of) ?? {}));
    const bytes = [text, ...called].map((said) => Buffer.byteLength(textOf(said) ?? ''));
    this.text.add(bytes.reduce((sum, size) => sum + size, 0));
    this.#take(input, output);
    if (stop === undefined) return;
    this.finish = stop;
    this.complete = true;
  }

  #take(input: unknown, output: unknown): void {
    this.counts.take('input', input);
    this.counts.take('output', output);
    if (readCount(output) !== undefined) this.text.reported();
  }
}
