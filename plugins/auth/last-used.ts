/** Records when keys were used, and writes it in batches, outside of requests. */
import type { NotedDigest } from './rotation/digests.ts';
import type { Store } from './store.ts';

/** Limit of pending uses; further keys are not recorded until the next batch. */
const maxPending = 20_000;

export class LastUsed {
  readonly #store: Store;
  #pending = new Map<string, number>();

  /** Digests of keys by the first secret, by key. */
  #digests = new Map<string, NotedDigest>();

  constructor(store: Store) {
    this.#store = store;
  }

  note(keyId: string, atMs: number): void {
    if (this.#pending.size < maxPending || this.#pending.has(keyId)) this.#pending.set(keyId, atMs);
  }

  noteDigest(keyId: string, digest: NotedDigest): void {
    if (this.#digests.size < maxPending) this.#digests.set(keyId, digest);
  }

  /** Writes the pending times; undefined: there are none. If the database fails, they stay pending and the error is thrown. */
  flush(): Promise<void> | undefined {
    return this.#pending.size === 0 && this.#digests.size === 0 ? undefined : this.#write();
  }

  async #write(): Promise<void> {
    if (this.#digests.size > 0) {
      const digests = [...this.#digests];
      await this.#store.addDigests(digests);
      for (const [keyId] of digests) this.#digests.delete(keyId);
    }
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
