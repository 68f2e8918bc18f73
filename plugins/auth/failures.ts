/** Counts failed attempts per remote network, so that guessing is slow and barely loads the database. */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/contract/host-tools.ts';
import { networkOf } from '../common/kit/network-of.ts';

const windowMs = 60_000;
const maxNetworks = 10_000;

interface Tally {
  count: number;
  endsAt: number;
  /** Whether a lookup for this network is in progress. */
  isLookingUp: boolean;
}

export class Failures {
  /** Failures per network that get their own error; more get 429. */
  perMinute: number;
  readonly #clock: Clock;
  readonly #tallies = new LRUCache<string, Tally>({ max: maxNetworks });

  constructor(perMinute: number, clock: Clock) {
    this.perMinute = perMinute;
    this.#clock = clock;
  }

  /** Counts a failure. True when it reaches the limit. */
  note(address: string): boolean {
    const network = networkOf(address);
    const tally = this.#current(network);
    if (tally === undefined) {
      this.#tallies.set(network, { count: 1, endsAt: this.#clock.monotonic() + windowMs, isLookingUp: false });
      return this.perMinute === 1;
    }
    tally.count += 1;
    return tally.count === this.perMinute;
  }

  /** Milliseconds until the address may fail again without a 429; 0 below the limit. */
  retryAfterMs(address: string): number {
    const tally = this.#current(networkOf(address));
    if (tally === undefined || tally.count < this.perMinute) return 0;
    return Math.ceil(tally.endsAt - this.#clock.monotonic());
  }

  /**
   * Starts a lookup of an unknown key. Over the limit, one lookup runs at a time: a valid new key behind a shared proxy
   * is still admitted, and guesses do not load the database. undefined: not now; otherwise the function that ends the
   * lookup.
   */
  beginLookup(address: string): (() => void) | undefined {
    const tally = this.#current(networkOf(address));
    if (tally === undefined || tally.count < this.perMinute) return () => {};
    if (tally.isLookingUp) return undefined;
    tally.isLookingUp = true;
    return () => {
      tally.isLookingUp = false;
    };
  }

  #current(network: string): Tally | undefined {
    const tally = this.#tallies.get(network);
    if (tally === undefined || this.#clock.monotonic() < tally.endsAt) return tally;
    this.#tallies.delete(network);
    return undefined;
  }
}
