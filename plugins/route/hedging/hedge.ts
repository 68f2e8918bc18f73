/** The hedging policy: which requests may have a second attempt, after how long, and for what share of requests. */

import type { Exchange } from '../../../core/contract/contract.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import { call } from '../../common/domain/calls.ts';
import type { Model } from '../../common/domain/models.ts';
import { isPure } from '../ambiguity.ts';
import type { RouteConfig } from '../config.ts';

const slotMs = 30_000;
/** Five minutes. */
const slots = 10;

/** Counts the requests and hedges of the last five minutes. */
export class HedgeBudget {
  readonly #clock: Clock;
  readonly #requests = new Uint32Array(slots);
  readonly #hedges = new Uint32Array(slots);
  #slot = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a request that could be hedged. */
  note(): void {
    this.#requests[this.#turn()]! += 1;
  }

  /** false: one more would exceed this share of the requests. */
  take(share: number): boolean {
    const index = this.#turn();
    if (sumOf(this.#hedges) + 1 > share * sumOf(this.#requests)) return false;
    this.#hedges[index]! += 1;
    return true;
  }

  /** Index of the current slot; clears the slots that have passed. */
  #turn(): number {
    const slot = Math.floor(this.#clock.monotonic() / slotMs);
    const gone = Math.min(slot - this.#slot, slots);
    for (let back = 0; back < gone; back += 1) {
      this.#requests[(slot - back) % slots] = 0;
      this.#hedges[(slot - back) % slots] = 0;
    }
    this.#slot = slot;
    return slot % slots;
  }
}

function sumOf(counts: Uint32Array): number {
  let sum = 0;
  for (const count of counts) sum += count;
  return sum;
}

/**
 * Milliseconds of silence after which a second attempt starts; undefined: never. Only requests that run inference and have no
 * side effects may be sent twice.
 */
export function hedgeAfter(exchange: Exchange, wanted: Model, { hedge }: RouteConfig): number | undefined {
  const afterMs = wanted.hedgeAfterMs ?? hedge.after;
  if (afterMs === 0 || wanted.kind !== 'chat') return undefined;
  const { billable, kind = 'chat' } = exchange.get(call);
  return billable && kind === 'chat' && isPure(exchange) ? afterMs : undefined;
}
