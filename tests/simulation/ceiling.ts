/** What calls have spent and set aside of one ceiling, over all processes, as the oracle knows it. */
import type { EndRecord } from '../../plugins/billing/model/records.ts';
import { costIn } from './memory-records.ts';
import { coverOf } from './tariff.ts';
import type { Trace } from './trace.ts';

/** A call whose money was set aside. */
interface Open {
  readonly trace: Trace;
  /** Within the ceiling; otherwise it came before there was one. */
  readonly isHeld: boolean;
}

/** What a call came to, and what of it no one could know before its end: beyond its hold, or held without a ceiling. */
interface Spent {
  readonly at: number;
  readonly cost: bigint;
  readonly beyond: bigint;
}

export class Ceiling {
  /** Calls of which the ledger has no end. */
  readonly #open = new Set<Open>();
  readonly #ended: Spent[] = [];

  add(trace: Trace, isHeld: boolean): void {
    this.#open.add({ trace, isHeld });
  }

  /**
   * All that is spent since `from` by the wall clock, and set aside at least. The end of a call that a crash cut off is known when the ledger
   * has it. What calls hold counts in any period.
   */
  taken(endOf: (id: string) => EndRecord | undefined, from = 0): { readonly spent: bigint; readonly beyond: bigint } {
    for (const open of this.#open) {
      const end = endOf(open.trace.id);
      // A crash took its hold too, so that it has cost nothing.
      if (end === undefined && open.trace.settled) this.#open.delete(open);
      if (end === undefined) continue;
      this.#open.delete(open);
      this.#ended.push(spentOf(costIn(end), open.isHeld ? BigInt(end.held) : 0n, end.at));
    }
    const all = [...this.#ended];
    for (const { trace, isHeld } of this.#open) {
      const held = isHeld ? firstCover(trace) : 0n;
      if (trace.ended && trace.crash === undefined) all.push(spentOf(trace.expected!, held, trace.endedAtMs!));
      else all.push(spentOf(held, held, Number.POSITIVE_INFINITY));
    }
    let [spent, beyond] = [0n, 0n];
    for (const one of all) {
      if (one.at < from) continue;
      spent += one.cost;
      beyond += one.beyond;
    }
    return { spent, beyond };
  }
}

const spentOf = (cost: bigint, held: bigint, at: number): Spent => ({
  at,
  cost,
  beyond: cost > held ? cost - held : 0n,
});

/** What is set aside for a call at its beginning, at least. */
export function firstCover({ inputTokens, heldOutput, list, ratio }: Trace): bigint {
  return coverOf(inputTokens, heldOutput, list, ratio);
}
