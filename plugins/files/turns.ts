/** Lets a number of works run at once and the others wait in order. */
import { GatewayError } from '../../core/errors.ts';

const longestLine = 10_000;

export class Turns {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(parallel: number) {
    this.#free = parallel;
  }

  /** Resolves with what gives the turn back, to be called once. Throws what `signal` aborts with, and overloaded when the line is too long. */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return () => this.#giveBack();
    }
    if (this.#waiting.length >= longestLine) {
      throw new GatewayError('overloaded', 'Too many files are waiting to be kept.', { retryAfterMs: 10_000 });
    }
    await new Promise<void>((resolve, reject) => {
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(signal.reason);
      };
      const enter = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.push(enter);
    });
    return () => this.#giveBack();
  }

  /** The turn goes to the next in line, or back to the pile. */
  #giveBack(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
