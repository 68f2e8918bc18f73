/** Newline-delimited JSON: cuts a byte stream into its lines, however it was chunked. Pure. */
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';
import { tryParseBytes } from '../../../core/json/json.ts';
import { defaultMaxFrameBytes, type OnFrame } from '../kit/sse.ts';
import type { Framing, StreamReader } from './protocols.ts';

const lineFeed = 0x0a;

/** Each line that is not blank is a frame; the last one needs no line end if it is whole. */
class LineReader implements StreamReader {
  readonly #onFrame: OnFrame;
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  #pendingBytes = 0;

  constructor(onFrame: OnFrame, maxBytes: number) {
    this.#onFrame = onFrame;
    this.#maxBytes = maxBytes;
  }

  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  feed(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let start = 0;
    for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, start)) {
      this.#frame(bytes.subarray(start, end + 1), end + 1);
      start = end + 1;
    }
    if (start === bytes.length) return;
    this.#pieces.push(bytes.subarray(start));
    this.#pendingBytes += bytes.length - start;
    if (this.#pendingBytes > this.#maxBytes) throw new UpstreamError('body', 'a line of the stream is too large');
  }

  end(): Buffer | undefined {
    const rest = this.#joined(Buffer.alloc(0));
    if (rest.length === 0) return undefined;
    if (tryParseBytes(rest) === undefined) return rest;
    this.#onFrame(rest, 0);
    return undefined;
  }

  #frame(line: Buffer, end: number): void {
    const raw = this.#joined(line);
    if (!isBlank(raw)) this.#onFrame(raw, end);
  }

  /** The line with its earlier pieces. */
  #joined(last: Buffer): Buffer {
    if (this.#pieces.length === 0) return last;
    const whole = Buffer.concat([...this.#pieces, last]);
    this.#pieces = [];
    this.#pendingBytes = 0;
    return whole;
  }
}

function isBlank(line: Buffer): boolean {
  return line.every((byte) => byte === lineFeed || byte === 0x0d || byte === 0x20 || byte === 0x09);
}

/** Streams of JSON objects, one a line (`application/x-ndjson`). */
export const jsonLines: Framing = {
  begins: (byte) => byte === '{',
  createReader: (onFrame) => new LineReader(onFrame, defaultMaxFrameBytes),
};
