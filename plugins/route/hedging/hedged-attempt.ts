/** One of two concurrent attempts: its branch of the exchange, its slot and its state. */
import type { Branch } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { type Attempt, type SpendGuard, spendGuard } from '../../common/domain/calls.ts';
import type { Model } from '../../common/domain/models.ts';
import type { AttemptSlot } from '../attempt-slot.ts';
import type { Candidate } from '../candidates.ts';
import type { Failure } from '../verdict.ts';

export class HedgedAttempt {
  readonly candidate: Candidate;
  readonly attempt: Attempt;
  readonly branch: Branch;
  readonly slot: AttemptSlot;
  /** Monotonic. */
  readonly startedMs: number;
  /** The concurrent attempt. */
  rival: HedgedAttempt | undefined;
  /** `lost`: its rival answered first. */
  state: 'running' | 'answered' | 'failed' | 'lost' = 'running';
  /** Set once `ended` has resolved, which it always does. */
  outcome: Answer | Failure | undefined;
  ended: Promise<void> = Promise.resolve();
  readonly #meter: DeferredSpendGuard | undefined;

  constructor(candidate: Candidate, attempt: Attempt, branch: Branch, slot: AttemptSlot, startedMs: number) {
    this.candidate = candidate;
    this.attempt = attempt;
    this.branch = branch;
    this.slot = slot;
    this.startedMs = startedMs;
    const money = branch.find(spendGuard);
    if (money === undefined) return;
    this.#meter = new DeferredSpendGuard(money);
    branch.set(spendGuard, this.#meter);
  }

  /** `work` never rejects. */
  run(work: Promise<Answer | Failure>): void {
    this.ended = work.then((outcome) => {
      this.outcome = outcome;
    });
  }

  /** The attempt has an answer. false: its rival answered first. */
  claim(): boolean {
    if (this.state === 'lost') return false;
    this.state = 'answered';
    if (this.rival?.state === 'running') this.rival.state = 'lost';
    return true;
  }

  /** The attempt has failed and is stopped. false: it had lost before, so the failure has no effect. */
  fail(): boolean {
    if (this.state === 'lost') return false;
    this.state = 'failed';
    this.branch.stop(hasFailed());
    return true;
  }

  /** The request continues with this attempt, and its usage counts for the client. */
  choose(): void {
    this.branch.join();
    this.#meter?.choose();
  }
}

const hasFailed = () => new GatewayError('upstream_failed', 'This attempt has failed.');

/** Reports usage to the client's spend guard only once its attempt is chosen. */
class DeferredSpendGuard implements SpendGuard {
  readonly #meter: SpendGuard;
  #isChosen = false;
  #seen = 0;

  constructor(real: SpendGuard) {
    this.#meter = real;
  }

  choose(): void {
    this.#isChosen = true;
    if (this.#seen > 0) this.#meter.observe(this.#seen);
  }

  observe(outputTokens: number): boolean {
    if (this.#isChosen) return this.#meter.observe(outputTokens);
    this.#seen = Math.max(this.#seen, outputTokens);
    return true;
  }

  usedUp(): GatewayError | undefined {
    return this.#meter.usedUp?.();
  }

  writeOff(attempt: Attempt, share: number): boolean {
    return this.#meter.writeOff?.(attempt, share) ?? true;
  }

  serve(entry: Model, attempts: number): boolean {
    return this.#meter.serve?.(entry, attempts) ?? true;
  }

  charged(): ReturnType<NonNullable<SpendGuard['charged']>> {
    return this.#meter.charged?.();
  }
}
