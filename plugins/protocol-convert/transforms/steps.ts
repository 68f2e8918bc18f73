/** Steps that run in their order: at once, or behind one that waits. */

type Step = () => void | Promise<void>;

export class Steps {
  #waiting: Step[] = [];
  #isWaiting = false;
  #pending: Promise<void> | undefined;

  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** What the steps wait for. It stays until `settle` is called behind it, so that what they wrote is fetched. */
  get pending(): Promise<void> | undefined {
    return this.#pending;
  }

  run(step: Step): void {
    if (this.#isWaiting) {
      this.#waiting.push(step);
      return;
    }
    const waits = step();
    if (waits === undefined) return;
    this.#isWaiting = true;
    const pending = this.#drain(waits);
    // The reader of the answer may be gone.
    pending.catch(() => {});
    this.#pending = pending;
  }

  settle(): void {
    if (!this.#isWaiting) this.#pending = undefined;
  }

  abandon(): void {
    this.#waiting = [];
    this.#isWaiting = false;
    this.#pending = undefined;
  }

  /** After an error nothing runs: it is found in `pending`. */
  async #drain(first: Promise<void>): Promise<void> {
    await first;
    const waiting = this.#waiting;
    for (let step = waiting.shift(); step !== undefined; step = waiting.shift()) {
      if (waiting !== this.#waiting) return;
      await step();
    }
    if (waiting === this.#waiting) this.#isWaiting = false;
  }
}
