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

export class Ceiling {
  /** Calls of which the ledger has no end. */
  readonly #open = new Set<Open>();
  /** What others came to, and what of it no one could know before their ends: beyond their holds, or held without a ceiling. */
  #spent = 0n;
  #beyond = 0n;

  add(trace: Trace, isHeld: boolean): void {
    this.#open.add({ trace, isHeld });
  }

  /** All that is spent, and set aside at least. The end of a call that a crash cut off is known when the ledger has it. */
  taken(endOf: (id: string) => EndRecord | undefined): { readonly spent: bigint; readonly beyond: bigint } {
    for (const open of this.#open) {
      const end = endOf(open.trace.id);
      // A crash took its hold too, so that it has cost nothing.
      if (end === undefined && open.trace.settled) this.#open.delete(open);
      if (end === undefined) continue;
      this.#open.delete(open);
      const [cost, held] = [costIn(end), open.isHeld ? BigInt(end.held) : 0n];
      this.#spent += cost;
      if (cost > held) this.#beyond += cost - held;
    }
    let [spent, beyond] = [this.#spent, this.#beyond];
    for (const { trace, isHeld } of this.#open) {
      const held = isHeld ? firstCover(trace) : 0n;
      const cost = trace.ended && trace.crash === undefined ? trace.expected! : held;
      spent += cost;
      if (cost > held) beyond += cost - held;
    }
    return { spent, beyond };
  }
}

/** What is set aside for a call at its beginning, at least. */
export function firstCover({ inputTokens, heldOutput, list, ratio }: Trace): bigint {
  return coverOf(inputTokens, heldOutput, list, ratio);
}
