/** Uses shared counters while they respond, and this process's share of each limit while they do not. */
import type { Clock } from '../../core/contract/host-tools.ts';
import type { Demand, Limiter, Verdict } from './limiter.ts';
import type { MemoryLimiter } from './memory.ts';

/** Failures in a row that open the circuit breaker. */
const failuresToOpen = 3;
const openMs = 1_000;

export interface SharedLimiterOptions {
  readonly counted: Limiter;
  readonly memory: MemoryLimiter;
  /** Number of processes that share the limits, as far as known; at least 1. */
  readonly processes: () => number;
  readonly clock: Clock;
}

/**
 * A circuit breaker: after three failures in a row, requests skip the counters for a second, then one request tries
 * them. A grant is returned to the engine that issued it; each verdict names its engine.
 */
export class SharedLimiter {
  readonly #options: SharedLimiterOptions;
  #failures = 0;
  #retryAt = Number.NEGATIVE_INFINITY;

  constructor(options: SharedLimiterOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#failures >= failuresToOpen;
  }

  async take(id: string, demands: readonly Demand[]): Promise<Verdict> {
    if (!this.#shouldTry()) return this.#takeShare(id, demands);
    try {
      const verdict = await this.#options.counted.take(id, demands);
      this.#succeeded();
      return { ...verdict, by: this.#resilient };
    } catch {
      this.#failed();
      return this.#takeShare(id, demands);
    }
  }

  /** While the breaker is open, one request per second tries the counters. */
  #shouldTry(): boolean {
    if (!this.isOpen) return true;
    const now = this.#options.clock.monotonic();
    if (now < this.#retryAt) return false;
    this.#retryAt = now + openMs;
    return true;
  }

  #takeShare(id: string, demands: readonly Demand[]): Verdict {
    const { memory, processes } = this.#options;
    const sharers = processes();
    const share = demands.map((demand) => ({ ...demand, limit: shareOf(demand.limit, sharers) }));
    const verdict = memory.take(id, share);
    const { refusedBy } = verdict;
    // Errors name the full limit, not this process's share.
    return refusedBy === undefined ? verdict : { ...verdict, refusedBy: demands[share.indexOf(refusedBy)] };
  }

  /** Releases are dropped while the counters are unavailable: slots expire there by themselves. */
  readonly #resilient: Limiter = {
    take: (id, demands) => this.take(id, demands),
    giveBack: (id, returned) => this.#giveBack((counted) => counted.giveBack(id, returned)),
  };

  async #giveBack(work: (counted: Limiter) => void | Promise<void>): Promise<void> {
    if (this.isOpen) return;
    try {
      await work(this.#options.counted);
      this.#succeeded();
    } catch {
      this.#failed();
    }
  }

  #succeeded(): void {
    this.#failures = 0;
  }

  /** The counters log by themselves that they do not answer. */
  #failed(): void {
    this.#failures += 1;
    if (this.isOpen) this.#retryAt = this.#options.clock.monotonic() + openMs;
  }
}

/** Rounded up, so that every process can use part of a small limit. */
function shareOf(limit: number, sharers: number): number {
  return limit <= 0 ? limit : Math.max(1, Math.ceil(limit / sharers));
}
