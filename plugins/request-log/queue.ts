/** Rows on their way to the database: bounded, written in batches, kept while the database is away. */
import type { Log } from '../../core/contract.ts';

const maxRows = 50_000;
const batchRows = 500;

export class RowQueue {
  static readonly flushIntervalMs = 500;
  /** Takes a JSON array. */
  readonly #write: (rows: string) => Promise<void>;
  readonly #log: Log;
  #rows: string[] = [];
  #dropped = 0;
  #flushing: Promise<void> | undefined;

  constructor(write: (rows: string) => Promise<void>, log: Log) {
    this.#write = write;
    this.#log = log;
  }

  /** `row` is JSON. Keeps the newest rows when the database has been away for too long; how many were lost is logged. */
  push(row: string): void {
    if (this.#rows.length >= maxRows) {
      this.#rows.splice(0, batchRows);
      this.#dropped += batchRows;
    }
    this.#rows.push(row);
  }

  /** Writes everything that waits. Rejects, and keeps the rows, when the database does. */
  flush(): Promise<void> {
    this.#flushing ??= this.#drain().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async #drain(): Promise<void> {
    while (this.#rows.length > 0) {
      const batch = this.#rows.splice(0, batchRows);
      try {
        await this.#write(`[${batch.join(',')}]`);
      } catch (error) {
        this.#rows = batch.concat(this.#rows);
        throw error;
      }
    }
    if (this.#dropped === 0) return;
    this.#log.warn({ rows: this.#dropped }, 'request rows were lost: the database was away or too slow for too long');
    this.#dropped = 0;
  }
}
