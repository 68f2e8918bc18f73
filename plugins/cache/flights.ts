/** Answers that are being made: equal requests wait for one of them. */
import type { Entry } from './entry.ts';

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
