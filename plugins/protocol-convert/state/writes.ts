/** Records on their way to the database: bounded, written in batches, found while they wait. */
import type { Log } from '../../../core/contract.ts';
import { type ResponseRecord, sizeOf } from './record.ts';

const batchRecords = 50;
const batchBytes = 4 * 2 ** 20;

export interface WriteQueueOptions {
  readonly write: (records: readonly ResponseRecord[]) => Promise<void>;
  readonly log: Log;
  /** Memory for what waits, at most; beyond it the oldest are lost, and the log says so. */
  readonly maxBytes: number;
}

export class WriteQueue {
  readonly #options: WriteQueueOptions;
  /** In order of arrival. */
  readonly #waiting = new Map<string, ResponseRecord>();
  #bytes = 0;
  #lost = 0;
  #flushing: Promise<void> | undefined;

  constructor(options: WriteQueueOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#waiting.size;
  }

  push(key: string, record: ResponseRecord): void {
    this.remove(key);
    this.#waiting.set(key, record);
    this.#bytes += sizeOf(record);
    for (const oldest of this.#waiting.keys()) {
      if (this.#bytes <= this.#options.maxBytes || this.#waiting.size === 1) return;
      this.remove(oldest);
      this.#lost++;
    }
  }

  find(key: string): ResponseRecord | undefined {
    return this.#waiting.get(key);
  }

  /** Whatever waits, to be looked through. */
  values(): IterableIterator<ResponseRecord> {
    return this.#waiting.values();
  }

  remove(key: string): void {
    const record = this.#waiting.get(key);
    if (record === undefined) return;
    this.#waiting.delete(key);
    this.#bytes -= sizeOf(record);
  }

  /** Writes everything that waits. Rejects when the database does; what was not written goes on waiting. */
  flush(): Promise<void> {
    if (this.#waiting.size === 0 && this.#flushing === undefined) return Promise.resolve();
    this.#flushing ??= this.#drain().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async #drain(): Promise<void> {
    if (this.#lost > 0) {
      const { log } = this.#options;
      log.error({ responses: this.#lost }, 'kept responses were lost: the database was away or too slow for too long');
      this.#lost = 0;
    }
    while (this.#waiting.size > 0) {
      const batch = this.#batch();
      await this.#options.write(batch.map(([, record]) => record));
      for (const [key, record] of batch) if (this.#waiting.get(key) === record) this.remove(key);
    }
  }

  #batch(): [string, ResponseRecord][] {
    const batch: [string, ResponseRecord][] = [];
    let bytes = 0;
    for (const entry of this.#waiting) {
      bytes += sizeOf(entry[1]);
      if (batch.length > 0 && bytes > batchBytes) break;
      batch.push(entry);
      if (batch.length === batchRecords) break;
    }
    return batch;
  }
}
