/** Answers that are being made: equal requests wait for one of them, and all of them are bounded in bytes. */
import type { Entry } from './entry.ts';
import type { Bounds } from './stores/store.ts';

/**
 * How it ended. `again`: its client left before anything was known, and another of those that wait makes it. `alone`: the answer is of
 * no use to others, and each makes its own.
 */
export type Landing = { readonly entry: Entry; readonly how: 'hit' | 'similar' } | 'again' | 'alone';

export class Flights {
  readonly #running = new Map<string, Promise<Landing>>();

  /** The running one; undefined: there is none. */
  of(id: string): Promise<Landing> | undefined {
    return this.#running.get(id);
  }

  /** Returns what ends it; only the first call counts. */
  begin(id: string): (landing: Landing) => void {
    const { promise, resolve } = Promise.withResolvers<Landing>();
    this.#running.set(id, promise);
    return (landing) => {
      if (this.#running.get(id) === promise) this.#running.delete(id);
      resolve(landing);
    };
  }
}

/**
 * Waits for one, for at most `ms`: `alone` when that is over. Rejects when the signal aborts, by its reason.
 */
export function waited(flight: Promise<Landing>, ms: number, signal: AbortSignal): Promise<Landing> {
  const { promise, resolve, reject } = Promise.withResolvers<Landing>();
  const abort = () => reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  const timer = setTimeout(resolve, ms, 'alone' as const);
  void flight.then(resolve);
  return promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  });
}

/** Bytes of answers that are on their way to the store: as many as it takes, and of each account no more than its part. */
export class Room {
  readonly #bounds: Bounds;
  readonly #byAccount = new Map<string, number>();
  #bytes = 0;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  /** false: they do not fit. */
  take(accountId: string, bytes: number): boolean {
    const own = (this.#byAccount.get(accountId) ?? 0) + bytes;
    if (this.#bytes + bytes > this.#bounds.bytes || own > this.#bounds.accountBytes) return false;
    this.#bytes += bytes;
    this.#byAccount.set(accountId, own);
    return true;
  }

  give(accountId: string, bytes: number): void {
    const left = (this.#byAccount.get(accountId) ?? 0) - bytes;
    this.#bytes -= bytes;
    if (left > 0) this.#byAccount.set(accountId, left);
    else this.#byAccount.delete(accountId);
  }
}
