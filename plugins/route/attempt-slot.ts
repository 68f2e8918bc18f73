/** The resources that an attempt holds at its target: capacity at the gate, a pass of the breaker, one request in flight. */
import type { Exchange } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Clock, Random } from '../../core/contract/host-tools.ts';
import type { UpstreamGate } from '../common/domain/upstreams.ts';
import type { Breaker, BreakerRules, Pass } from './breaker.ts';
import type { Candidate } from './candidates.ts';
import type { TargetHealth } from './health.ts';
import { recordWait } from './timeline.ts';
import type { Failure, Verdict } from './verdict.ts';

/** Holds one attempt at a time. The first of `dropped`, `failed` and `ended` releases everything, once. */
export class AttemptSlot {
  #health: TargetHealth | undefined;
  #gate: UpstreamGate | undefined;
  #pass: Pass = 'plain';
  #isAnswered = false;

  /** The caller has acquired the gate. false: the breaker admits no request now, and the gate was released. */
  take({ provider, health }: Candidate, forced: boolean, clock: Clock): boolean {
    const { breaker } = health;
    const pass = breaker.isClosed ? 'plain' : passOf(breaker, forced, clock.monotonic());
    if (pass === undefined) {
      provider.gate?.release();
      return false;
    }
    this.#pass = pass;
    this.#health = health;
    this.#gate = provider.gate;
    this.#isAnswered = false;
    health.inFlight += 1;
    return true;
  }

  /** The answer has begun. true: it closed the circuit. */
  answered(clock: Clock): boolean {
    this.#isAnswered = true;
    if (this.#pass === 'plain') return false;
    this.#pass = this.#health!.breaker.answered(this.#pass, clock.monotonic());
    return true;
  }

  /** The attempt says nothing about the health of its target. */
  dropped(): void {
    this.#health?.breaker.dropped(this.#pass);
    this.#release();
  }

  /** The target is at fault. true: its circuit opened. */
  failed(now: number, rules: BreakerRules, random: Random): boolean {
    const hasOpened = this.#health?.breaker.failed(this.#pass, now, rules, random) ?? false;
    this.#release();
    return hasOpened;
  }

  /** The exchange has ended, and its answer was not cut off. */
  ended(): void {
    if (this.#isAnswered) this.#health?.breaker.succeeded();
    else this.#health?.breaker.dropped(this.#pass);
    this.#release();
  }

  /** The target that serves the answer; undefined: none. */
  get serving(): TargetHealth | undefined {
    return this.#isAnswered ? this.#health : undefined;
  }

  #release(): void {
    const health = this.#health;
    if (health === undefined) return;
    this.#health = undefined;
    health.inFlight -= 1;
    this.#gate?.release();
  }
}

/** Waits for capacity. Rejects with the reason if the client disconnects meanwhile. */
export async function waitForCapacity(
  gate: UpstreamGate,
  candidate: Candidate,
  exchange: Exchange,
  clock: Clock,
): Promise<boolean> {
  const { signal } = exchange;
  const startedMs = clock.monotonic();
  const isAcquired = await gate.acquire(signal);
  if (signal.aborted) {
    if (isAcquired) gate.release();
    throw signal.reason instanceof GatewayError ? signal.reason : clientDisconnected();
  }
  recordWait(exchange, clock.now(), candidate, clock.monotonic() - startedMs, isAcquired);
  return isAcquired;
}

const clientDisconnected = () => new GatewayError('client_left', 'The client closed the connection.');

function passOf(breaker: Breaker, forced: boolean, now: number): Pass | undefined {
  return forced ? breaker.force(now) : breaker.admit(now);
}

/** An answer that a vendor gave earlier shows nothing of its health now, and no other target is tried. */
export function unjudged(slot: AttemptSlot, { error }: Verdict): Failure {
  slot.dropped();
  return { next: 'nowhere', error, isFault: false, isAmbiguous: false };
}
