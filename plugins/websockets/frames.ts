/** Follows a client's bytes frame by frame (RFC 6455, section 5.2): what its unfinished message takes, and its control frames. */

/** Memory of a piece beside its bytes. */
const pieceBytes = 512;

const isControl = (opcode: number) => opcode > 7;
const closes = 8;

export class FrameMeter {
  /** Memory of the message that has begun and has not ended; 0: there is none. */
  unfinishedBytes = 0;
  /** Pings and pongs so far. */
  controlFrames = 0;
  /** Nothing after a close frame is read. */
  hasClosed = false;
  readonly #head = Buffer.alloc(14);
  #headBytes = 0;
  /** Bytes that the frame still has to bring. */
  #left = 0;
  #isInMessage = false;
  #pieces = 0;

  read(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length && !this.hasClosed) {
      if (this.#left > 0) {
        const taken = Math.min(this.#left, chunk.length - at);
        at += taken;
        this.#left -= taken;
        if (this.#left === 0) this.#endFrame();
      } else this.#readHead(chunk[at++]!);
    }
    // Even one byte of it keeps the whole piece in memory.
    if (!this.hasClosed && this.#isInMessage) this.unfinishedBytes += chunk.length + (1 + this.#pieces) * pieceBytes;
    this.#pieces = 0;
  }

  #readHead(byte: number): void {
    const head = this.#head;
    head[this.#headBytes++] = byte;
    if (this.#headBytes < 2) return;
    const short = head[1]! & 0x7f;
    const lengthBytes = short === 127 ? 8 : short === 126 ? 2 : 0;
    const masked = (head[1]! & 0x80) === 0 ? 0 : 4;
    if (this.#headBytes < 2 + lengthBytes + masked) return;
    this.#headBytes = 0;
    if (lengthBytes === 0) this.#left = short;
    else this.#left = lengthBytes === 2 ? head.readUInt16BE(2) : Number(head.readBigUInt64BE(2));
    if (isControl(head[0]! & 0x0f)) this.controlFrames += 1;
    else {
      this.#isInMessage = true;
      this.#pieces += 1;
    }
    if (this.#left === 0) this.#endFrame();
  }

  #endFrame(): void {
    const first = this.#head[0]!;
    const opcode = first & 0x0f;
    if (opcode === closes) this.hasClosed = true;
    if (isControl(opcode) || (first & 0x80) === 0) return;
    this.#isInMessage = false;
    this.unfinishedBytes = 0;
    this.#pieces = 0;
  }
}
