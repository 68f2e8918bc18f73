/** Slows guessing down: counts attempts by address and by account in fixed windows, bounded, in memory. */
import type { Clock } from '../../../core/contract/host-tools.ts';

interface Window {
  count: number;
  readonly endsAt: number;
}

const mostWindows = 20_000;

export class Throttle {
  readonly #clock: Clock;
  /** Oldest first. */
  readonly #windows = new Map<string, Window>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Windows that are kept. */
  get size(): number {
    return this.#windows.size;
  }

  /** Counts one attempt; resolves with how long to wait, 0: not at all. */
  take(key: string, most: number, windowMs: number): number {
    const now = this.#clock.monotonic();
    const window = this.#windows.get(key);
    if (window === undefined || now >= window.endsAt) {
      this.#windows.delete(key);
      this.#makeRoom(now);
      this.#windows.set(key, { count: 1, endsAt: now + windowMs });
      return 0;
    }
    if (window.count >= most) return window.endsAt - now;
    window.count++;
    return 0;
  }

  /** An attempt that was right is forgotten with those before it. */
  forget(key: string): void {
    this.#windows.delete(key);
  }

  #makeRoom(now: number): void {
    if (this.#windows.size < mostWindows) return;
    for (const [key, { endsAt }] of this.#windows) {
      if (now < endsAt && this.#windows.size < mostWindows) break;
      this.#windows.delete(key);
    }
  }
}
