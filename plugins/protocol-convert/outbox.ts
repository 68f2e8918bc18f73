/** Gathers what of a chunk goes out: whole frames at once and without a copy, half a frame when it is whole or very large. */

/** A frame that grows beyond this goes out as it comes: holding it back would cost memory and gain nothing. */
const maxHeldBytes = 64 * 1024;

const noBytes = new Uint8Array();

/**
 * A stream is handed on frame by frame, so that it can be broken off between two frames. `begin` a chunk, tell for each
 * of its frames what becomes of it, `finishChunk`, `flush`. Offsets are those of the chunk.
 */
export class Outbox {
  #chunk: Uint8Array = noBytes;
  #parts: Uint8Array[] = [];
  /** The run of frames that pass untouched. */
  #runStart = 0;
  #runEnd = 0;
  /** Bytes of the current frame that are waiting, and how many have gone out already. */
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #releasedBytes = 0;

  /** The first part of a frame is out already. */
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

  /** The frame does not go out, unless it is halfway out already. */
  skip(raw: Uint8Array, end: number): void {
    if (this.#releasedBytes > 0) this.pass(raw, end);
    else this.#settle(end, undefined);
  }

  /** Other bytes go out instead of the frame, unless it is halfway out already or they are the same. */
  replace(raw: Uint8Array, end: number, instead: Uint8Array): void {
    if (this.#releasedBytes > 0 || instead === raw) this.pass(raw, end);
    else {
      if (raw.length <= end) this.#closeRun();
      this.#settle(end, instead);
    }
  }

  /** Bytes that come from elsewhere than the chunk. */
  add(bytes: Uint8Array | undefined): void {
    if (bytes !== undefined) this.#parts.push(bytes);
  }

  clear(): void {
    this.#parts = [];
  }

  /** Sees to what is left of the chunk behind its last frame. `all`: the stream ends with this chunk, it goes out too. */
  finishChunk(all: boolean): void {
    if (all) this.#runEnd = this.#chunk.length;
    const from = this.#runEnd;
    this.#closeRun();
    if (from === this.#chunk.length) return;
    const rest = this.#chunk.subarray(from);
    if (this.#releasedBytes > 0) {
      this.#parts.push(rest);
      this.#releasedBytes += rest.length;
      return;
    }
    this.#waiting.push(rest);
    this.#waitingBytes += rest.length;
    if (this.#waitingBytes <= maxHeldBytes) return;
    this.#parts.push(...this.#waiting);
    this.#releasedBytes = this.#waitingBytes;
    this.#forgetWaiting();
  }

  /** What goes out now; undefined when nothing does. The chunk is not kept: a stream may be silent for long. */
  flush(): Uint8Array | undefined {
    const parts = this.#parts;
    this.begin(noBytes);
    if (parts.length === 0) return undefined;
    this.#parts = [];
    return parts.length === 1 ? parts[0] : Buffer.concat(parts);
  }

  #settle(end: number, instead: Uint8Array | undefined): void {
    this.#closeRun();
    if (instead !== undefined) this.#parts.push(instead);
    this.#forgetWaiting();
    this.#releasedBytes = 0;
    this.#runStart = end;
    this.#runEnd = end;
  }

  #closeRun(): void {
    if (this.#runEnd === this.#runStart) return;
    const isAll = this.#runStart === 0 && this.#runEnd === this.#chunk.length;
    this.#parts.push(isAll ? this.#chunk : this.#chunk.subarray(this.#runStart, this.#runEnd));
    this.#runStart = this.#runEnd;
  }

  #forgetWaiting(): void {
    this.#waiting = [];
    this.#waitingBytes = 0;
  }
}
