/** Whether a second attempt may run beside the first: for which requests, after how long, and for how many of all. */
import type { Clock, Exchange } from '../../core/contract.ts';
import { call, conversation, type Model, pinned } from '../../core/vocabulary.ts';
import type { RouteConfig } from './config.ts';

const slotMs = 30_000;
/** Five minutes. */
const slots = 10;

/** Counts the requests and the hedges of the last minutes. */
export class HedgeBudget {
  readonly #clock: Clock;
  readonly #requests = new Uint32Array(slots);
  readonly #hedges = new Uint32Array(slots);
  #slot = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A request that could be hedged has come. */
  note(): void {
    this.#requests[this.#turn()]! += 1;
  }

  /** false: one more would be above this share of the requests. */
  take(share: number): boolean {
    const index = this.#turn();
    if (sumOf(this.#hedges) + 1 > share * sumOf(this.#requests)) return false;
    this.#hedges[index]! += 1;
    return true;
  }

  /** Index of the running slot; those in between are emptied. */
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
 * After how many milliseconds of silence another target is asked beside the one that was; undefined: never. Twice may be asked
 * only what runs inference and leaves nothing behind but its answer.
 */
export function hedgeAfter(exchange: Exchange, wanted: Model, { hedge }: RouteConfig): number | undefined {
  const afterMs = wanted.hedgeAfterMs ?? hedge.after;
  if (afterMs === 0 || wanted.kind !== 'chat') return undefined;
  const { billable, kind = 'chat' } = exchange.get(call);
  if (!billable || kind !== 'chat' || exchange.find(pinned) !== undefined) return undefined;
  // Both send the body that is held.
  const { body, bodyBytes } = exchange.request;
  if (body.length !== bodyBytes) return undefined;
  return exchange.find(conversation)?.leavesTraces?.() === false ? afterMs : undefined;
}
