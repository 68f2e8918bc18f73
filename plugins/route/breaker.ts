/** A circuit breaker: closed while a target answers, open for a growing time when it fails, tried by one request at a time. */
import type { Random } from '../../core/contract.ts';
import type { CircuitState } from '../../core/desk.ts';

export interface BreakerRules {
  /** Failures among the latest requests from which on it opens … */
  readonly failures: number;
  /** … if they are at least this share of them, of 1. */
  readonly share: number;
  /** How long it is open the first time; twice as long each time that the test fails. */
  readonly openMs: number;
  readonly maxOpenMs: number;
}

/**
 * What lets one request through. `plain`: the circuit is closed. `test`: it decides whether the circuit closes; there is one
 * at a time. `forced`: sent through an open circuit because nobody else can take it.
 * Each is given back once: by `answered` (then `succeeded` tells the end, or `failed` a break), `failed` or `dropped`.
 */
export type Pass = 'plain' | 'test' | 'forced';

/** Latest outcomes that count: as many as there are bits in one number. */
const remembered = 32;

export class Breaker {
  /** One bit for each of the latest outcomes, 1 where it failed; the latest is the lowest. */
  #outcomes = 0;
  #count = 0;
  #isOpen = false;
  /** Monotonic: the time from which on a test may be made. */
  #openUntil = 0;
  /** How often it has opened in a row. */
  #openings = 0;
  #closedAt = Number.NEGATIVE_INFINITY;
  /** A test is under way. */
  #isTested = false;

  state(now: number): CircuitState {
    if (!this.#isOpen) return 'closed';
    return now < this.#openUntil ? 'open' : 'half_open';
  }

  get isClosed(): boolean {
    return !this.#isOpen;
  }

  /** How long it stays open; 0 when it is closed or may be tested. */
  opensForMs(now: number): number {
    return this.#isOpen ? Math.max(0, this.#openUntil - now) : 0;
  }

  /** Whether a request of now would pass. */
  lets(now: number): boolean {
    return !this.#isOpen || (now >= this.#openUntil && !this.#isTested);
  }

  /** Lets a request through, or not: undefined. */
  admit(now: number): Pass | undefined {
    if (!this.#isOpen) return 'plain';
    if (now < this.#openUntil || this.#isTested) return undefined;
    this.#isTested = true;
    return 'test';
  }

  /** For a request that nobody else can take. */
  force(now: number): Pass {
    return this.admit(now) ?? 'forced';
  }

  /** An answer has begun, which is as much as a test has to show. Returns the pass that the request goes on with. */
  answered(pass: Pass, now: number): Pass {
    if (pass === 'plain') return pass;
    if (pass === 'test') this.#isTested = false;
    this.#close(now);
    return 'plain';
  }

  /** The answer came to its end. */
  succeeded(): void {
    // What began before the circuit opened says nothing of how it is now.
    if (!this.#isOpen) this.#note(0);
  }

  /** It has failed. true: the circuit has opened by it. */
  failed(pass: Pass, now: number, rules: BreakerRules, random: Random): boolean {
    if (pass === 'test') this.#isTested = false;
    if (!this.#isOpen) {
      this.#note(1);
      const failures = this.failedOf;
      if (failures < rules.failures || failures < rules.share * this.#count) return false;
      // A target that did well for long after its last opening begins anew.
      if (now - this.#closedAt > rules.maxOpenMs) this.#openings = 0;
    } else if (pass !== 'test') return false;
    this.#open(now, rules, random);
    return true;
  }

  /** The request ended without telling anything of the target. */
  dropped(pass: Pass): void {
    if (pass === 'test') this.#isTested = false;
  }

  /** An operator knows better. A test that is under way stays the only one. */
  reset(now: number): void {
    this.#openings = 0;
    this.#close(now);
  }

  /** Of how many outcomes it knows. */
  get count(): number {
    return this.#count;
  }

  /** How many of these are failures. */
  get failedOf(): number {
    return bitsOf(this.#outcomes);
  }

  #note(failed: 0 | 1): void {
    this.#outcomes = (this.#outcomes << 1) | failed;
    if (this.#count < remembered) this.#count += 1;
  }

  #open(now: number, { openMs, maxOpenMs }: BreakerRules, random: Random): void {
    const wholeMs = Math.min(openMs * 2 ** Math.min(this.#openings, 30), maxOpenMs);
    this.#openings += 1;
    this.#isOpen = true;
    // Spread, so that the processes of a fleet do not all come back in one moment.
    this.#openUntil = now + wholeMs * (0.5 + random.fraction() / 2);
  }

  #close(now: number): void {
    this.#isOpen = false;
    this.#closedAt = now;
    this.#outcomes = 0;
    this.#count = 0;
  }
}

/** How many bits are set, by adding them up in pairs, fours and eights. */
function bitsOf(word: number): number {
  let bits = word - ((word >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
