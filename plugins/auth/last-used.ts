/** Remembers when keys were used and writes it in batches: an admission never waits for it. */
import type { Store } from './store.ts';

/** Uses that are kept until the next batch; beyond it a use goes unrecorded rather than unbounded. */
const maxPending = 20_000;

export class LastUsed {
  readonly #store: Store;
  #pending = new Map<string, number>();

  constructor(store: Store) {
    this.#store = store;
  }

  note(keyId: string, atMs: number): void {
    if (this.#pending.size < maxPending || this.#pending.has(keyId)) this.#pending.set(keyId, atMs);
  }

  /** Writes what is pending. When the database fails, it stays pending for the next time and the error is the caller's. */
  async flush(): Promise<void> {
    if (this.#pending.size === 0) return;
    const uses = this.#pending;
    this.#pending = new Map();
    try {
      await this.#store.touchKeys([...uses]);
    } catch (error) {
      for (const [keyId, atMs] of uses) if (!this.#pending.has(keyId)) this.note(keyId, atMs);
      throw error;
    }
  }
}
