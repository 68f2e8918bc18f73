/** AWS's binary event stream: messages with a length, headers, a body and two checksums; each becomes a frame of text. */
import { EventStreamCodec } from '@smithy/core/event-streams';
import { UpstreamError } from '../../core/contract/errors.ts';
import { isObject, textOf, tryParse } from '../../core/json/json.ts';
import { formatFrame, type OnFrame } from '../common/kit/sse.ts';
import type { Framing, StreamReader } from '../common/wire/protocols.ts';

const prefixBytes = 4;
const leastBytes = 16;
/** The format allows 16 MB of body and 128 KB of headers. */
const mostBytes = 17 * 2 ** 20;

const codec = new EventStreamCodec(
  (bytes) => (typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('utf8')),
  (text) => Buffer.from(text, 'utf8'),
);

/** Exceptions inside a stream, with the status that each has as an answer of its own. */
const statuses: ReadonlyMap<unknown, number> = new Map([
  ['validationException', 400],
  ['throttlingException', 429],
  ['modelStreamErrorException', 502],
  ['internalServerException', 500],
  ['serviceUnavailableException', 503],
  ['modelTimeoutException', 504],
]);

class MessageReader implements StreamReader {
  readonly #onFrame: OnFrame;
  #pieces: Uint8Array[] = [];
  /** Of the message; undefined while its prefix is incomplete. */
  #length: number | undefined;
  pendingBytes = 0;

  constructor(onFrame: OnFrame) {
    this.#onFrame = onFrame;
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
      else this.#onFrame(this.#taken(), at);
    }
  }

  /** The rest is no message. */
  end(): undefined {
    return undefined;
  }

  #taken(): Buffer {
    const message = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#length = undefined;
    this.pendingBytes = 0;
    return Buffer.from(frameOf(message));
  }
}

function lengthIn(prefix: Buffer): number {
  const length = prefix.readUInt32BE();
  if (length < leastBytes || length > mostBytes)
    throw new UpstreamError('body', `a message of the event stream is ${length} bytes long`);
  return length;
}

function frameOf(message: Buffer): string {
  const { headers, body } = decoded(message);
  const text = (name: string) => textOf(headers[name]?.value);
  const data = Buffer.from(body).toString('utf8');
  if (text(':message-type') === 'event') return formatFrame(data, text(':event-type'));
  const kind = text(':exception-type') ?? text(':error-code');
  const said = tryParse(data);
  const words = (isObject(said) ? textOf(said['message']) : undefined) ?? text(':error-message');
  return formatFrame(
    JSON.stringify({ error: { code: statuses.get(kind) ?? 502, message: words ?? 'The model failed.' } }),
  );
}

function decoded(message: Buffer): ReturnType<EventStreamCodec['decode']> {
  try {
    return codec.decode(message);
  } catch (error) {
    throw new UpstreamError('body', 'a message of the event stream is damaged', { cause: error });
  }
}

export const eventStream: Framing = {
  // The first byte of a length below 16 MB; above a little more is no message.
  begins: (byte) => byte === '\0' || byte === '\x01',
  createReader: (onFrame) => new MessageReader(onFrame),
};
