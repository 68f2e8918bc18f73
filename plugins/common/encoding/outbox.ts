/**
 * Output of one chunk: complete frames go out at once without a copy, an incomplete frame when it is complete or very
 * large.
 */

/** A frame that grows beyond this goes out as it comes: holding it would cost memory without benefit. */
const maxHeldBytes = 64 * 1024;

const noBytes = new Uint8Array();

/**
 * A stream is forwarded frame by frame, so that it can end between two frames. Call `begin` with a chunk, one method
 * for each of its frames, `finishChunk`, and `flush`. Offsets are relative to the chunk.
 */
export class Outbox {
  #chunk: Uint8Array = noBytes;
  /** Nearly always all there is. */
  #part: Uint8Array | undefined;
  #more: Uint8Array[] | undefined;
  /** The run of unchanged frames. */
  #runStart = 0;
  #runEnd = 0;
  /** Held bytes of the current frame, and how many were sent already. */
  #waiting: Uint8Array[] | undefined;
  #waitingBytes = 0;
  #releasedBytes = 0;

  /** The beginning of a frame was sent already. */
  get isInsideFrame(): boolean {
    return this.#releasedBytes > 0;
  }

  begin(chunk: Uint8Array): void {
    this.#chunk = chunk;
    this.#runStart = 0;
    this.#runEnd = 0;
  }

  /** The frame goes out as it came. */
  pass(raw: Uint8Array, end: number): void {
    if (raw.length <= end) this.#runEnd = end;
    else this.#settle(end, raw.subarray(this.#releasedBytes));
  }

  /** Drops the frame, unless its beginning was sent already. */
  skip(raw: Uint8Array, end: number): void {
    if (this.#releasedBytes > 0) this.pass(raw, end);
    else this.#settle(end, undefined);
  }

  /** Sends other bytes instead of the frame, unless its beginning was sent already or the bytes are equal. */
  replace(raw: Uint8Array, end: number, instead: Uint8Array): void {
    if (this.#releasedBytes > 0 || instead === raw) this.pass(raw, end);
    else {
      if (raw.length <= end) this.#closeRun();
      this.#settle(end, instead);
    }
  }

  /** Adds bytes that are not part of the chunk. */
  add(bytes: Uint8Array | undefined): void {
    if (bytes === undefined) return;
    if (this.#part === undefined) this.#part = bytes;
    else if (this.#more === undefined) this.#more = [bytes];
    else this.#more.push(bytes);
  }

  clear(): void {
    this.#part = undefined;
    this.#more = undefined;
  }

  /**
   * Handles the bytes of the chunk after its last frame. `all`: the stream ends with this chunk, so they are sent too.
   */
  finishChunk(all: boolean): void {
    if (all) this.#runEnd = this.#chunk.length;
    const from = this.#runEnd;
    this.#closeRun();
    if (from === this.#chunk.length) return;
    const rest = this.#chunk.subarray(from);
    if (this.#releasedBytes > 0) {
      this.add(rest);
      this.#releasedBytes += rest.length;
      return;
    }
    this.#waiting ??= [];
    this.#waiting.push(rest);
    this.#waitingBytes += rest.length;
    if (this.#waitingBytes <= maxHeldBytes) return;
    for (const part of this.#waiting) this.add(part);
    this.#releasedBytes = this.#waitingBytes;
    this.#forgetWaiting();
  }

  /** The bytes to send now; undefined for none. The chunk is not retained: a stream may be silent for long. */
  flush(): Uint8Array | undefined {
    const [part, more] = [this.#part, this.#more];
    this.begin(noBytes);
    this.clear();
    return part === undefined || more === undefined ? part : Buffer.concat([part, ...more]);
  }

  #settle(end: number, instead: Uint8Array | undefined): void {
    this.#closeRun();
    this.add(instead);
    this.#forgetWaiting();
    this.#releasedBytes = 0;
    this.#runStart = end;
    this.#runEnd = end;
  }

  #closeRun(): void {
    if (this.#runEnd === this.#runStart) return;
    const isAll = this.#runStart === 0 && this.#runEnd === this.#chunk.length;
    this.add(isAll ? this.#chunk : this.#chunk.subarray(this.#runStart, this.#runEnd));
    this.#runStart = this.#runEnd;
  }

  #forgetWaiting(): void {
    this.#waiting = undefined;
    this.#waitingBytes = 0;
  }
}
