/** Journal retention: segments are kept until a copy of the database contains them. */

/** The last sequence number that the database has applied, and the oldest record that is still needed. */
export interface Bounds {
  readonly applied: number;
  readonly oldest: number;
}

/**
 * A database in this machine's own directory is copied at intervals, and a start restores the copy when the
 * directory is damaged. So the journal must still have what the last copy lacks. Without copies (a PostgreSQL
 * server) applied records are no longer needed.
 */
export class Retention {
  readonly #now: () => Bounds;
  #copied: Bounds | undefined;

  /** `now` returns the current bounds. */
  constructor(now: () => Bounds) {
    this.#now = now;
  }

  /** Copies will be made: no segment is released before the first. */
  awaitCopies(): void {
    this.#copied ??= { applied: 0, oldest: 0 };
  }

  /** A copy begins: it contains everything applied by now. Call the returned function when the copy is durable. */
  beginCopy(): () => void {
    const bounds = this.#now();
    return () => {
      this.#copied = bounds;
    };
  }

  /** The segments that may be released. `pressed`: space runs short and the database itself is durable too. */
  bounds(pressed: boolean): Bounds {
    const now = this.#now();
    if (this.#copied === undefined || pressed) return now;
    return {
      applied: Math.min(now.applied, this.#copied.applied),
      oldest: Math.min(now.oldest, this.#copied.oldest),
    };
  }
}
