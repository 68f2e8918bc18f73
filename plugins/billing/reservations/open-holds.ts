/**
 * The open holds of this process, oldest first: a linked list through the holds, which drops an ended one
 * completely.
 */
import type { Hold } from './hold.ts';

/**
 * Not a Map or Set: a long-lived one keeps deleted entries reachable until it grows, and the garbage collector
 * copies them.
 */
export class OpenHolds {
  #oldest: Hold | undefined;
  #newest: Hold | undefined;

  /** Sequence number of the oldest hold's record; Infinity when none is open. */
  get oldestSequence(): number {
    return this.#oldest?.sequence ?? Number.POSITIVE_INFINITY;
  }

  /** Adds a hold that is newer than all others. */
  add(hold: Hold): void {
    hold.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = hold;
    else this.#newest.newer = hold;
    this.#newest = hold;
  }

  delete(hold: Hold): void {
    const { older, newer } = hold;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    // An ended hold that refers to a younger one would keep it alive until the old generation is collected.
    hold.older = undefined;
    hold.newer = undefined;
  }

  forEach(visit: (hold: Hold) => void): void {
    for (let hold = this.#oldest; hold !== undefined; hold = hold.newer) visit(hold);
  }
}
