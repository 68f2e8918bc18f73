/** Reads the answer to a trial: when its first byte came, what it says, and whether it is an answer at all. */
import type { Answer, Clock } from '../../core/contract.ts';
import { errorIn } from '../../core/refusals.ts';
import { FrameReader } from '../../core/sse.ts';
import type { Usage } from '../../core/usage.ts';
import type { Call } from '../../core/vocabulary.ts';
import type { ReplyDecoder } from './codec.ts';
import { Collector } from './collect.ts';
import { readFrame } from './frame.ts';
import { isObject, type JsonObject, textOf, tryParseBytes } from './json.ts';
import type { Protocol, StreamReader, Tap } from './protocol.ts';
import { ReplyEvents } from './reply-events.ts';

/** More does not come of a few words. */
const maxBytes = 2 ** 20;
const shownCharacters = 200;

export interface ProbeTime {
  readonly clock: Clock;
  /** Monotonic milliseconds. */
  readonly startedMs: number;
  readonly longestMs: number;
}

export class ProbeReader {
  /** From the start; undefined: nothing came. */
  firstByteMs: number | undefined;
  readonly #protocol: Protocol;
  readonly #time: ProbeTime;
  readonly #tap: Tap;
  readonly #collector = new Collector();
  readonly #events: ReplyEvents;
  readonly #decoder: ReplyDecoder;
  #ended = false;

  constructor(protocol: Protocol, call: Call, time: ProbeTime) {
    this.#protocol = protocol;
    this.#time = time;
    this.#tap = protocol.createTap(call, { withholdUsage: false });
    this.#events = new ReplyEvents((event) => this.#collector.event(event), { names: new Map(), idSeed: 'probe' });
    this.#decoder = protocol.codec.createDecoder(this.#events);
  }

  get usage(): Usage {
    return this.#tap.reading.usage;
  }

  /** The beginning of what was said. */
  get text(): string {
    const parts = this.#collector.reply().choices[0]?.parts ?? [];
    const said = parts.map((part) => (part.kind === 'text' || part.kind === 'refusal' ? part.text : '')).join('');
    return said.slice(0, shownCharacters);
  }

  /** Reads to the end, in bounds. Resolves with what is wrong, or undefined: nothing is. Throws UpstreamErrors of the wire. */
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
      // As long as it is no stream, all of it belongs together.
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

  /** By the first byte: a stream of frames, an array of a protocol that streams those, or (undefined) one document. */
  #readerFor(chunk: Uint8Array): StreamReader | undefined {
    const first = Buffer.from(chunk.subarray(0, 64)).toString('latin1').trimStart()[0];
    const { arrayStreams } = this.#protocol;
    if (first === '[' && arrayStreams !== undefined) return arrayStreams.createReader((raw) => this.#frame(raw));
    return first === '{' || first === '<' || first === '[' ? undefined : new FrameReader((raw) => this.#frame(raw));
  }

  #frame(raw: Buffer): void {
    if (this.#ended) return;
    const read = readFrame(raw);
    const verdict = read === undefined ? this.#tap.frame(raw) : this.#tap.payload(read.json, read.event);
    if (read !== undefined && this.#tap.error === undefined) this.#decoder.payload(read.json, read.event);
    this.#ended = verdict === 'last' || verdict === 'failed' || verdict === 'error' || verdict === 'overdue';
  }

  #last(rest: Buffer | undefined): void {
    if (rest !== undefined) this.#frame(rest);
    if (this.#tap.complete && this.#tap.error === undefined) this.#decoder.end();
  }

  #whole(body: Uint8Array): void {
    const json = tryParseBytes(body);
    if (!isObject(json)) return;
    this.#tap.whole(json);
    if (this.#tap.error === undefined) this.#protocol.codec.decodeReply(json, this.#events);
  }

  /** What a client would not be given as an answer either; one that has come to its bound without a word is one. */
  #fault(): string | undefined {
    const { error, complete } = this.#tap;
    if (error !== undefined) return wordsOf(error) ?? 'It told of an error without words.';
    if (this.#events.failure !== undefined) return this.#events.failure;
    if (!complete) return 'What came is no whole answer of its protocol.';
    return this.#events.hasContent || this.#events.hasStopped ? undefined : 'The answer is empty.';
  }
}

async function* chunksOf(body: Answer['body']): AsyncGenerator<Uint8Array, void> {
  if (typeof body === 'string') yield Buffer.from(body);
  else if (body instanceof Uint8Array) yield body;
  else yield* body;
}

/** As much as a message may be looked for in. */
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
  return isObject(json) ? wordsOf(json) : undefined;
}

function wordsOf(payload: JsonObject): string | undefined {
  return textOf(errorIn(payload)['message']) ?? textOf(payload['message']) ?? textOf(payload['error']);
}
