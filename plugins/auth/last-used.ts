/** Records when keys were used, and writes it in batches, outside of requests. */
import type { Store } from './store.ts';

/** Limit of pending uses; further keys are not recorded until the next batch. */
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

  /** Writes pending uses; undefined: there are none. If the database fails, they stay pending and the error is thrown. */
  flush(): Promise<void> | undefined {
    return this.#pending.size === 0 ? undefined : this.#write();
  }

  async #write(): Promise<void> {
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
