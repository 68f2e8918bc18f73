/** Runs with budgets: calls of one account at one process that may cost so much together, whatever becomes of each. */
import { RunBudget } from '../../plugins/agent-loop/budget.ts';
import { money } from '../../plugins/common/domain/money.ts';
import type { Chance } from './chance.ts';
import type { ClientCall } from './client-call.ts';
import type { MemoryLedger } from './memory-ledger.ts';
import { costIn } from './memory-records.ts';
import type { Life } from './schedule.ts';
import type { Trace } from './trace.ts';
import type { Violations } from './violations.ts';

/** Runs of a world at once. */
const mostOpen = 6;

interface SimulatedRun {
  readonly account: string;
  readonly life: Life;
  readonly limit: bigint;
  readonly budget: RunBudget;
  readonly calls: string[];
  left: number;
}

export class Runs {
  readonly #chance: Chance;
  readonly #all: SimulatedRun[] = [];
  #open: SimulatedRun[] = [];

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  /** Half of the calls are steps of runs; steps run side by side. */
  join(call: ClientCall, { id, account, life }: Trace): ClientCall {
    const chance = this.#chance;
    if (call.apiKey !== undefined || chance.oneIn(2)) return call;
    let run = this.#open.find((one) => one.account === account && one.life === life);
    if (run === undefined) {
      const limit = BigInt(chance.pick([0, 1, 20_000, 400_000, 5_000_000, 60_000_000]));
      run = { account, life, limit, budget: new RunBudget(money(limit)), calls: [], left: chance.between(1, 20) };
      this.#all.push(run);
      this.#open = [...this.#open.slice(1 - mostOpen), run];
    }
    run.calls.push(id);
    run.left -= 1;
    if (run.left === 0) this.#open = this.#open.filter((one) => one !== run);
    return { ...call, caller: { ...call.caller, budget: run.budget } };
  }

  /** No run has cost more than its budget, but for what calls have cost beyond their holds. */
  finish({ callOf }: MemoryLedger, violations: Violations): void {
    for (const [index, { limit, calls }] of this.#all.entries()) {
      let spent = 0n;
      for (const id of calls) {
        const end = callOf(id);
        if (end === undefined) continue;
        const [cost, held] = [costIn(end), BigInt(end.held)];
        spent += cost < held ? cost : held;
      }
      if (spent > limit) violations.add('M7', `run ${index}`, `its calls have cost ${spent} of ${limit}`);
    }
  }
}
