/** A bounded queue of rows for the database, written in batches and kept while the database is unavailable. */
import type { Host } from '../../core/contract/contract.ts';
import { Pace } from '../common/kit/pace.ts';

/** Size of one batch; a longer row has a page of its own. */
const pageBytes = 256 * 1024;
/** About the time between two batches under load. */
export const beatMs = 500;
/** Default bound of the queue. */
const usualBytes = 64 * 1024 * 1024;
/** Most UTF-8 bytes of a UTF-16 code unit: https://nodejs.org/api/buffer.html#static-method-bufferbytelengthstring-encoding */
const bytesPerUnit = 3;

interface Page {
  readonly buffer: Buffer;
  used: number;
  rows: number;
  /** Being written; new rows go to another page. */
  sealed: boolean;
}

/**
 * Rows wait as bytes outside the heap: the garbage collector would copy long-lived strings, some into the old generation,
 * which costs more than encoding them.
 */
export class RowQueue {
  /** Takes a JSON array. */
  readonly #write: (rows: string) => Promise<void>;
  readonly #log: Host['log'];
  readonly #pace: Pace;
  readonly #what: string;
  #mostBytes: number;
  #pages: Page[] = [];
  #bytes = 0;
  #spare: Buffer | undefined;
  #dropped = 0;
  #flushing: Promise<void> | undefined;
  /** The newest page that is to be written in one go. */
  #through: Page | undefined;
  #fails = false;

  /** `what` names the rows in the log; at most `mostBytes` of them wait. */
  constructor(
    write: (rows: string) => Promise<void>,
    { clock, log }: Pick<Host, 'clock' | 'log'>,
    what = 'request rows',
    mostBytes = usualBytes,
  ) {
    this.#write = write;
    this.#log = log;
    this.#pace = new Pace({ clock, beatMs, fullBytes: pageBytes });
    this.#what = what;
    this.#mostBytes = mostBytes;
  }

  /** Applies another bound to rows that are pushed from now on. */
  applyConfig(mostBytes: number): void {
    this.#mostBytes = mostBytes;
  }

  /**
   * `row` is a JSON object with members; `story`, also JSON, becomes one more member. When the bound is reached, the oldest
   * rows are dropped and their number is logged.
   */
  push(row: string, story?: string): void {
    const units = row.length + (story?.length ?? 0);
    // Counting bytes costs more than the space it saves, unless the row would get a page of its own.
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

  /** Drops the oldest page that is not being written; false: there is none. */
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

  /** Writes the waiting rows if they are due; undefined: there is nothing to do now. */
  advance(): Promise<void> | undefined {
    const [oldest, next] = this.#pages;
    // A page is full when another was begun. While the database is away, rows wait for the beat.
    const isFull = next !== undefined && !this.#fails;
    return this.#pace.isDue(isFull ? pageBytes : (oldest?.rows ?? 0)) ? this.flush() : undefined;
  }

  /** Writes all waiting rows. Rejects and keeps them if the database rejects. */
  flush(): Promise<void> {
    this.#through = this.#pages.at(-1);
    // A moment later, so that it ends in the turn in which it has found nothing more to do.
    this.#flushing ??= Promise.resolve().then(() => this.#drain());
    return this.#flushing;
  }

  async #drain(): Promise<void> {
    this.#pace.begun();
    try {
      for (let page = this.#pages[0]; page !== undefined; page = page === this.#through ? undefined : this.#pages[0]) {
        page.sealed = true;
        this.#fails = true;
        await this.#write(`[${page.buffer.toString('utf8', 0, page.used)}]`);
        this.#fails = false;
        this.#pages.shift();
        this.#free(page);
      }
    } finally {
      this.#flushing = undefined;
    }
    if (this.#dropped === 0) return;
    this.#log.warn({ rows: this.#dropped }, `${this.#what} were lost: the database was away or too slow for too long`);
    this.#dropped = 0;
  }
}
