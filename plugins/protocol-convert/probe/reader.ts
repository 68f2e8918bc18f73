/** Reading of the answer to a test call: the time of its first byte, its text, and whether it is a valid answer. */

import type { Clock } from '../../../core/contract/host-tools.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { isObject, type JsonObject, textOf, tryParseBytes } from '../../../core/json/json.ts';
import type { ReplyDecoder } from '../../common/canonical/codec.ts';
import { Collector } from '../../common/canonical/collect.ts';
import { ReplyEvents } from '../../common/canonical/events.ts';
import type { Call } from '../../common/domain/calls.ts';
import type { Usage } from '../../common/domain/usage.ts';
import { errorIn } from '../../common/kit/error-body.ts';
import { FrameReader } from '../../common/kit/sse.ts';
import { readFrame } from '../../common/wire/frame.ts';
import type { StreamReader, WireProtocol } from '../../common/wire/protocols.ts';
import type { UsageMeter } from '../../common/wire/usage-meter.ts';

/** The answer to such a short prompt is never longer. */
const maxBytes = 2 ** 20;
const shownCharacters = 200;

export interface ProbeTime {
  readonly clock: Clock;
  /** Monotonic milliseconds. */
  readonly startedMs: number;
  readonly longestMs: number;
}

export class ProbeReader {
  /** Since the start; undefined: no byte arrived. */
  firstByteMs: number | undefined;
  readonly #protocol: WireProtocol;
  readonly #isStream: boolean;
  readonly #time: ProbeTime;
  readonly #usageMeter: UsageMeter;
  readonly #collector = new Collector();
  readonly #events: ReplyEvents;
  readonly #decoder: ReplyDecoder;
  #ended = false;

  constructor(protocol: WireProtocol, call: Call, time: ProbeTime) {
    this.#protocol = protocol;
    this.#isStream = call.stream;
    this.#time = time;
    this.#usageMeter = protocol.createUsageMeter(call, { withholdUsage: false });
    this.#events = new ReplyEvents((event) => this.#collector.event(event), { names: new Map(), idSeed: 'probe' });
    this.#decoder = protocol.codec.createDecoder(this.#events);
  }

  get usage(): Usage {
    return this.#usageMeter.reading.usage;
  }

  /** The beginning of the answered text. */
  get text(): string {
    const parts = this.#collector.reply().choices[0]?.parts ?? [];
    const answered = parts.map((part) => (part.kind === 'text' || part.kind === 'refusal' ? part.text : '')).join('');
    return answered.slice(0, shownCharacters);
  }

  /**
   * Reads to the end, within bounds. Resolves with the problem, or undefined for none. Throws UpstreamErrors of the
   * transport.
   */
  async read({ status, body }: Answer): Promise<string | undefined> {
    if (status >= 300) {
      this.#note();
      return errorWords(await bytesOf(body)) ?? `It answered ${status}.`;
    }
    const rest: Uint8Array[] = [];
    let reader: StreamReader | undefined;
    let bytes = 0;
    for await (const chunk of chunksOf(body)) {
      this.#note();
      bytes += chunk.length;
      if (bytes > maxBytes) return 'It does not stop answering.';
      if (this.#time.clock.monotonic() - this.#time.startedMs > this.#time.longestMs) return 'It did not end in time.';
      // Until a stream is recognised, all bytes form one document.
      reader ??= rest.length === 0 ? this.#readerFor(chunk) : undefined;
      if (reader === undefined) rest.push(chunk);
      else reader.feed(chunk);
      if (this.#ended) break;
    }
    if (reader === undefined) this.#whole(Buffer.concat(rest));
    else this.#last(reader.end());
    return this.#fault();
  }

  #note(): void {
    const { clock, startedMs } = this.#time;
    this.firstByteMs ??= clock.monotonic() - startedMs;
  }

  /** By the first byte: a stream of the protocol's own form, server-sent events, or (undefined) one document. */
  #readerFor(chunk: Uint8Array): StreamReader | undefined {
    const first = Buffer.from(chunk.subarray(0, 64)).toString('latin1').trimStart()[0];
    const { framing } = this.#protocol;
    if (first !== undefined && this.#isStream && framing?.begins(first))
      return framing.createReader((raw) => this.#frame(raw));
    return first === '{' || first === '<' || first === '[' ? undefined : new FrameReader((raw) => this.#frame(raw));
  }

  #frame(raw: Buffer): void {
    if (this.#ended) return;
    const read = readFrame(raw);
    const verdict = read === undefined ? this.#usageMeter.frame(raw) : this.#usageMeter.payload(read.json, read.event);
    if (read !== undefined && this.#usageMeter.error === undefined) this.#decoder.payload(read.json, read.event);
    this.#ended = verdict === 'last' || verdict === 'failed' || verdict === 'error' || verdict === 'overdue';
  }

  #last(rest: Buffer | undefined): void {
    if (rest !== undefined) this.#frame(rest);
    if (this.#usageMeter.complete && this.#usageMeter.error === undefined) this.#decoder.end();
  }

  #whole(body: Uint8Array): void {
    const json = tryParseBytes(body);
    if (!isObject(json)) return;
    this.#usageMeter.whole(json);
    if (this.#usageMeter.error === undefined) this.#protocol.codec.decodeReply(json, this.#events);
  }

  /**
   * Answers that a client would not get either; an answer that reached its token limit without text counts as valid.
   */
  #fault(): string | undefined {
    const { error, complete } = this.#usageMeter;
    if (error !== undefined) return errorMessage(error) ?? 'It reported an error without words.';
    if (this.#events.failure !== undefined) return this.#events.failure;
    if (!complete) return 'The answer is not complete in its protocol.';
    return this.#events.hasContent || this.#events.hasStopped ? undefined : 'The answer is empty.';
  }
}

async function* chunksOf(body: Answer['body']): AsyncGenerator<Uint8Array, void> {
  if (typeof body === 'string') yield Buffer.from(body);
  else if (body instanceof Uint8Array) yield body;
  else yield* body;
}

/** The longest body that is searched for an error message. */
async function bytesOf(body: Answer['body']): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunksOf(body)) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxBytes) break;
  }
  return Buffer.concat(chunks);
}

function errorWords(body: Uint8Array): string | undefined {
  const json = tryParseBytes(body);
  return isObject(json) ? errorMessage(json) : undefined;
}

function errorMessage(payload: JsonObject): string | undefined {
  return textOf(errorIn(payload)['message']) ?? textOf(payload['message']) ?? textOf(payload['error']);
}
