/** Whether the database answers: polls, one after the other, that renew its connections once it is back. */
import type { Host } from '../../core/contract/contract.ts';
import type { Outage } from '../../core/contract/outage.ts';

/** A poll without an answer for so long means that statements hang. */
const stuckAfterMs = 5_000;

interface HealthOptions {
  readonly outage: Outage;
  readonly work: () => Promise<void>;
  /** Called when the database answers again after a failure. */
  readonly recovered: () => void;
}

/** Whether statements get answers, judged by the regular poll. */
export class Health {
  readonly #host: Host;
  readonly #options: HealthOptions;
  #failed = false;
  #again = false;
  #running: Promise<void> | undefined;
  /** Since when polls have had no answer; undefined: none is due. */
  #unansweredSince: number | undefined;

  constructor(host: Host, options: HealthOptions) {
    this.#host = host;
    this.#options = options;
  }

  isGood(): boolean {
    return !this.#failed && !this.#isStuck();
  }

  #isStuck(): boolean {
    const since = this.#unansweredSince;
    return since !== undefined && this.#host.clock.monotonic() - since > stuckAfterMs;
  }

  poll(): Promise<void> {
    // Announcements from meanwhile may be missing in the current read.
    this.#again = true;
    this.#running ??= this.#pollAgain();
    return this.#running;
  }

  async #pollAgain(): Promise<void> {
    while (this.#again) {
      this.#again = false;
      await this.#poll();
    }
    this.#running = undefined;
  }

  async #poll(): Promise<void> {
    const { outage, work, recovered } = this.#options;
    this.#unansweredSince ??= this.#host.clock.monotonic();
    try {
      await work();
      outage.succeeded();
      if (this.#failed || this.#isStuck()) recovered();
      this.#failed = false;
      this.#unansweredSince = undefined;
    } catch (error) {
      // One connection without an answer may be that connection's fault: the next poll opens another.
      if (isSilence(error) && !this.#isStuck()) return;
      outage.failed(error);
      this.#failed = true;
    }
  }
}

/** The connection gave no answer in time, however the error is wrapped. */
function isSilence(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause)
    if ((at as { isSilence?: unknown }).isSilence === true) return true;
  return false;
}
