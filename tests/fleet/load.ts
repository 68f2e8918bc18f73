/** Begins operations at a steady rate, however long others take. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Operations } from './operations.ts';

export class Load {
  readonly #running = new Set<Promise<void>>();
  readonly #operations: Operations;
  readonly #steady: Promise<void>;
  #isStopped = false;

  constructor(operations: Operations, rate: number) {
    this.#operations = operations;
    this.#steady = this.#keepPace(rate);
  }

  /** Resolves when all that was begun has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#steady;
    await Promise.all(this.#running);
  }

  async #keepPace(rate: number): Promise<void> {
    const beganAt = performance.now();
    while (!this.#isStopped) {
      const due = Math.floor(((performance.now() - beganAt) / 1_000) * rate);
      while (this.#operations.begun < due) this.#begin();
      await pause(20);
    }
  }

  #begin(): void {
    const running = this.#operations
      .next()
      .catch((error: unknown) => void this.#operations.wrong.push(`an operation ended by ${error}`))
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }
}
