/** Watches budgets (M15): no hold exceeds one that it lies in, beside all that is charged in its period and set aside in any process. */
import type { EndRecord } from '../../plugins/billing/model/records.ts';
import type { BudgetTerms } from '../../plugins/common/domain/organizations/budgets.ts';
import { Absences, nodeName } from './absences.ts';
import type { SimulatedBudget } from './budgets.ts';
import { Ceiling, firstCover } from './ceiling.ts';
import { beginOf } from './local-periods.ts';
import type { Schedule } from './schedule.ts';
import type { Trace } from './trace.ts';
import type { Violations } from './violations.ts';

/** What is known of who calls. */
export interface Who {
  readonly person: string | undefined;
  readonly isTagged: boolean;
}

/** An account's ceiling of a kind from a commit on. */
interface Version {
  readonly from: number;
  readonly amount: bigint;
}

/** One budget that a call lies in. */
interface Place {
  readonly budget: SimulatedBudget;
  readonly id: string;
  /** The ceilings that may be believed when it comes, and when that was. */
  readonly amounts: readonly bigint[];
}

interface Entry {
  readonly places: readonly Place[];
  readonly at: number;
  readonly wallMs: number;
}

/** In what a period is counted. */
interface Checked {
  readonly amount: bigint;
  readonly from: number;
}

export class BudgetsOracle {
  /** Those of the settings, in all accounts. */
  settings: readonly SimulatedBudget[] = [];
  /** The end of a call that the ledger has. */
  endOf: (id: string) => EndRecord | undefined = () => undefined;
  /** What the clock of a node says. */
  wallOf: (node: number) => number = () => 0;
  readonly absences: Absences;
  readonly #schedule: Schedule;
  readonly #violations: Violations;
  /** By account and kind. */
  readonly #versions = new Map<string, Version[]>();
  readonly #ceilings = new Map<string, Ceiling>();
  readonly #entries = new Map<Trace, Entry>();
  /** By node and account, where the budgets of that could not be read. */
  readonly #unread = new Map<string, () => void>();

  constructor(schedule: Schedule, violations: Violations) {
    this.absences = new Absences(schedule);
    this.#schedule = schedule;
    this.#violations = violations;
  }

  /** An account's own ceiling was committed, or its end. */
  wrote(account: string, { of, amount }: BudgetTerms, isEnded: boolean): void {
    const budget = this.settings.find((known) => known.of === of)!;
    this.#versionsOf(account, budget).push({ from: this.#schedule.now, amount: isEnded ? budget.amount : amount });
  }

  unread(node: number, account: string): void {
    const name = readingName(node, account);
    if (!this.#unread.has(name)) this.#unread.set(name, this.absences.begin(name));
  }

  read(node: number, account: string): void {
    const name = readingName(node, account);
    this.#unread.get(name)?.();
    this.#unread.delete(name);
  }

  admitted(trace: Trace, { person, isTagged }: Who): void {
    const { account, node } = trace;
    const ids = { account, person: person && `${account} ${person}`, tag: isTagged ? `${account} tag` : undefined };
    const places = this.settings.flatMap((budget) => {
      const id = ids[budget.of];
      return id === undefined ? [] : [{ budget, id, amounts: this.#believed(account, budget, node) }];
    });
    this.#entries.set(trace, { places, at: this.#schedule.now, wallMs: this.wallOf(node) });
  }

  /** Money was set aside for it. */
  held(trace: Trace): void {
    const entry = this.#entries.get(trace);
    for (const place of entry?.places ?? []) {
      const { budget, id, amounts } = place;
      const { every, zone } = budget;
      // Another ceiling may have been set while it waited, and another period may have begun.
      const later = this.#versionsOf(trace.account, budget).filter(({ from }) => from > entry!.at);
      const all = [...amounts, ...later.map(({ amount }) => amount)];
      const begins = [entry!.wallMs, this.wallOf(trace.node)].map((at) => beginOf(every, zone, at));
      const ceiling = this.#ceilings.get(id) ?? new Ceiling();
      this.#ceilings.set(id, ceiling);
      const amount = all.reduce((most, one) => (one > most ? one : most), 0n);
      this.#check(place, ceiling, trace, { amount, from: Math.max(...begins) });
      ceiling.add(trace, true);
    }
  }

  #check({ budget, id }: Place, ceiling: Ceiling, trace: Trace, { amount, from }: Checked): void {
    const cover = firstCover(trace);
    const { spent, beyond } = ceiling.taken(this.endOf, from);
    if (cover === 0n || spent + cover <= amount + beyond) return;
    const what = `${spent} nano-USD of ${amount} are spent of the budget of ${budget.of}, ${beyond} beyond holds, and ${cover} more were let in`;
    this.#violations.add('M15', id, what);
  }

  #versionsOf(account: string, budget: SimulatedBudget): Version[] {
    const name = `${account} ${budget.of}`;
    const known = this.#versions.get(name) ?? [{ from: Number.NEGATIVE_INFINITY, amount: budget.amount }];
    this.#versions.set(name, known);
    return known;
  }

  /** What the node may take for true. */
  #believed(account: string, budget: SimulatedBudget, node: number): bigint[] {
    const versions = this.#versionsOf(account, budget);
    const names = [nodeName(node), readingName(node, account)];
    const isBelieved = (index: number) => {
      const next = versions[index + 1];
      return next === undefined || this.absences.mayNotKnow(names, next.from);
    };
    return versions.filter((_, index) => isBelieved(index)).map(({ amount }) => amount);
  }
}

const readingName = (node: number, account: string): string => `${nodeName(node)} ${account}`;
