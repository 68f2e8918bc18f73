/** How long the journal is kept: until the database that has applied it is on disk in a copy of its own. */

/** Up to where the database has applied the journal, and the oldest record that is needed all the same. */
export interface Bounds {
  readonly applied: number;
  readonly oldest: number;
}

/**
 * A database in this machine's own directory is copied now and then, and the copy is what a start goes back to when the
 * directory is damaged. So what the last copy lacks must still be in the journal. Without copies (a Postgres server) what
 * is applied is done with.
 */
export class Retention {
  readonly #now: () => Bounds;
  #copied: Bounds | undefined;

  /** `now` tells the bounds of this moment. */
  constructor(now: () => Bounds) {
    this.#now = now;
  }

  /** From now on copies are made: nothing is let go before the first. */
  awaitCopies(): void {
    this.#copied ??= { applied: 0, oldest: 0 };
  }

  /** A copy is begun: whatever is applied now will be in it. Call what it returns when the copy is safe. */
  beginCopy(): () => void {
    const bounds = this.#now();
    return () => {
      this.#copied = bounds;
    };
  }

  /** What may be let go. `pressed`: space runs short, and the database itself is safe on disk too. */
  bounds(pressed: boolean): Bounds {
    const now = this.#now();
    if (this.#copied === undefined || pressed) return now;
    return {
      applied: Math.min(now.applied, this.#copied.applied),
      oldest: Math.min(now.oldest, this.#copied.oldest),
    };
  }
}
