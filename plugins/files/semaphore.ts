/** A first-come, first-served semaphore with a bounded queue. */
import { GatewayError } from '../../core/contract/errors.ts';

const maxWaiting = 10_000;

export class Semaphore {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(parallel: number) {
    this.#free = parallel;
  }

  /**
   * Resolves with the function that releases the permit, to be called once. Throws the reason of `signal` on an abort,
   * and overloaded if the queue is full.
   */
  async acquire(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return () => this.#release();
    }
    if (this.#waiting.length >= maxWaiting) {
      throw new GatewayError('overloaded', 'Too many files are waiting to be kept.', { retryAfterMs: 10_000 });
    }
    await new Promise<void>((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.splice(this.#waiting.indexOf(grant), 1);
        reject(signal.reason);
      };
      const grant = () => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.push(grant);
    });
    return () => this.#release();
  }

  /** Hands the permit to the next waiter, if there is one. */
  #release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
