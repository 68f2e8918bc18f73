/** Rows on their way to the database: bounded, written in batches, kept while the database is away. */
import type { Log } from '../../core/contract.ts';

/** One batch; a single longer row has a page of its own. */
const pageBytes = 256 * 1024;
/** What a process keeps while its database is away, unless said otherwise. */
const usualBytes = 64 * 1024 * 1024;
/** A code unit has at most so many bytes in UTF-8: https://nodejs.org/api/buffer.html#static-method-bufferbytelengthstring-encoding */
const bytesPerUnit = 3;

interface Page {
  readonly buffer: Buffer;
  used: number;
  rows: number;
  /** What comes now stands in another page. */
  sealed: boolean;
}

/**
 * Rows wait as bytes, outside the heap: strings that live until the database has answered are moved by the collector, some
 * into the old generation, and that costs more than writing them.
 */
export class RowQueue {
  static readonly flushIntervalMs = 500;
  /** Takes a JSON array. */
  readonly #write: (rows: string) => Promise<void>;
  readonly #log: Log;
  readonly #what: string;
  #mostBytes: number;
  #pages: Page[] = [];
  #bytes = 0;
  #spare: Buffer | undefined;
  #dropped = 0;
  #flushing: Promise<void> | undefined;

  /** `what` names the rows in the log; at most `mostBytes` of them wait. */
  constructor(write: (rows: string) => Promise<void>, log: Log, what = 'request rows', mostBytes = usualBytes) {
    this.#write = write;
    this.#log = log;
    this.#what = what;
    this.#mostBytes = mostBytes;
  }

  /** Another bound for rows that come from now on. */
  follow(mostBytes: number): void {
    this.#mostBytes = mostBytes;
  }

  /**
   * `row` is a JSON object with members; `story`, JSON too, becomes one more. Keeps the newest rows when the database has
   * been away for too long; how many were lost is logged.
   */
  push(row: string, story?: string): void {
    const units = row.length + (story?.length ?? 0);
    // Counting takes longer than room costs, until a row would get a page of its own.
    const isShort = units * bytesPerUnit + 16 <= pageBytes;
    const length = isShort ? units * bytesPerUnit : Buffer.byteLength(row) + Buffer.byteLength(story ?? '');
    const page = this.#pageFor(length + 16);
    const { buffer } = page;
    let at = page.used;
    if (page.rows > 0) buffer[at++] = 0x2c;
    at += buffer.write(row, at);
    if (story !== undefined) {
      at += buffer.write(',"story":', at - 1) - 1;
      at += buffer.write(story, at);
      buffer[at++] = 0x7d;
    }
    page.used = at;
    page.rows += 1;
  }

  #pageFor(length: number): Page {
    const tail = this.#pages.at(-1);
    if (tail !== undefined && !tail.sealed && tail.used + length <= tail.buffer.length) return tail;
    while (this.#bytes + Math.max(length, pageBytes) > this.#mostBytes && this.#dropOldest());
    const spare = length <= pageBytes ? this.#spare : undefined;
    if (spare !== undefined) this.#spare = undefined;
    const buffer = spare ?? Buffer.allocUnsafeSlow(Math.max(length, pageBytes));
    const page = { buffer, used: 0, rows: 0, sealed: false };
    this.#pages.push(page);
    this.#bytes += buffer.length;
    return page;
  }

  /** The oldest that is not on its way to the database; false: there is none. */
  #dropOldest(): boolean {
    const [page] = this.#pages.splice(this.#flushing === undefined ? 0 : 1, 1);
    if (page === undefined) return false;
    this.#dropped += page.rows;
    this.#free(page);
    return true;
  }

  #free({ buffer }: Page): void {
    this.#bytes -= buffer.length;
    if (buffer.length === pageBytes) this.#spare = buffer;
  }

  /** Writes everything that waits. Rejects, and keeps the rows, when the database does. */
  flush(): Promise<void> {
    this.#flushing ??= this.#drain().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async #drain(): Promise<void> {
    for (let page = this.#pages[0]; page !== undefined; page = this.#pages[0]) {
      page.sealed = true;
      await this.#write(`[${page.buffer.toString('utf8', 0, page.used)}]`);
      this.#pages.shift();
      this.#free(page);
    }
    if (this.#dropped === 0) return;
    this.#log.warn({ rows: this.#dropped }, `${this.#what} were lost: the database was away or too slow for too long`);
    this.#dropped = 0;
  }
}
