/** Relays a vendor's image stream to the client's exchange, frame by frame and once. */

/**
 * Frames that may wait for a slow client; beyond that the vendor waits. A client that stops reading is disconnected,
 * and the vendor continues.
 */
const mostWaitingBytes = 16 * 2 ** 20;

/** Connects the worker that reads the vendor with the client's exchange. */
export class Live {
  readonly #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #begun = false;
  #ended = false;
  #disconnected = false;
  #notify = () => {};
  #changed = this.#next();
  /** The completed frame, held back until the image is stored and paid. */
  last: Uint8Array | undefined;

  /** A frame has come that the client can be shown: from now on no other vendor is tried. */
  get begun(): boolean {
    return this.#begun;
  }

  /** Resolves when there is room for more. */
  async push(frame: Uint8Array): Promise<void> {
    this.#begun = true;
    if (this.#disconnected) return;
    this.#waiting.push(frame);
    this.#waitingBytes += frame.length;
    this.#publish();
    while (this.#waitingBytes > mostWaitingBytes && !this.#disconnected) await this.#changed;
  }

  /** Marks the vendor's stream as finished. */
  end(): void {
    this.#ended = true;
    this.#publish();
  }

  /** Resolves, as soon as it is known, with whether a frame came before the stream ended or the client disconnected. */
  async began(): Promise<boolean> {
    while (!this.#begun && !this.#ended && !this.#disconnected) await this.#changed;
    return this.#begun;
  }

  /** All pushed frames, once. Ending the iteration early counts as a disconnect. */
  async *frames(): AsyncGenerator<Uint8Array, void> {
    try {
      for (;;) {
        const frame = this.#waiting.shift();
        if (frame !== undefined) {
          this.#waitingBytes -= frame.length;
          this.#publish();
          yield frame;
        } else if (this.#ended || this.#disconnected) return;
        else await this.#changed;
      }
    } finally {
      this.disconnect();
    }
  }

  /** The client has disconnected; further frames are read and dropped. */
  disconnect(): void {
    this.#disconnected = true;
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
    this.#publish();
  }

  #publish(): void {
    const notify = this.#notify;
    this.#changed = this.#next();
    notify();
  }

  #next(): Promise<void> {
    return new Promise((resolve) => {
      this.#notify = resolve;
    });
  }
}
