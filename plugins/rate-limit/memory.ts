/** The limiter of one process: buckets in a bounded map. */
import type { Clock } from '../../core/contract/host-tools.ts';
import { type Decision, decide, emptyGauge, type Gauge, type Receipt, resetMs, settle } from './decide.ts';
import {
  type Demand,
  type Dimension,
  type Limiter,
  type LimitStatus,
  limitStatus,
  maxDemands,
  type Returned,
  type Verdict,
} from './limiter.ts';

/** The state of one subject. */
interface Subject {
  readonly gauges: Record<Dimension, Gauge | undefined>;
  /** Operation id to the time at which its slot expires. */
  readonly slots: Map<string, number>;
  /** Time at which all buckets are empty again; without slots the subject can be dropped then. */
  emptyAtMs: number;
}

const defaultMaxSubjects = 100_000;
/** How many of the oldest subjects are checked to make room for one. */
const evictionTries = 16;

export class MemoryLimiter implements Limiter {
  readonly #clock: Clock;
  readonly #maxSubjects: number;
  readonly #subjects = new Map<string, Subject>();

  constructor(clock: Clock, maxSubjects = defaultMaxSubjects) {
    this.#clock = clock;
    this.#maxSubjects = maxSubjects;
  }

  /** Number of stored subjects. */
  get size(): number {
    return this.#subjects.size;
  }

  take(id: string, demands: readonly Demand[]): Verdict {
    if (demands.length > maxDemands) throw new RangeError(`more than ${maxDemands} buckets at once`);
    const nowMs = Math.floor(this.#clock.monotonic());
    // A list that grows by `push` has room for seventeen.
    const gauges = new Array<Gauge>(demands.length);
    for (let index = 0; index < demands.length; index++) gauges[index] = this.#gauge(demands[index]!, nowMs);
    const decision = decide(gauges, nowMs, demands);
    const granted = decision.refusedBy === -1;
    if (granted) this.#keep(id, demands, decision, nowMs);
    const statuses = new Array<LimitStatus>(demands.length);
    for (let index = 0; index < demands.length; index++)
      statuses[index] = limitStatus(demands[index]!, decision.gauges[index]!);
    return {
      by: this,
      granted,
      refusedBy: granted ? undefined : demands[decision.refusedBy]!,
      retryAfterMs: decision.retryAfterMs,
      statuses,
      receipts: granted ? decision.gauges : [],
    };
  }

  giveBack(id: string, returned: readonly Returned[]): void {
    const nowMs = Math.floor(this.#clock.monotonic());
    for (const { demand, receipt, usedUnits } of returned) {
      const subject = this.#subjects.get(demand.subject);
      if (subject === undefined) continue;
      if (demand.periodMs === 0) subject.slots.delete(id);
      else adjust(subject, demand, receipt, usedUnits, nowMs);
    }
  }

  /** Drops subjects without state. */
  sweep(): void {
    const nowMs = Math.floor(this.#clock.monotonic());
    for (const [name, subject] of this.#subjects) if (isIdle(subject, nowMs)) this.#subjects.delete(name);
  }

  #gauge({ subject: name, dimension, periodMs, limit }: Demand, nowMs: number): Gauge {
    const subject = this.#subjects.get(name);
    if (subject === undefined) return emptyGauge;
    if (periodMs > 0) return subject.gauges[dimension] ?? emptyGauge;
    if (subject.slots.size >= limit) dropLapsed(subject.slots, nowMs);
    return { ...emptyGauge, debt: subject.slots.size, atMs: nowMs };
  }

  #keep(id: string, demands: readonly Demand[], { gauges }: Decision, nowMs: number): void {
    for (let index = 0; index < demands.length; index++) {
      const demand = demands[index]!;
      const gauge = gauges[index]!;
      const subject = this.#subjects.get(demand.subject) ?? this.#remember(demand.subject, nowMs);
      if (demand.periodMs === 0) {
        subject.slots.set(id, nowMs + (demand.slotLifetimeMs ?? Number.POSITIVE_INFINITY));
      } else {
        subject.gauges[demand.dimension] = gauge;
        subject.emptyAtMs = Math.max(subject.emptyAtMs, nowMs + resetMs(gauge, demand));
      }
    }
  }

  #remember(name: string, nowMs: number): Subject {
    if (this.#subjects.size >= this.#maxSubjects) this.#makeRoom(nowMs);
    const subject: Subject = {
      gauges: { rpm: undefined, rpd: undefined, tpm: undefined, concurrency: undefined },
      slots: new Map(),
      emptyAtMs: 0,
    };
    this.#subjects.set(name, subject);
    return subject;
  }

  /** Drops one idle subject, or the first without running calls: forgetting its debt is better than unbounded memory. */
  #makeRoom(nowMs: number): void {
    let victim: string | undefined;
    let tries = evictionTries;
    for (const [name, subject] of this.#subjects) {
      if (isIdle(subject, nowMs)) {
        this.#subjects.delete(name);
        return;
      }
      if (victim === undefined || (subject.slots.size === 0 && this.#subjects.get(victim)!.slots.size > 0))
        victim = name;
      // Moved to the end, so that the next search checks others.
      this.#subjects.delete(name);
      this.#subjects.set(name, subject);
      tries -= 1;
      if (tries === 0) break;
    }
    if (victim !== undefined) this.#subjects.delete(victim);
  }
}

function adjust(subject: Subject, demand: Demand, receipt: Receipt, usedUnits: number, nowMs: number): void {
  const gauge = subject.gauges[demand.dimension];
  if (gauge === undefined) return;
  const settled = settle(gauge, receipt, nowMs, demand, usedUnits);
  subject.gauges[demand.dimension] = settled;
  subject.emptyAtMs = Math.max(subject.emptyAtMs, nowMs + resetMs(settled, demand));
}

function isIdle(subject: Subject, nowMs: number): boolean {
  if (subject.emptyAtMs > nowMs) return false;
  if (subject.slots.size > 0) dropLapsed(subject.slots, nowMs);
  return subject.slots.size === 0;
}

function dropLapsed(slots: Map<string, number>, nowMs: number): void {
  for (const [id, lapsesAtMs] of slots) if (lapsesAtMs <= nowMs) slots.delete(id);
}
