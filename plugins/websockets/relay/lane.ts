/** Messages of one direction in order: while one waits, its source is paused and messages that were already read are kept. */
import type { Message } from './upstream.ts';

interface Source {
  pause(): void;
  resume(): void;
}

export class Lane {
  readonly #handle: (message: Message) => Promise<void> | undefined;
  readonly #source: () => Source | undefined;
  readonly #onError: (error: unknown) => void;
  #queue: Message[] = [];
  #isBusy = false;
  #last: (() => void) | undefined;

  /** `handle`: a promise where the next message has to wait. */
  constructor(
    handle: (message: Message) => Promise<void> | undefined,
    source: () => Source | undefined,
    onError: (error: unknown) => void,
  ) {
    this.#handle = handle;
    this.#source = source;
    this.#onError = onError;
  }

  push(message: Message): void {
    if (this.#isBusy) {
      this.#queue.push(message);
      return;
    }
    const waiting = this.#handled(message);
    if (waiting === undefined) return;
    this.#isBusy = true;
    this.#source()?.pause();
    void waiting.then(() => this.#continue());
  }

  /** No more messages come: `work` runs once those that wait have been handled. */
  finish(work: () => void): void {
    if (this.#isBusy) this.#last = work;
    else work();
  }

  /** Waiting messages are dropped. */
  clear(): void {
    this.#queue = [];
  }

  async #continue(): Promise<void> {
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) await this.#handled(next);
    this.#isBusy = false;
    this.#source()?.resume();
    this.#last?.();
  }

  #handled(message: Message): Promise<void> | undefined {
    try {
      return this.#handle(message)?.catch(this.#onError);
    } catch (error) {
      this.#onError(error);
      return undefined;
    }
  }
}
