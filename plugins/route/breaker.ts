/** A circuit breaker: closed while a target answers, open for a growing time when it fails, half open for one test request. */
import type { Random } from '../../core/contract/host-tools.ts';
import type { CircuitState } from '../common/domain/admin/upstreams.ts';

export interface BreakerRules {
  /** It opens at this many failures among the latest requests … */
  readonly failures: number;
  /** … if they are at least this share of them, from 0 to 1. */
  readonly share: number;
  /** Open time after the first failure; doubled by each failed test. */
  readonly openMs: number;
  readonly maxOpenMs: number;
}

/**
 * Admission of one request. `plain`: the circuit is closed. `test`: the request decides whether the circuit closes; there is
 * one at a time. `forced`: sent through an open circuit because no other target can take it.
 * Each pass is returned once: by `answered` (followed by `succeeded`, or by `failed` if the answer is cut off), `failed` or
 * `dropped`.
 */
export type Pass = 'plain' | 'test' | 'forced';

/** Number of outcomes kept: the bits of one integer. */
const remembered = 32;

export class Breaker {
  /** One bit per outcome, 1 for a failure; the latest is the lowest bit. */
  #outcomes = 0;
  #count = 0;
  #isOpen = false;
  /** Monotonic time from which a test is allowed. */
  #openUntil = 0;
  /** Consecutive openings. */
  #openings = 0;
  #closedAt = Number.NEGATIVE_INFINITY;
  /** A test is running. */
  #isTested = false;

  state(now: number): CircuitState {
    if (!this.#isOpen) return 'closed';
    return now < this.#openUntil ? 'open' : 'half_open';
  }

  get isClosed(): boolean {
    return !this.#isOpen;
  }

  /** Remaining open time; 0 when closed or ready for a test. */
  opensForMs(now: number): number {
    return this.#isOpen ? Math.max(0, this.#openUntil - now) : 0;
  }

  /** Whether `admit` would return a pass now. */
  allows(now: number): boolean {
    return !this.#isOpen || (now >= this.#openUntil && !this.#isTested);
  }

  /** undefined: the request is not admitted. */
  admit(now: number): Pass | undefined {
    if (!this.#isOpen) return 'plain';
    if (now < this.#openUntil || this.#isTested) return undefined;
    this.#isTested = true;
    return 'test';
  }

  /** Passes a request that no other target can take. */
  force(now: number): Pass {
    return this.admit(now) ?? 'forced';
  }

  /** The answer has begun, which is enough to pass a test. Returns the pass that the request holds from now on. */
  answered(pass: Pass, now: number): Pass {
    if (pass === 'plain') return pass;
    if (pass === 'test') this.#isTested = false;
    this.#close(now);
    return 'plain';
  }

  /** The answer is complete. */
  succeeded(): void {
    // A request from before the circuit opened says nothing about the target's present state.
    if (this.#isOpen) return;
    this.#outcomes <<= 1;
    if (this.#count < remembered) this.#count += 1;
  }

  /** true: this failure opened the circuit. */
  failed(pass: Pass, now: number, rules: BreakerRules, random: Random): boolean {
    if (pass === 'test') this.#isTested = false;
    if (!this.#isOpen) {
      this.#outcomes = (this.#outcomes << 1) | 1;
      if (this.#count < remembered) this.#count += 1;
      const failures = this.failedOf;
      if (failures < rules.failures || failures < rules.share * this.#count) return false;
      // A target that worked for `maxOpenMs` since its last opening starts again at the shortest time.
      if (now - this.#closedAt > rules.maxOpenMs) this.#openings = 0;
    } else if (pass !== 'test') return false;
    this.#open(now, rules, random);
    return true;
  }

  /** The request ended without an outcome that says anything about the target. */
  dropped(pass: Pass): void {
    if (pass === 'test') this.#isTested = false;
  }

  /** Closes the circuit by an operator's command. A running test stays the only one. */
  reset(now: number): void {
    this.#openings = 0;
    this.#close(now);
  }

  /** Number of outcomes known. */
  get count(): number {
    return this.#count;
  }

  /** Number of failures among them. */
  get failedOf(): number {
    return bitsOf(this.#outcomes);
  }

  #open(now: number, { openMs, maxOpenMs }: BreakerRules, random: Random): void {
    const wholeMs = Math.min(openMs * 2 ** Math.min(this.#openings, 30), maxOpenMs);
    this.#openings += 1;
    this.#isOpen = true;
    // Jitter, so that the processes of a fleet do not all test the target at the same moment.
    this.#openUntil = now + wholeMs * (0.5 + random.fraction() / 2);
  }

  #close(now: number): void {
    this.#isOpen = false;
    this.#closedAt = now;
    this.#outcomes = 0;
    this.#count = 0;
  }
}

/** Population count: adds the bits up in pairs, fours and eights. */
function bitsOf(word: number): number {
  let bits = word - ((word >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
