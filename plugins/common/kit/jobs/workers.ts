/** The places of a process for due rows: takes as many as are free, one take at a time, and ends in good order. */
import type { Random } from '../../../../core/contract/host-tools.ts';

export interface WorkersOptions<Job> {
  readonly places: number;
  readonly random: Random;
  /** Takes at most so many due rows by this lease. */
  readonly take: (lease: string, limit: number) => Promise<readonly Job[]>;
  /** Never rejects. */
  readonly work: (job: Job, lease: string) => Promise<void>;
  /** A place is free, or a turn was asked for during the one before: rows may be due. */
  readonly freed: () => void;
}

export class Workers<Job> {
  readonly #options: WorkersOptions<Job>;
  readonly #running = new Set<Promise<void>>();
  #taking: Promise<void> | undefined;
  #takesAgain = false;
  #isDraining = false;

  constructor(options: WorkersOptions<Job>) {
    this.#options = options;
  }

  /** Rows that this process works on. */
  get active(): number {
    return this.#running.size;
  }

  /** Takes due rows for the free places. Resolves when they are taken, not when they are done. */
  turn(): Promise<void> {
    this.#takesAgain = this.#taking !== undefined;
    this.#taking ??= this.#take().finally(() => {
      this.#taking = undefined;
      if (this.#takesAgain) this.#options.freed();
    });
    return this.#taking;
  }

  async #take(): Promise<void> {
    const { places, random, take, work, freed } = this.#options;
    const free = places - this.#running.size;
    if (free <= 0 || this.#isDraining) return;
    const lease = random.bytes(12).toString('hex');
    for (const job of await take(lease, free)) {
      const running = work(job, lease).finally(() => {
        this.#running.delete(running);
        freed();
      });
      this.#running.add(running);
    }
  }

  /** Begins nothing more. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Resolves when all begun work is done. */
  async stop(): Promise<void> {
    this.drain();
    await this.#taking?.catch(() => {});
    await Promise.all(this.#running);
  }
}
