/** A concurrency limit with one queue per owner, served in turn, so that one owner cannot delay the others. */

export interface TurnLimits {
  /** Most work at once. */
  readonly running: number;
  /** Most waiting work of one owner. */
  readonly waiting: number;
}

export class FairTurns {
  #limits: TurnLimits;
  #running = 0;
  /** Queues by owner, in the order of their turns; none is empty. */
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor(limits: TurnLimits) {
    this.#limits = limits;
  }

  /** Limits for work from now on. */
  applyConfig(limits: TurnLimits): void {
    this.#limits = limits;
  }

  get running(): number {
    return this.#running;
  }

  /** Resolves with true when the work may begin; `release` must follow. Resolves with false when the owner's queue is full. */
  async acquire(owner: string): Promise<boolean> {
    if (this.#running < this.#limits.running) {
      this.#running += 1;
      return true;
    }
    const queue = this.#waiting.get(owner);
    if ((queue?.length ?? 0) >= this.#limits.waiting) return false;
    await new Promise<void>((resolve) => {
      if (queue === undefined) this.#waiting.set(owner, [resolve]);
      else queue.push(resolve);
    });
    return true;
  }

  /** Frees the slot for the next owner in turn. */
  release(): void {
    const [next] = this.#waiting;
    if (next === undefined || this.#running > this.#limits.running) {
      this.#running -= 1;
      return;
    }
    const [owner, queue] = next;
    const begin = queue.shift()!;
    this.#waiting.delete(owner);
    if (queue.length > 0) this.#waiting.set(owner, queue);
    begin();
  }
}
