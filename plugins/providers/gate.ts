/** A bound on the requests under way at one provider, and the queue before it: first come, first served, with a deadline. */
import type { Clock } from '../../core/contract.ts';
import type { UpstreamGate } from '../../core/vocabulary.ts';

export interface GateRules {
  /** Requests under way at most. */
  readonly limit: number;
  /** Requests that wait at most. */
  readonly queue: number;
  /** How long one waits at most. */
  readonly waitMs: number;
}

/** Does `work` once after a time; what it returns calls it off. */
export type Alarm = (afterMs: number, work: () => void) => () => void;

interface Waiter {
  /** Monotonic. */
  readonly until: number;
  settle(entered: boolean): void;
}

const shortestRetryMs = 1_000;
const longestRetryMs = 60_000;

/** Nobody passes who waits already: whoever comes while others wait waits too, and places go out in the order of arrival. */
export class Gate implements UpstreamGate {
  readonly #clock: Clock;
  readonly #alarm: Alarm;
  #rules: GateRules;
  #inFlight = 0;
  /** In the order of arrival; whoever leaves is gone at once. */
  readonly #waiting = new Set<Waiter>();
  #callOff: (() => void) | undefined;
  #leftAt = Number.NaN;
  /** Moving mean of the time between two places that came free. */
  #freesEveryMs = 0;

  constructor(rules: GateRules, clock: Clock, alarm: Alarm) {
    this.#rules = rules;
    this.#clock = clock;
    this.#alarm = alarm;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get rules(): GateRules {
    return this.#rules;
  }

  /** From now on. What is under way beyond a lower limit ends in its own time; who waits already does so by the old rules. */
  change(rules: GateRules): void {
    this.#rules = rules;
    this.#letIn();
  }

  tryEnter(): boolean {
    if (this.#inFlight >= this.#rules.limit || this.#waiting.size > 0) return false;
    this.#inFlight += 1;
    // Only while it is full does it matter how often a place comes free.
    if (this.#inFlight === this.#rules.limit) this.#leftAt = this.#clock.monotonic();
    return true;
  }

  enter(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    if (this.tryEnter()) return Promise.resolve(true);
    if (this.#waiting.size >= this.#rules.queue) return Promise.resolve(false);
    return new Promise((resolve) => {
      const leave = () => waiter.settle(false);
      const waiter: Waiter = {
        until: this.#clock.monotonic() + this.#rules.waitMs,
        settle: (entered) => {
          this.#waiting.delete(waiter);
          signal.removeEventListener('abort', leave);
          resolve(entered);
        },
      };
      signal.addEventListener('abort', leave);
      this.#waiting.add(waiter);
      if (this.#callOff === undefined) this.#setAlarm();
    });
  }

  leave(): void {
    if (this.#inFlight >= this.#rules.limit) this.#noteFree();
    this.#inFlight -= 1;
    this.#letIn();
  }

  get retryAfterMs(): number {
    const expected = this.#freesEveryMs * (this.#waiting.size + 1);
    return Math.min(Math.max(Math.ceil(expected), shortestRetryMs), longestRetryMs);
  }

  #noteFree(): void {
    const now = this.#clock.monotonic();
    const sinceMs = Math.min(now - this.#leftAt, longestRetryMs);
    this.#leftAt = now;
    if (Number.isNaN(sinceMs)) return;
    this.#freesEveryMs = this.#freesEveryMs === 0 ? sinceMs : this.#freesEveryMs + (sinceMs - this.#freesEveryMs) / 8;
  }

  #letIn(): void {
    for (const waiter of this.#waiting) {
      if (this.#inFlight >= this.#rules.limit) return;
      this.#inFlight += 1;
      waiter.settle(true);
    }
  }

  /** One alarm for all: they came in this order, so the first one's time is up first. */
  #setAlarm(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    const afterMs = Math.max(0, first.until - this.#clock.monotonic());
    this.#callOff = this.#alarm(afterMs, () => {
      this.#callOff = undefined;
      const now = this.#clock.monotonic();
      for (const waiter of this.#waiting) {
        if (waiter.until > now) break;
        waiter.settle(false);
      }
      this.#setAlarm();
    });
  }

  /** Nobody comes here any more: those who wait are let in, and no alarm is left behind. */
  open(): void {
    this.change({ ...this.#rules, limit: Number.POSITIVE_INFINITY });
    this.#callOff?.();
    this.#callOff = undefined;
  }
}
