/** Watches the limiter and the router from outside: no call over a limit is admitted, none under it is refused, no key that rests is used. */
import type { Limits } from '../../plugins/common/domain/plans.ts';
import type { Life, Schedule } from './schedule.ts';
import type { Trace } from './trace.ts';
import type { Violations } from './violations.ts';

const minuteMs = 60_000;

/** The one that comes to a process's limiter: a call, or an order of a task. */
export type Comer = Pick<Trace, 'account' | 'life'>;

/** What one process's limiter must know of one account. */
interface Gate {
  readonly running: Set<Comer>;
  /** Requests in the bucket, in `minuteMs`-th parts of one, at a whole millisecond of the process's own clock. */
  parts: number;
  atMs: number;
}

export class LimitsOracle {
  readonly #schedule: Schedule;
  readonly #violations: Violations;
  readonly #limits: ReadonlyMap<string, Limits>;
  readonly #gates = new Map<Life, Map<string, Gate>>();
  /** What a call met when it came, until the limiter's word on it is known. */
  readonly #entries = new Map<Comer, { readonly running: number; readonly parts: number }>();
  readonly #startedAt = new Map<Life, number>();
  /** Virtual time until which a process must leave a credential alone, for one model (`credential model`) or for all. */
  readonly #rests = new Map<Life, Map<string, number>>();

  constructor(schedule: Schedule, violations: Violations, limits: ReadonlyMap<string, Limits>) {
    this.#schedule = schedule;
    this.#violations = violations;
    this.#limits = limits;
  }

  begun(life: Life): void {
    this.#startedAt.set(life, this.#schedule.now);
    this.#gates.set(life, new Map());
    this.#rests.set(life, new Map());
  }

  died(life: Life): void {
    this.#gates.delete(life);
    this.#rests.delete(life);
  }

  /** A call comes to the limiter, whose word on it is known within the same event. */
  entered(trace: Comer): void {
    const { rpm } = this.#limits.get(trace.account) ?? {};
    const gate = this.#gateOf(trace);
    gate.running.add(trace);
    if (rpm !== undefined) {
      this.#drain(gate, trace.life, rpm);
      gate.parts += minuteMs;
    }
    this.#entries.set(trace, { running: gate.running.size, parts: gate.parts });
  }

  /** The limiter let it in. */
  passed(trace: Comer): void {
    const entry = this.#entries.get(trace);
    if (entry === undefined) return;
    this.#entries.delete(trace);
    const { rpm, concurrency } = this.#limits.get(trace.account) ?? {};
    if (concurrency !== undefined && entry.running > concurrency) {
      this.#violations.add('limit', trace.account, `${entry.running} calls at once, ${concurrency} are allowed`);
    }
    if (rpm !== undefined && entry.parts > rpm * minuteMs) {
      this.#violations.add('limit', trace.account, `more than ${rpm} requests a minute were let in`);
    }
  }

  /** The limiter refused it for this dimension. */
  stopped(trace: Comer, dimension: string | undefined): void {
    const { rpm, concurrency } = this.#limits.get(trace.account) ?? {};
    const gate = this.#gateOf(trace);
    this.#entries.delete(trace);
    gate.running.delete(trace);
    if (rpm !== undefined) gate.parts -= minuteMs;
    if (dimension === 'concurrency' && gate.running.size < (concurrency ?? 0)) {
      this.#violations.add('limit', trace.account, `refused with ${gate.running.size} of ${concurrency} calls running`);
    }
    if (dimension === 'rpm' && rpm !== undefined && gate.parts + minuteMs <= rpm * minuteMs) {
      this.#violations.add('limit', trace.account, `refused although ${rpm} requests a minute were not used up`);
    }
  }

  ended(trace: Comer): void {
    this.#gateOf(trace).running.delete(trace);
  }

  /** A try begins with this credential. */
  aimed(trace: Trace, credential: string, model: string): void {
    const rests = this.#rests.get(trace.life)!;
    const until = Math.max(rests.get(credential) ?? 0, rests.get(`${credential} ${model}`) ?? 0);
    if (this.#schedule.now < until) this.#violations.add('route', trace.id, `${credential} was used while it rests`);
  }

  /** The vendor turned a try away; the gateway has just heard of it. The times are those of the gateway's file. */
  turnedAway(trace: Trace, credential: string, model: string, status: number, retryAfterMs: number | undefined): void {
    const rests = this.#rests.get(trace.life)!;
    const rest = (key: string, forMs: number) =>
      rests.set(key, Math.max(rests.get(key) ?? 0, this.#schedule.now + forMs));
    if (status === 401) rest(credential, 4_000);
    else if (status === 403) rest(`${credential} ${model}`, 4_000);
    else if (retryAfterMs !== undefined) {
      rest(`${credential} ${model}`, Math.min(2_000, Math.max(1_000, retryAfterMs)));
    } else if (status === 429) rest(`${credential} ${model}`, 1_000);
  }

  #gateOf({ life, account }: Comer): Gate {
    const gates = this.#gates.get(life)!;
    let gate = gates.get(account);
    if (gate === undefined) {
      gate = { running: new Set(), parts: 0, atMs: 0 };
      gates.set(account, gate);
    }
    return gate;
  }

  #drain(gate: Gate, life: Life, rpm: number): void {
    const now = Math.floor(this.#schedule.now - this.#startedAt.get(life)!);
    gate.parts = Math.max(0, gate.parts - (now - gate.atMs) * rpm);
    gate.atMs = now;
  }
}
