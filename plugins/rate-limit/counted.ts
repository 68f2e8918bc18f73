/** The limiter for several processes: buckets in shared counters, one script run per decision. */
import type { Counters } from '../common/domain/counters.ts';
import type { Gauge } from './decide.ts';
import { type Demand, type Limiter, limitStatus, maxDemands, type Returned, type Verdict } from './limiter.ts';
import { giveBackScript, takeScript } from './script.ts';

const numbersOfGauge = 4;

export class CountedLimiter implements Limiter {
  readonly #counters: Counters;
  readonly #prefix: string;
  readonly #now: () => number | '';

  /** `prefix` separates gateways. `now`: milliseconds instead of the server's time, to compare engines in tests. */
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
    const reply = ((await this.#counters.run(takeScript, keys, values)) as string[]).map(Number);
    const refused = reply[0]!;
    const gauges = demands.map((_, index) => gaugeIn(reply, index));
    return {
      by: this,
      granted: refused === -1,
      refusedBy: demands[refused],
      retryAfterMs: reply[1]!,
      statuses: demands.map((demand, index) => limitStatus(demand, gauges[index]!)),
      receipts: refused === -1 ? gauges : [],
    };
  }

  async giveBack(id: string, returned: readonly Returned[]): Promise<void> {
    const keys = returned.map(({ demand }) => this.#key(demand));
    const values: (string | number)[] = [this.#now(), id];
    for (const { demand, receipt, usedUnits } of returned)
      values.push(demand.limit, demand.periodMs, demand.units, usedUnits, receipt.charged, receipt.sinceMs);
    await this.#counters.run(giveBackScript, keys, values);
  }

  /** The group is in braces: a cluster places keys by that part. */
  #key({ group, subject, dimension }: Demand): string {
    return `${this.#prefix}{${group}}:${subject === group ? '' : subject}:${dimension}`;
  }
}

function gaugeIn(reply: readonly number[], index: number): Gauge {
  const start = 2 + index * numbersOfGauge;
  return { debt: reply[start]!, charged: reply[start + 1]!, sinceMs: reply[start + 2]!, atMs: reply[start + 3]! };
}
