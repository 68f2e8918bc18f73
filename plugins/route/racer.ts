/** One of two attempts that run side by side: its branch of the exchange, what it holds, and how it stands. */
import type { Branch } from '../../core/branch.ts';
import type { Answer } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { type Attempt, type Meter, meter } from '../../core/vocabulary.ts';
import type { Berth } from './berth.ts';
import type { Candidate } from './candidates.ts';
import type { Failure } from './verdict.ts';

export class Racer {
  readonly candidate: Candidate;
  readonly attempt: Attempt;
  readonly branch: Branch;
  readonly berth: Berth;
  /** Monotonic. */
  readonly startedMs: number;
  /** The one beside it. */
  rival: Racer | undefined;
  /** `lost`: its rival has an answer. */
  state: 'running' | 'answered' | 'failed' | 'lost' = 'running';
  /** Set once `ended` has resolved, which it always does. */
  outcome: Answer | Failure | undefined;
  ended: Promise<void> = Promise.resolve();
  readonly #meter: HeldMeter | undefined;

  constructor(candidate: Candidate, attempt: Attempt, branch: Branch, berth: Berth, startedMs: number) {
    this.candidate = candidate;
    this.attempt = attempt;
    this.branch = branch;
    this.berth = berth;
    this.startedMs = startedMs;
    const money = branch.find(meter);
    if (money === undefined) return;
    this.#meter = new HeldMeter(money);
    branch.set(meter, this.#meter);
  }

  /** `work` never rejects. */
  run(work: Promise<Answer | Failure>): void {
    this.ended = work.then((outcome) => {
      this.outcome = outcome;
    });
  }

  /** It has an answer. false: its rival had one before. */
  claims(): boolean {
    if (this.state === 'lost') return false;
    this.state = 'answered';
    if (this.rival?.state === 'running') this.rival.state = 'lost';
    return true;
  }

  /** It has failed, so it is no longer what the client waits for. false: it had lost before, and nobody minds. */
  fails(): boolean {
    if (this.state === 'lost') return false;
    this.state = 'failed';
    this.branch.stop(hasFailed());
    return true;
  }

  /** The request goes on with it: what it is seen to use is the client's. */
  choose(): void {
    this.branch.join();
    this.#meter?.choose();
  }
}

const hasFailed = () => new GatewayError('upstream_failed', 'This attempt has failed.');

/** The client's money is watched by the chosen one alone. */
class HeldMeter implements Meter {
  readonly #meter: Meter;
  #isChosen = false;
  #seen = 0;

  constructor(real: Meter) {
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

  charged(): ReturnType<NonNullable<Meter['charged']>> {
    return this.#meter.charged?.();
  }
}
