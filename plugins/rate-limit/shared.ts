/** Shared counters while they answer, and this process's share of each limit while they do not. */
import type { Clock, Log } from '../../core/contract.ts';
import type { Demand, Limiter, Verdict } from './limiter.ts';
import type { MemoryLimiter } from './memory.ts';

/** So many failures in a row, and the counters are left alone for a while. */
const failuresToOpen = 3;
const restMs = 1_000;

export interface SharedParts {
  readonly counted: Limiter;
  readonly memory: MemoryLimiter;
  /** How many processes share the limits, as far as is known; at least 1. */
  readonly processes: () => number;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * A breaker: after three failures in a row nobody waits for the counters for a second, then one request tries them. What one
 * engine has granted, that engine gets back: each verdict says which it was.
 */
export class SharedLimiter {
  readonly #parts: SharedParts;
  #failures = 0;
  #closedAgainAt = Number.NEGATIVE_INFINITY;

  constructor(parts: SharedParts) {
    this.#parts = parts;
  }

  get isOpen(): boolean {
    return this.#failures >= failuresToOpen;
  }

  async take(id: string, demands: readonly Demand[]): Promise<Verdict> {
    if (!this.#mayAsk()) return this.#takeShare(id, demands);
    try {
      const verdict = await this.#parts.counted.take(id, demands);
      this.#succeeded();
      return { ...verdict, by: this.#quiet };
    } catch (error) {
      this.#failed(error);
      return this.#takeShare(id, demands);
    }
  }

  /** While the counters rest, one request a second asks them all the same. */
  #mayAsk(): boolean {
    if (!this.isOpen) return true;
    const now = this.#parts.clock.monotonic();
    if (now < this.#closedAgainAt) return false;
    this.#closedAgainAt = now + restMs;
    return true;
  }

  #takeShare(id: string, demands: readonly Demand[]): Verdict {
    const { memory, processes } = this.#parts;
    const sharers = processes();
    const share = demands.map((demand) => ({ ...demand, limit: shareOf(demand.limit, sharers) }));
    const verdict = memory.take(id, share);
    const { refusedBy } = verdict;
    // Whoever is refused is told the limit as it was sold.
    return refusedBy === undefined ? verdict : { ...verdict, refusedBy: demands[share.indexOf(refusedBy)] };
  }

  /** What is given back to counters that are away lapses there by itself. */
  readonly #quiet: Limiter = {
    take: (id, demands) => this.take(id, demands),
    adjust: (demand, receipt, usedUnits) => this.#back((counted) => counted.adjust(demand, receipt, usedUnits)),
    release: (id, demand) => this.#back((counted) => counted.release(id, demand)),
  };

  async #back(work: (counted: Limiter) => void | Promise<void>): Promise<void> {
    if (this.isOpen) return;
    try {
      await work(this.#parts.counted);
      this.#succeeded();
    } catch (error) {
      this.#failed(error);
    }
  }

  #succeeded(): void {
    if (this.isOpen) this.#parts.log.info({}, 'rates are counted together again');
    this.#failures = 0;
  }

  #failed(error: unknown): void {
    const wasOpen = this.isOpen;
    this.#failures += 1;
    if (!this.isOpen) return;
    this.#closedAgainAt = this.#parts.clock.monotonic() + restMs;
    if (!wasOpen)
      this.#parts.log.warn({ error }, 'shared counters are away: this process counts its share of the limits');
  }
}

/** Rounded up: a small limit leaves each process something. */
export function shareOf(limit: number, sharers: number): number {
  return limit <= 0 ? limit : Math.max(1, Math.ceil(limit / sharers));
}
