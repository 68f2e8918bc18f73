/** Knows when the next row of a table is due, so that the table is not read until then. */
import type { Clock } from '../../../../core/contract/host-tools.ts';

export interface DueWatchOptions {
  readonly clock: Clock;
  /** Milliseconds until the next row is due; undefined: there is none. */
  readonly nextMs: () => Promise<number | undefined>;
  /** Rows of other processes, and of those that are gone, are found this late at most. */
  readonly longestMs: number;
}

export class DueWatch {
  readonly #options: DueWatchOptions;
  #until = Number.NEGATIVE_INFINITY;
  #changes = 0;

  constructor(options: DueWatchOptions) {
    this.#options = options;
  }

  /** This process may have made a row due. */
  changed(): void {
    this.#changes += 1;
    this.#until = Number.NEGATIVE_INFINITY;
  }

  /** Runs the work if a row is due. Call it every so often; undefined: none was due when it was last asked. */
  look(work: () => Promise<void>): Promise<void> | undefined {
    return this.#options.clock.monotonic() < this.#until ? undefined : this.#ask(work);
  }

  async #ask(work: () => Promise<void>): Promise<void> {
    const { clock, nextMs, longestMs } = this.#options;
    const changes = this.#changes;
    const waitMs = (await nextMs()) ?? longestMs;
    if (waitMs <= 0) return work();
    if (changes === this.#changes) this.#until = clock.monotonic() + Math.min(waitMs, longestMs);
  }
}
