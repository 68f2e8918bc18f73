/** Slows guessing down: counts attempts by address and by account in fixed windows, bounded, in memory. */
import type { Clock } from '../../../core/contract/host-tools.ts';

interface Window {
  count: number;
  readonly endsAt: number;
}

/** Windows of one kind, open ones and locked ones each. */
const mostWindows = 20_000;

/** Windows of one kind, oldest first. What waits is kept apart: many single attempts of others must not end a wait. */
interface Windows {
  readonly open: Map<string, Window>;
  readonly locked: Map<string, Window>;
}

export class Throttle {
  readonly #clock: Clock;
  /** By what a key begins with: the attempts of one kind leave those of the others alone. */
  readonly #kinds = new Map<string, Windows>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Windows that are kept. */
  get size(): number {
    return [...this.#kinds.values()].reduce((sum, { open, locked }) => sum + open.size + locked.size, 0);
  }

  /** Counts one attempt; resolves with how long to wait, 0: not at all. `key`: its kind, a colon, and who it is. */
  take(key: string, most: number, windowMs: number): number {
    const now = this.#clock.monotonic();
    const { open, locked } = this.#windowsOf(key);
    const waiting = locked.get(key);
    if (waiting !== undefined && now < waiting.endsAt) return waiting.endsAt - now;
    locked.delete(key);
    let window = open.get(key);
    if (window === undefined || now >= window.endsAt) {
      open.delete(key);
      makeRoom(open, now);
      window = { count: 0, endsAt: now + windowMs };
      open.set(key, window);
    }
    window.count++;
    if (window.count < most) return 0;
    open.delete(key);
    makeRoom(locked, now);
    locked.set(key, window);
    return 0;
  }

  /** How long to wait, 0: not at all; counts nothing. */
  waiting(key: string): number {
    const locked = this.#windowsOf(key).locked.get(key);
    return locked === undefined ? 0 : Math.max(0, locked.endsAt - this.#clock.monotonic());
  }

  /** An attempt that was right is forgotten with those before it. */
  forget(key: string): void {
    const { open, locked } = this.#windowsOf(key);
    open.delete(key);
    locked.delete(key);
  }

  #windowsOf(key: string): Windows {
    const kind = key.slice(0, key.indexOf(':') + 1);
    let windows = this.#kinds.get(kind);
    if (windows === undefined) {
      windows = { open: new Map(), locked: new Map() };
      this.#kinds.set(kind, windows);
    }
    return windows;
  }
}

function makeRoom(windows: Map<string, Window>, now: number): void {
  if (windows.size < mostWindows) return;
  for (const [key, { endsAt }] of windows) {
    if (now < endsAt && windows.size < mostWindows) break;
    windows.delete(key);
  }
}
