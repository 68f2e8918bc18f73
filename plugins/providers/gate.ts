/** A concurrency limit for one provider with a first-come, first-served queue and a deadline. */
import type { Clock } from '../../core/contract/host-tools.ts';
import type { UpstreamGate } from '../common/domain/upstreams.ts';

export interface GateRules {
  /** Limit of requests in flight. */
  readonly limit: number;
  /** Limit of waiting requests. */
  readonly queue: number;
  /** Longest wait of a request. */
  readonly waitMs: number;
}

/** Runs `work` once after a time; returns the function that cancels it. */
export type Alarm = (afterMs: number, work: () => void) => () => void;

interface Waiter {
  /** Monotonic. */
  readonly until: number;
  settle(isGranted: boolean): void;
}

const shortestRetryMs = 1_000;
const longestRetryMs = 60_000;

/** A strict queue: a new request waits while others wait, and slots are granted in the order of arrival. */
export class Gate implements UpstreamGate {
  readonly #clock: Clock;
  readonly #alarm: Alarm;
  #rules: GateRules;
  #inFlight = 0;
  /** In the order of arrival; a request that stops waiting is removed at once. */
  readonly #waiting = new Set<Waiter>();
  #cancelAlarm: (() => void) | undefined;
  #lastReleaseAt = Number.NaN;
  /** Moving mean of the time between two releases. */
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

  /** Applies at once. Requests in flight beyond a lower limit finish; waiting requests keep their old deadline. */
  change(rules: GateRules): void {
    this.#rules = rules;
    this.#admitWaiting();
  }

  tryAcquire(): boolean {
    if (this.#inFlight >= this.#rules.limit || this.#waiting.size > 0) return false;
    this.#inFlight += 1;
    // The time between releases is measured only while the gate is full.
    if (this.#inFlight === this.#rules.limit) this.#lastReleaseAt = this.#clock.monotonic();
    return true;
  }

  acquire(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    if (this.tryAcquire()) return Promise.resolve(true);
    if (this.#waiting.size >= this.#rules.queue) return Promise.resolve(false);
    return new Promise((resolve) => {
      const onAbort = () => waiter.settle(false);
      const waiter: Waiter = {
        until: this.#clock.monotonic() + this.#rules.waitMs,
        settle: (isGranted) => {
          this.#waiting.delete(waiter);
          signal.removeEventListener('abort', onAbort);
          resolve(isGranted);
        },
      };
      signal.addEventListener('abort', onAbort);
      this.#waiting.add(waiter);
      if (this.#cancelAlarm === undefined) this.#setAlarm();
    });
  }

  release(): void {
    if (this.#inFlight >= this.#rules.limit) this.#recordRelease();
    this.#inFlight -= 1;
    this.#admitWaiting();
  }

  get retryAfterMs(): number {
    const expected = this.#freesEveryMs * (this.#waiting.size + 1);
    return Math.min(Math.max(Math.ceil(expected), shortestRetryMs), longestRetryMs);
  }

  #recordRelease(): void {
    const now = this.#clock.monotonic();
    const sinceMs = Math.min(now - this.#lastReleaseAt, longestRetryMs);
    this.#lastReleaseAt = now;
    if (Number.isNaN(sinceMs)) return;
    this.#freesEveryMs = this.#freesEveryMs === 0 ? sinceMs : this.#freesEveryMs + (sinceMs - this.#freesEveryMs) / 8;
  }

  #admitWaiting(): void {
    for (const waiter of this.#waiting) {
      if (this.#inFlight >= this.#rules.limit) return;
      this.#inFlight += 1;
      waiter.settle(true);
    }
  }

  /** One timer for all: the first request in the queue has the earliest deadline. */
  #setAlarm(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    const afterMs = Math.max(0, first.until - this.#clock.monotonic());
    this.#cancelAlarm = this.#alarm(afterMs, () => {
      this.#cancelAlarm = undefined;
      const now = this.#clock.monotonic();
      for (const waiter of this.#waiting) {
        if (waiter.until > now) break;
        waiter.settle(false);
      }
      this.#setAlarm();
    });
  }

  /** Removes the limit: admits all waiting requests, and leaves no timer behind. */
  removeLimit(): void {
    this.change({ ...this.#rules, limit: Number.POSITIVE_INFINITY });
    this.#cancelAlarm?.();
    this.#cancelAlarm = undefined;
  }
}
