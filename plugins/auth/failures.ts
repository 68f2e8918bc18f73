/** Counts failed attempts for each remote network, so that guessing is slow and costs the database next to nothing. */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/contract.ts';

const windowMs = 60_000;
const maxNetworks = 10_000;

interface Tally {
  count: number;
  endsAt: number;
  /** A lookup for this network is under way. */
  looking: boolean;
}

export class Failures {
  /** Failures of one network that are answered as failures; more are told to wait. */
  perMinute: number;
  readonly #clock: Clock;
  readonly #tallies = new LRUCache<string, Tally>({ max: maxNetworks });

  constructor(perMinute: number, clock: Clock) {
    this.perMinute = perMinute;
    this.#clock = clock;
  }

  /** Counts one more. True when it is the one that reaches the limit. */
  note(address: string): boolean {
    const network = networkOf(address);
    const tally = this.#current(network);
    if (tally === undefined) {
      this.#tallies.set(network, { count: 1, endsAt: this.#clock.monotonic() + windowMs, looking: false });
      return this.perMinute === 1;
    }
    tally.count += 1;
    return tally.count === this.perMinute;
  }

  /** Milliseconds until failures are answered as failures again; 0 while the address is below its limit. */
  retryAfterMs(address: string): number {
    const tally = this.#current(networkOf(address));
    if (tally === undefined || tally.count < this.perMinute) return 0;
    return Math.ceil(tally.endsAt - this.#clock.monotonic());
  }

  /**
   * Asks to look up one unknown key. Over the limit one lookup at a time goes on: a valid key that nobody has seen yet
   * still gets in behind a shared proxy, and guesses cannot become a load. undefined: not now; otherwise call it when done.
   */
  beginLookup(address: string): (() => void) | undefined {
    const tally = this.#current(networkOf(address));
    if (tally === undefined || tally.count < this.perMinute) return () => {};
    if (tally.looking) return undefined;
    tally.looking = true;
    return () => {
      tally.looking = false;
    };
  }

  #current(network: string): Tally | undefined {
    const tally = this.#tallies.get(network);
    if (tally === undefined || this.#clock.monotonic() < tally.endsAt) return tally;
    this.#tallies.delete(network);
    return undefined;
  }
}

/** An IPv4 address as it is; of an IPv6 address the first 64 bits, because one customer holds all of the rest. */
export function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address;
  const [head = '', tail] = address.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0');
  return [...left, ...zeros, ...right].slice(0, 4).join(':');
}
