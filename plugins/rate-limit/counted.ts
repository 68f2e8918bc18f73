/** The limiter of many processes: buckets in counters that they share, one run of a script for each decision. */
import type { Counters } from '../../core/vocabulary.ts';
import type { Gauge, Receipt } from './decide.ts';
import { type Demand, type Limiter, maxDemands, standing, type Verdict } from './limiter.ts';
import { releaseScript, settleScript, takeScript } from './script.ts';

const numbersOfGauge = 4;

export class CountedLimiter implements Limiter {
  readonly #counters: Counters;
  readonly #prefix: string;
  readonly #now: () => number | '';

  /** `prefix` keeps gateways apart. `now`: milliseconds, in place of the server's time; for comparison with other engines. */
  constructor(counters: Counters, prefix: string, now: () => number | '' = () => '') {
    this.#counters = counters;
    this.#prefix = prefix;
    this.#now = now;
  }

  async take(id: string, demands: readonly Demand[]): Promise<Verdict> {
    if (demands.length > maxDemands) throw new RangeError(`more than ${maxDemands} buckets at once`);
    const keys = demands.map((demand) => this.#key(demand));
    const values: (string | number)[] = [this.#now(), id];
    for (const { limit, periodMs, units, slotLifetimeMs = 0 } of demands)
      values.push(limit, periodMs, units, slotLifetimeMs);
    const told = ((await this.#counters.run(takeScript, keys, values)) as string[]).map(Number);
    const refused = told[0]!;
    const gauges = demands.map((_, index) => gaugeIn(told, index));
    return {
      by: this,
      granted: refused === -1,
      refusedBy: demands[refused],
      retryAfterMs: told[1]!,
      standings: demands.map((demand, index) => standing(demand, gauges[index]!)),
      receipts: refused === -1 ? gauges : [],
    };
  }

  async adjust(demand: Demand, { charged, sinceMs }: Receipt, usedUnits: number): Promise<void> {
    const { limit, periodMs, units } = demand;
    const values = [this.#now(), limit, periodMs, units, usedUnits, charged, sinceMs];
    await this.#counters.run(settleScript, [this.#key(demand)], values);
  }

  async release(id: string, demand: Demand): Promise<void> {
    await this.#counters.run(releaseScript, [this.#key(demand)], [id]);
  }

  /** The group in braces: a cluster places keys by what stands there. */
  #key({ group, subject, dimension }: Demand): string {
    return `${this.#prefix}{${group}}:${subject === group ? '' : subject}:${dimension}`;
  }
}

function gaugeIn(told: readonly number[], index: number): Gauge {
  const start = 2 + index * numbersOfGauge;
  return { debt: told[start]!, charged: told[start + 1]!, sinceMs: told[start + 2]!, atMs: told[start + 3]! };
}
