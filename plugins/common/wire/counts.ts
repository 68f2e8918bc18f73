/** Counters as a vendor reports them, merged over an answer, and the split of a total into disjoint classes. Pure. */
import { readCount, type Usage, type UsageClass } from '../domain/usage.ts';

/**
 * The vendor's counters by a name that the usage meter chooses. Cumulative reports replace one another: nothing is
 * summed.
 */
export class Counts {
  /** Made by the first: most of a stream's time there is none. */
  #values: Map<string, number> | undefined;
  #reading: Reading | undefined;

  /**
   * Accepts a plausible count. Absent, null and absurd values change nothing; 0 does not reset a count (some
   * placeholders arrive late).
   */
  take(name: string, value: unknown): void {
    const count = readCount(value);
    if (count === undefined) return;
    const known = this.#values?.get(name);
    if (known === count || (count === 0 && known !== undefined)) return;
    this.#values ??= new Map();
    this.#values.set(name, count);
    this.#reading = undefined;
  }

  /** What the last report alone says: 0 replaces a count too. */
  set(name: string, value: unknown): void {
    const count = readCount(value);
    if (count === undefined || this.#values?.get(name) === count) return;
    this.#values ??= new Map();
    this.#values.set(name, count);
    this.#reading = undefined;
  }

  /** How many counters were reported. */
  get size(): number {
    return this.#values?.size ?? 0;
  }

  get(name: string): number | undefined {
    return this.#values?.get(name);
  }

  /** Caches the result of `read`, which is given `means`, until a counter changes: several plugins ask for the usage of each answer. */
  reading<Means>(read: (counts: Counts, means: Means | undefined) => Reading, means?: Means): Reading {
    this.#reading ??= read(this, means);
    return this.#reading;
  }
}

/** Reported counts by class. */
export interface Reading {
  readonly usage: Usage;
  /** The input side was reported. */
  readonly hasInput: boolean;
  /** The output side was reported. */
  readonly hasOutput: boolean;
  /** The counters contradict one another, and the total alone does not decide between the readings. */
  readonly isUncertain?: boolean;
}

/**
 * Splits a total that includes its parts: each part takes its count while something is left, in the given order;
 * `rest` gets the remainder. So the classes add up to the total even where a vendor's parts overlap or exceed it.
 * Parts that were not reported (undefined) are left out.
 */
export function split(
  total: number,
  rest: UsageClass,
  parts: readonly (readonly [UsageClass, number | undefined])[],
): Usage {
  const usage: { [K in UsageClass]?: number } = {};
  let left = total;
  for (const [name, count] of parts) {
    if (count === undefined) continue;
    const taken = Math.min(count, left);
    usage[name] = (usage[name] ?? 0) + taken;
    left -= taken;
  }
  usage[rest] = (usage[rest] ?? 0) + left;
  return usage;
}
