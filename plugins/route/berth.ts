/** What a request holds at a target while it is served there: its place at the gate, its pass of the breaker, one in flight. */
import type { Clock, Random } from '../../core/contract.ts';
import type { UpstreamGate } from '../../core/vocabulary.ts';
import type { Breaker, BreakerRules, Pass } from './breaker.ts';
import type { Candidate } from './candidates.ts';
import type { TargetHealth } from './health.ts';

/** One at a time. All of it is given back once: by the first of `dropped`, `failed` and `ended`. */
export class Berth {
  #health: TargetHealth | undefined;
  #gate: UpstreamGate | undefined;
  #pass: Pass = 'plain';
  #isAnswered = false;

  /** A place at the gate is taken already. false: the breaker lets nobody pass now, and the place was given back. */
  take({ provider, health }: Candidate, forced: boolean, clock: Clock): boolean {
    const { breaker } = health;
    const pass = breaker.isClosed ? 'plain' : passOf(breaker, forced, clock.monotonic());
    if (pass === undefined) {
      provider.gate?.leave();
      return false;
    }
    this.#pass = pass;
    this.#health = health;
    this.#gate = provider.gate;
    this.#isAnswered = false;
    health.inFlight += 1;
    return true;
  }

  /** An answer has begun. true: it has closed the circuit. */
  answered(clock: Clock): boolean {
    this.#isAnswered = true;
    if (this.#pass === 'plain') return false;
    this.#pass = this.#health!.breaker.answered(this.#pass, clock.monotonic());
    return true;
  }

  /** The attempt told nothing of its target. */
  dropped(): void {
    this.#health?.breaker.dropped(this.#pass);
    this.#release();
  }

  /** The target is at fault. true: its circuit has opened. */
  failed(now: number, rules: BreakerRules, random: Random): boolean {
    const hasOpened = this.#health?.breaker.failed(this.#pass, now, rules, random) ?? false;
    this.#release();
    return hasOpened;
  }

  /** The exchange is over, and its answer did not break off. */
  ended(): void {
    if (this.#isAnswered) this.#health?.breaker.succeeded();
    else this.#health?.breaker.dropped(this.#pass);
    this.#release();
  }

  /** The target whose answer goes out; undefined: there is none. */
  get serving(): TargetHealth | undefined {
    return this.#isAnswered ? this.#health : undefined;
  }

  #release(): void {
    const health = this.#health;
    if (health === undefined) return;
    this.#health = undefined;
    health.inFlight -= 1;
    this.#gate?.leave();
  }
}

function passOf(breaker: Breaker, forced: boolean, now: number): Pass | undefined {
  return forced ? breaker.force(now) : breaker.admit(now);
}
