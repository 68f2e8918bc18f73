/** Limits the wait for the database's answers, so that another connection can be tried. */
import type { Clock } from '../../../core/contract/host-tools.ts';

/**
 * A connection can fail silently. Waiting as long as the pool does would let leases end. So a statement is
 * abandoned after this long, as if its answer were lost, and sent again over another connection.
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

  /** Resolves with the answer, or rejects when there is none in time; a later answer is ignored. */
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

  /** Every few milliseconds: abandons statements that have taken too long. */
  tick(): void {
    const now = this.#clock.monotonic();
    for (const { since, reject } of this.#waiting)
      if (now - since > longestMs) reject(new Error('the database has not answered in time'));
  }
}
