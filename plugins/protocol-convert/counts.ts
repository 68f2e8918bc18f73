/** Counters as a vendor reports them, merged over an answer, and the split of a total into disjoint classes. Pure. */
import { readCount, type Usage, type UsageClass } from '../../core/usage.ts';

/** The vendor's counters by a name of the tap's choice. Cumulative reports replace one another: nothing is ever summed. */
export class Counts {
  readonly #values = new Map<string, number>();
  #reading: Reading | undefined;

  /** Takes a believable count. Absent, null and absurd values change nothing; 0 does not undo a count (placeholders come late). */
  take(name: string, value: unknown): void {
    const count = readCount(value);
    if (count === undefined) return;
    const known = this.#values.get(name);
    if (known === count || (count === 0 && known !== undefined)) return;
    this.#values.set(name, count);
    this.#reading = undefined;
  }

  get(name: string): number | undefined {
    return this.#values.get(name);
  }

  /** What `read` makes of the counters, kept until one of them changes: several plugins ask for each answer's usage. */
  reading(read: (counts: Counts) => Reading): Reading {
    this.#reading ??= read(this);
    return this.#reading;
  }
}

/** What a vendor has reported, by class. */
export interface Reading {
  readonly usage: Usage;
  /** The prompt's side was reported. */
  readonly hasInput: boolean;
  /** The answer's side was reported. */
  readonly hasOutput: boolean;
}

/**
 * Splits a total that includes its parts: each part takes what it says, as long as there is something left, in the order
 * given; `rest` gets the remainder. So the classes add up to the total even where a vendor's parts overlap or exceed it.
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
