/** Pending database writes: bounded, written in batches, readable while they wait. */
import type { Log } from '../../../core/contract/host-tools.ts';

const batchRecords = 50;
const batchBytes = 4 * 2 ** 20;

export interface WriteQueueOptions<Item> {
  readonly write: (records: readonly Item[]) => Promise<void>;
  /** The maximum memory of one record. */
  readonly sizeOf: (record: Item) => number;
  /** The records' name in the log. */
  readonly what: string;
  readonly log: Log;
  /** The maximum memory of pending records; beyond it the oldest are dropped and the log says so. */
  readonly maxBytes: number;
}

export class WriteQueue<Item> {
  readonly #options: WriteQueueOptions<Item>;
  /** In order of arrival. */
  readonly #waiting = new Map<string, Item>();
  #bytes = 0;
  #droppedCount = 0;
  #flushing: Promise<void> | undefined;

  constructor(options: WriteQueueOptions<Item>) {
    this.#options = options;
  }

  get size(): number {
    return this.#waiting.size;
  }

  push(key: string, record: Item): void {
    this.remove(key);
    this.#waiting.set(key, record);
    this.#bytes += this.#options.sizeOf(record);
    for (const oldest of this.#waiting.keys()) {
      if (this.#bytes <= this.#options.maxBytes || this.#waiting.size === 1) return;
      this.remove(oldest);
      this.#droppedCount++;
    }
  }

  find(key: string): Item | undefined {
    return this.#waiting.get(key);
  }

  /** All pending records, to search them. */
  values(): IterableIterator<Item> {
    return this.#waiting.values();
  }

  remove(key: string): void {
    const record = this.#waiting.get(key);
    if (record === undefined) return;
    this.#waiting.delete(key);
    this.#bytes -= this.#options.sizeOf(record);
  }

  /** Whether `flush` has something to do. */
  get waits(): boolean {
    return this.#waiting.size > 0 || this.#flushing !== undefined;
  }

  /** Writes all pending records. Rejects when the database fails; unwritten records stay pending. */
  flush(): Promise<void> {
    if (!this.waits) return Promise.resolve();
    this.#flushing ??= this.#drain().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async #drain(): Promise<void> {
    if (this.#droppedCount > 0) {
      const { log } = this.#options;
      log.error(
        { lost: this.#droppedCount },
        `${this.#options.what} were dropped: the database was unavailable or too slow for too long`,
      );
      this.#droppedCount = 0;
    }
    while (this.#waiting.size > 0) {
      const batch = this.#batch();
      await this.#options.write(batch.map(([, record]) => record));
      for (const [key, record] of batch) if (this.#waiting.get(key) === record) this.remove(key);
    }
  }

  #batch(): [string, Item][] {
    const batch: [string, Item][] = [];
    let bytes = 0;
    for (const entry of this.#waiting) {
      bytes += this.#options.sizeOf(entry[1]);
      if (batch.length > 0 && bytes > batchBytes) break;
      batch.push(entry);
      if (batch.length === batchRecords) break;
    }
    return batch;
  }
}
