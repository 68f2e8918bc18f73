/** An image that comes while its client looks on: what the vendor streams, handed over as it came, and never twice. */

/** So much may wait for a client; then the vendor does. A client that takes nothing is left, and the vendor goes on. */
const mostWaitingBytes = 16 * 2 ** 20;

/** Between the worker that reads the vendor, and the exchange that its client waits in. */
export class Live {
  readonly #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #begun = false;
  #over = false;
  #left = false;
  #wake = () => {};
  #changed = this.#next();
  /** The frame that says that the image is done: for the client once it is kept and paid. */
  last: Uint8Array | undefined;

  /** Something has come that the client can be shown: from now on no other vendor is tried. */
  get begun(): boolean {
    return this.#begun;
  }

  /** Resolves when there is room for more. */
  async push(frame: Uint8Array): Promise<void> {
    this.#begun = true;
    if (this.#left) return;
    this.#waiting.push(frame);
    this.#waitingBytes += frame.length;
    this.#tell();
    while (this.#waitingBytes > mostWaitingBytes && !this.#left) await this.#changed;
  }

  /** The vendor has told all that it will. */
  end(): void {
    this.#over = true;
    this.#tell();
  }

  /** Resolves with whether anything came, as soon as that is known, or nobody looks on any more. */
  async began(): Promise<boolean> {
    while (!this.#begun && !this.#over && !this.#left) await this.#changed;
    return this.#begun;
  }

  /** Everything that was pushed, once. Whoever stops reading has left. */
  async *frames(): AsyncGenerator<Uint8Array, void> {
    try {
      for (;;) {
        const frame = this.#waiting.shift();
        if (frame !== undefined) {
          this.#waitingBytes -= frame.length;
          this.#tell();
          yield frame;
        } else if (this.#over || this.#left) return;
        else await this.#changed;
      }
    } finally {
      this.leave();
    }
  }

  /** Nobody looks on any more; what comes is read all the same. */
  leave(): void {
    this.#left = true;
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
    this.#tell();
  }

  #tell(): void {
    const wake = this.#wake;
    this.#changed = this.#next();
    wake();
  }

  #next(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
