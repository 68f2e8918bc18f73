/** Messages of one direction in order: while one waits, its source is paused and messages that were already read are kept. */
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Message } from './upstream.ts';

interface Source {
  pause(): void;
  resume(): void;
}

export class Lane {
  readonly #handle: (message: Message) => Promise<void> | undefined;
  readonly #source: () => Source | undefined;
  readonly #onError: (error: unknown) => void;
  readonly #keep: (bytes: number) => boolean;
  readonly #queue: Message[] = [];
  #isBusy = false;
  #last: (() => void) | undefined;

  /** `handle`: a promise where the next message has to wait. `keep`: whether so many bytes may wait; negative: they do no more. */
  constructor(
    handle: (message: Message) => Promise<void> | undefined,
    source: () => Source | undefined,
    onError: (error: unknown) => void,
    keep: (bytes: number) => boolean = () => true,
  ) {
    this.#handle = handle;
    this.#source = source;
    this.#onError = onError;
    this.#keep = keep;
  }

  push(message: Message): void {
    if (this.#isBusy) {
      if (this.#kept(message)) this.#queue.push(message);
      return;
    }
    const waiting = this.#handled(message);
    if (waiting === undefined) return;
    this.#isBusy = true;
    this.#source()?.pause();
    const isKept = this.#kept(message);
    void waiting.then(() => {
      if (isKept) this.#keep(-message.data.length);
      return this.#continue();
    });
  }

  /** No more messages come: `work` runs once those that wait have been handled. */
  finish(work: () => void): void {
    if (this.#isBusy) this.#last = work;
    else work();
  }

  /** Waiting messages are dropped. */
  clear(): void {
    for (const { data } of this.#queue.splice(0)) this.#keep(-data.length);
  }

  async #continue(): Promise<void> {
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      await this.#handled(next);
      this.#keep(-next.data.length);
    }
    this.#isBusy = false;
    this.#source()?.resume();
    this.#last?.();
  }

  #kept({ data }: Message): boolean {
    const isKept = this.#keep(data.length);
    if (!isKept) this.#onError(new GatewayError('overloaded', 'Too much of this session waits for the model.'));
    return isKept;
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

/** Until what it is given is called, or for so long. */
export function longestFor(ms: number, begin: (done: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    begin(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
