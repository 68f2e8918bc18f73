/** The gateway's side of copying: calls its listeners before a copy is made and once it is durable. */
import type { Log } from '../../../core/contract/host-tools.ts';

/** Called before a copy is made; what it returns is called once that copy is safe. */
export type BeginCopy = () => () => void;

export class Copies {
  readonly #order: () => void;
  readonly #log: Log;
  readonly #listeners = new Set<BeginCopy>();
  #running: { readonly finished: PromiseWithResolvers<void>; readonly done: readonly (() => void)[] } | undefined;

  /** `order` asks the database's process for a copy. */
  constructor(order: () => void, log: Log) {
    this.#order = order;
    this.#log = log;
  }

  onCopy(begin: BeginCopy): void {
    this.#listeners.add(begin);
  }

  /** Makes a copy, or joins in the one that is being made. Rejects when it fails. */
  make(): Promise<void> {
    if (this.#running === undefined) {
      const finished = Promise.withResolvers<void>();
      // It may fail while no caller waits.
      finished.promise.catch(() => undefined);
      this.#running = { finished, done: [...this.#listeners].map((begin) => begin()) };
      this.#order();
    }
    return this.#running.finished.promise;
  }

  /** The copy is safe, or there is none: `failure` says why. */
  end(failure: string | undefined): void {
    const running = this.#running;
    this.#running = undefined;
    if (running === undefined) return;
    if (failure === undefined) {
      for (const done of running.done) done();
      running.finished.resolve();
      return;
    }
    this.#log.warn({ failure }, 'the embedded database could not be copied');
    running.finished.reject(new Error(`The embedded database could not be copied: ${failure}`));
  }
}
