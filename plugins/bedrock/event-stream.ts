/** AWS's binary event stream: messages with a length, headers, a body and two checksums; each becomes a frame of text. */
import { createRequire } from 'node:module';
import type { EventStreamCodec } from '@smithy/core/event-streams';
import { UpstreamError } from '../../core/contract/upstream-failures.ts';
import { isObject, textOf, tryParse } from '../../core/json/json.ts';
import { formatFrame, type OnFrame } from '../common/kit/sse.ts';
import type { Framing, Reshape, StreamReader } from '../common/wire/protocols.ts';

const prefixBytes = 4;
const leastBytes = 16;
/** The format allows 16 MB of body and 128 KB of headers. */
const mostBytes = 17 * 2 ** 20;

let codec: EventStreamCodec | undefined;

/** Its package is loaded with the first stream: gateways may list this plugin and not use it. */
function codecOfStreams(): EventStreamCodec {
  if (codec === undefined) {
    const streams = createRequire(import.meta.url)(
      '@smithy/core/event-streams',
    ) as typeof import('@smithy/core/event-streams');
    codec = new streams.EventStreamCodec(
      (bytes) => (typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('utf8')),
      (text) => Buffer.from(text, 'utf8'),
    );
  }
  return codec;
}

/** Exceptions inside a stream, with the status that each has as an answer of its own. */
const statuses: ReadonlyMap<unknown, number> = new Map([
  ['validationException', 400],
  ['throttlingException', 429],
  ['modelStreamErrorException', 502],
  ['internalServerException', 500],
  ['serviceUnavailableException', 503],
  ['modelTimeoutException', 504],
]);

/** The frames of an event by its type and body; '' for none. */
type EventReader = (data: string, type: string | undefined) => string;

class MessageReader implements StreamReader {
  readonly #onFrame: OnFrame;
  readonly #readEvent: EventReader;
  #pieces: Uint8Array[] = [];
  /** Length of the message; undefined while its prefix is incomplete. */
  #length: number | undefined;
  pendingBytes = 0;

  constructor(onFrame: OnFrame, readEvent: EventReader) {
    this.#onFrame = onFrame;
    this.#readEvent = readEvent;
  }

  feed(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) {
      const missing = (this.#length ?? prefixBytes) - this.pendingBytes;
      const piece = chunk.subarray(at, at + missing);
      this.#pieces.push(piece);
      this.pendingBytes += piece.length;
      at += piece.length;
      if (piece.length < missing) return;
      if (this.#length === undefined) this.#length = lengthIn(Buffer.concat(this.#pieces));
      else this.#hand(at);
    }
  }

  /** The rest is no message. */
  end(): undefined {
    return undefined;
  }

  #hand(end: number): void {
    // An event may be several frames of the protocol inside it.
    for (const frame of this.#taken().split(/(?<=\n\n)/)) if (frame !== '') this.#onFrame(Buffer.from(frame), end);
  }

  #taken(): string {
    const message = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#length = undefined;
    this.pendingBytes = 0;
    return frameOf(message, this.#readEvent);
  }
}

function lengthIn(prefix: Buffer): number {
  const length = prefix.readUInt32BE();
  if (length < leastBytes || length > mostBytes)
    throw new UpstreamError('body', `a message of the event stream is ${length} bytes long`);
  return length;
}

function frameOf(message: Buffer, readEvent: EventReader): string {
  const { headers, body } = decoded(message);
  const text = (name: string) => textOf(headers[name]?.value);
  const data = Buffer.from(body).toString('utf8');
  if (text(':message-type') === 'event') return readEvent(data, text(':event-type'));
  const kind = text(':exception-type') ?? text(':error-code');
  const said = tryParse(data);
  const words = (isObject(said) ? textOf(said['message']) : undefined) ?? text(':error-message');
  const error = { code: statuses.get(kind) ?? 502, message: words ?? 'The model failed.' };
  return formatFrame(JSON.stringify({ type: 'error', error }), 'error');
}

function decoded(message: Buffer): ReturnType<EventStreamCodec['decode']> {
  try {
    return codecOfStreams().decode(message);
  } catch (error) {
    throw new UpstreamError('body', 'a message of the event stream is damaged', { cause: error });
  }
}

/** `eventReader` is called for each stream. Without `reshape` the stream is read, never handed on. */
function framingOf(eventReader: () => EventReader, reshape?: Reshape): Framing {
  return {
    // The first byte of a length below 16 MB; above a little more is no message.
    begins: (byte) => byte === '\0' || byte === '\x01',
    createReader: (onFrame) => new MessageReader(onFrame, eventReader()),
    ...(reshape === undefined ? {} : { reshape }),
  };
}

export const eventStream = framingOf(() => (data, type) => formatFrame(data, type));

/** Hands on the frames that the reader has made. */
const asSse: Reshape = {
  streamType: 'text/event-stream',
  whole: (_json, body) => body,
  frame: (raw) => raw,
};

/** Streams of InvokeModel: each event is a chunk of the model's own stream, in base64. */
export function chunkStream(chunkReader: () => (data: string) => string): Framing {
  return framingOf(() => {
    const readChunk = chunkReader();
    return (data) => {
      const event = tryParse(data);
      const bytes = isObject(event) ? textOf(event['bytes']) : undefined;
      return bytes === undefined ? '' : readChunk(Buffer.from(bytes, 'base64').toString('utf8'));
    };
  }, asSse);
}
