/** Waits for the database's answers, and no longer than it takes until another connection should be tried. */
import type { Clock } from '../../core/contract.ts';

/**
 * A connection can be dead without anybody saying so. Whoever waited as long as the pool does would let leases end. So a
 * statement is given up after this long, as one whose answer was lost, and sent again by another connection.
 */
const longestMs = 10_000;

interface Waiting {
  readonly since: number;
  readonly reject: (error: Error) => void;
}

export class Answers {
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiting>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The answer, or an error when there is none in time; what comes later is heard by nobody. */
  async await<T>(answer: Promise<T>): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>();
    const waiting = { since: this.#clock.monotonic(), reject };
    this.#waiting.add(waiting);
    try {
      return await Promise.race([answer, promise]);
    } finally {
      this.#waiting.delete(waiting);
    }
  }

  /** Every few milliseconds: gives up what has taken too long. */
  tick(): void {
    const now = this.#clock.monotonic();
    for (const { since, reject } of this.#waiting)
      if (now - since > longestMs) reject(new Error('the database has not answered in time'));
  }
}
