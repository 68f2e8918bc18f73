/** When a batch is written: soon after a quiet time, at a steady beat under load, or as soon as it is full. */
import type { Clock } from '../../../core/contract/host-tools.ts';

/** How often `isDue` is asked, so that work after a quiet time waits no longer. */
export const lookMs = 50;

export interface PaceOptions {
  readonly clock: Clock;
  /** About the time between two batches. */
  readonly beatMs: number;
  /** More than this does not fit in one batch. */
  readonly fullBytes: number;
}

/**
 * Most of what a batch costs does not depend on its size, so at a steady load few large ones cost a fraction of many small
 * ones. Asking costs nothing while nothing waits.
 */
export class Pace {
  readonly #options: PaceOptions;
  #begunAt = Number.NEGATIVE_INFINITY;

  constructor(options: PaceOptions) {
    this.#options = options;
  }

  /** Whether what waits is to be written now. */
  isDue(bytes: number): boolean {
    const { clock, beatMs, fullBytes } = this.#options;
    if (bytes === 0) return false;
    // A look that comes a moment early must not put the batch off to the next one.
    return bytes >= fullBytes || clock.monotonic() - this.#begunAt >= beatMs - lookMs / 2;
  }

  /** A batch begins, due or asked for. */
  begun(): void {
    this.#begunAt = this.#options.clock.monotonic();
  }
}
