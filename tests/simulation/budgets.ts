/** Budgets of accounts, of their people and of a tag: how a world draws them, and operators who change their ceilings while calls run. */
import { formatUsd, money } from '../../plugins/common/domain/money.ts';
import type { BudgetTerms } from '../../plugins/common/domain/organizations/budgets.ts';
import type { Chance } from './chance.ts';
import type { Errands } from './errands.ts';
import type { LocalPeriod } from './local-periods.ts';
import type { AccountProfile } from './profile.ts';

export interface SimulatedBudget {
  readonly of: 'account' | 'person' | 'tag';
  readonly amount: bigint;
  readonly every: LocalPeriod;
  readonly zone: string;
}

export interface BudgetsProfile {
  /** One of each kind at most. */
  readonly settings: readonly SimulatedBudget[];
  /** Draws what accounts have instead of them; undefined: nothing. */
  readonly changes: Chance | undefined;
}

/** Every second key has it. */
export const simulatedTag = 'env=dev';
export const zones = ['UTC', 'America/Los_Angeles', 'Asia/Tokyo', 'Pacific/Auckland'];
const periods: readonly LocalPeriod[] = ['ever', 'day', 'day', 'month'];
const changeMeanMs = 400;

/** So much that some calls, or many, use it up; of the money that comes at a time four times as much at most. */
function drawAmount(chance: Chance, topUp: bigint): bigint {
  const most = Math.min(4 * Number(topUp), chance.pick([5_000_000, 40_000_000, 300_000_000]));
  return BigInt(chance.between(1, most));
}

/** In half of the worlds with API keys; in half of those no ceiling ever changes. */
export function drawBudgets(chance: Chance, topUp: bigint): BudgetsProfile | undefined {
  if (chance.oneIn(2)) return undefined;
  const kinds = (['account', 'person', 'tag'] as const).filter(() => !chance.oneIn(4));
  const settings = kinds.map((of) => {
    const [every, zone] = [chance.pick(periods), chance.pick(zones)];
    return { of, amount: drawAmount(chance, topUp), every, zone };
  });
  return { settings, changes: chance.oneIn(2) ? chance : undefined };
}

const countedOf = ({ of, every, zone }: SimulatedBudget) => ({
  ...{ of, every, zone },
  ...(of === 'tag' ? { tag: simulatedTag } : {}),
});

/** As the gateway's file has them. */
export const settingsOf = ({ settings }: BudgetsProfile): readonly object[] =>
  settings.map((budget) => ({ ...countedOf(budget), amount: formatUsd(money(budget.amount)) }));

export interface CeilingsOptions {
  readonly chance: Chance;
  readonly settings: readonly SimulatedBudget[];
  readonly accounts: readonly AccountProfile[];
  readonly topUp: bigint;
  readonly errands: Errands;
}

/** Operators give an account a ceiling of its own for one of the budgets, and take it away. */
export class Ceilings {
  readonly #options: CeilingsOptions;
  /** Those of an account and a kind that somebody knows of. */
  readonly #own = new Map<string, string>();

  constructor(options: CeilingsOptions) {
    this.#options = options;
  }

  begin(again: (label: string, meanMs: number, work: () => void) => void): void {
    if (this.#options.settings.length > 0) again('ceiling', changeMeanMs, () => this.#change());
  }

  #change(): void {
    const { chance, accounts, settings, topUp, errands } = this.#options;
    const account = chance.pick(accounts).id;
    const budget = chance.pick(settings);
    const name = `${account} ${budget.of}`;
    const own = this.#own.get(name);
    if (own !== undefined && chance.oneIn(3)) {
      this.#own.delete(name);
      errands.run({
        label: 'end a budget',
        work: ({ ownBudgets }) => ownBudgets.end(account, 'operator', own),
        reported: () => {},
      });
      return;
    }
    const terms: BudgetTerms = { ...countedOf(budget), amount: money(drawAmount(chance, topUp)) };
    errands.run({
      label: 'set a budget',
      work: ({ ownBudgets }) => ownBudgets.set(account, 'operator', terms),
      reported: (stored) => void this.#own.set(name, stored!.id),
      unknown: () => {},
    });
  }
}
