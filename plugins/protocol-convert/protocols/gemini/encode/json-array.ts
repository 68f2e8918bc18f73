/** Splits a JSON array that arrives in arbitrary chunks into its elements: the form of streams without `alt=sse`. Pure. */
import { UpstreamError } from '../../../../../core/contract/upstream-failures.ts';
import { defaultMaxFrameBytes } from '../../../../common/kit/sse.ts';

/** Returns each element's bytes; also accepts a plain sequence of objects. Same interface as a frame reader. */
export class JsonArrayReader {
  readonly #onFrame: (raw: Buffer, end: number) => void;
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  #depth = 0;
  #inString = false;
  #escaped = false;
  pendingBytes = 0;

  constructor(onFrame: (raw: Buffer, end: number) => void, maxFrameBytes = defaultMaxFrameBytes) {
    this.#onFrame = onFrame;
    this.#maxBytes = maxFrameBytes;
  }

  feed(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let start = this.#depth > 0 ? 0 : -1;
    for (let at = 0; at < bytes.length; at++) {
      const before = this.#depth;
      this.#step(bytes[at]!);
      if (before === 0 && this.#depth === 1) start = at;
      else if (before === 1 && this.#depth === 0) {
        this.#complete(bytes.subarray(start, at + 1), at + 1);
        start = -1;
      }
    }
    if (start === -1) return;
    this.#pieces.push(bytes.subarray(start));
    this.pendingBytes += bytes.length - start;
    if (this.pendingBytes > this.#maxBytes) throw new UpstreamError('body', 'a stream element is too large');
  }

  /** The rest of an element that did not end. */
  end(): Buffer | undefined {
    const rest = this.#pieces.length === 0 ? undefined : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.pendingBytes = 0;
    return rest;
  }

  /** Only braces change the depth: the outer brackets do not. */
  #step(byte: number): void {
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false;
      else if (byte === 0x5c) this.#escaped = true;
      else if (byte === 0x22) this.#inString = false;
    } else if (byte === 0x22) this.#inString = this.#depth > 0;
    else if (byte === 0x7b) this.#depth++;
    else if (byte === 0x7d && this.#depth > 0) this.#depth--;
  }

  #complete(own: Buffer, end: number): void {
    const raw = this.#pieces.length === 0 ? own : Buffer.concat([...this.#pieces, own]);
    this.#pieces = [];
    this.pendingBytes = 0;
    this.#onFrame(raw, end);
  }
}
