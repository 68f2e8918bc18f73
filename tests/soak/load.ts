/** Makes calls: at first as fast as they are answered, to see what the gateway can do, then at a steady rate. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Calls } from './calls.ts';
import type { Result } from './orders.ts';

/** Clients at full speed; as many as keep two processors busy. */
const fullSpeedClients = 24;
/** A steady rate stops growing its queue here: what waits longer tells nothing more. */
const mostInFlight = 500;
const shownWrong = 20;

export class Load {
  readonly answered = new Set<string>();
  readonly counts = new Map<string, number>();
  /** The first sentences about calls that ended as they must not, and how many there were. */
  wrongCount = 0;
  readonly #wrong: string[] = [];
  readonly #calls: Calls;
  readonly #tookMs: number[] = [];
  readonly #running = new Set<Promise<void>>();
  #stopped = false;
  #steady: Promise<void> | undefined;
  #skipped = 0;
  calls = 0;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  get inFlight(): number {
    return this.#running.size;
  }

  get wrong(): readonly string[] {
    const more = this.wrongCount - this.#wrong.length;
    const skipped = this.#skipped > 0 ? [`${this.#skipped} calls were not made, as ${mostInFlight} were running`] : [];
    return [...this.#wrong, ...(more > 0 ? [`and ${more} calls more that went wrong`] : []), ...skipped];
  }

  /** Percentiles of the calls so far. */
  percentileMs(share: number): number {
    const sorted = this.#tookMs.slice(-10_000).sort((one, other) => one - other);
    return Math.round(sorted[Math.floor(sorted.length * share)] ?? 0);
  }

  /** Calls a second, over the second half of so many milliseconds. */
  async fullSpeed(ms: number): Promise<number> {
    const startedAt = performance.now();
    let counted = 0;
    const work = async () => {
      while (performance.now() - startedAt < ms) {
        await this.#one();
        if (performance.now() - startedAt > ms / 2) counted++;
      }
    };
    await Promise.all(Array.from({ length: fullSpeedClients }, work));
    return counted / ((performance.now() - startedAt - ms / 2) / 1_000);
  }

  start(rate: number): void {
    this.#steady = this.#keepPace(Math.max(rate, 0.5));
  }

  /** Resolves when every call has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#steady;
    await Promise.all(this.#running);
  }

  /** Open loop: calls begin at their time, however long others take. */
  async #keepPace(rate: number): Promise<void> {
    const startedAt = performance.now();
    for (let begun = 0; !this.#stopped; ) {
      const due = Math.floor(((performance.now() - startedAt) / 1_000) * rate);
      for (; begun < due; begun++) {
        if (this.#running.size >= mostInFlight) this.#skipped++;
        else this.#begin();
      }
      await pause(5);
    }
  }

  #begin(): void {
    const running = this.#one().finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async #one(): Promise<void> {
    const startedAt = performance.now();
    const result = await this.#calls.one();
    this.calls++;
    this.#tookMs.push(performance.now() - startedAt);
    if (this.#tookMs.length > 20_000) this.#tookMs.splice(0, 10_000);
    this.#note(result);
  }

  #note({ kind, wrong, requestId }: Result): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
    if (requestId !== undefined) this.answered.add(requestId);
    if (wrong === undefined) return;
    this.wrongCount++;
    if (this.#wrong.length < shownWrong) this.#wrong.push(`${kind}: ${wrong}`);
  }
}
