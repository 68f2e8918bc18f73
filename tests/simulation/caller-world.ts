/** All of a world that API keys stand on: their tables, their owners, how a change of one is reported, and who is cut off. */
import { budgetsTopic } from '../../plugins/billing/budgets/rows.ts';
import { Ceilings } from './budgets.ts';
import { Callers } from './callers.ts';
import type { Chance } from './chance.ts';
import type { Errands } from './errands.ts';
import { CallerTable } from './memory-callers.ts';
import type { MemoryLedger } from './memory-ledger.ts';
import type { Again } from './mishaps.ts';
import type { Mutant } from './mutants.ts';
import type { Node } from './node.ts';
import type { Oracle } from './oracle.ts';
import type { CallersProfile, Profile } from './profile.ts';
import type { Schedule } from './schedule.ts';

/** Mostly a notification wakes who listens; what is announced is found by looking, four times a second, in any case. */
const newsMeanMs = 60;
const pollMs = 250;
/** Behind one in so many changes of a key somebody dies, who may be the one that was to tell of it. */
const deadlyOneIn = 12;

export interface CallerWorldOptions {
  readonly schedule: Schedule;
  readonly chance: Chance;
  readonly oracle: Oracle;
  readonly ledger: MemoryLedger;
  readonly profile: Profile;
  readonly callers: CallersProfile;
  readonly mutant: Mutant;
  /** Some process dies. */
  readonly crash: () => void;
}

export class CallerWorld {
  readonly table = new CallerTable();
  readonly #options: CallerWorldOptions;
  #nodes: readonly Node[] = [];
  #callers: Callers | undefined;
  #ceilings: Ceilings | undefined;

  constructor(options: CallerWorldOptions) {
    this.#options = options;
    const { schedule, chance, oracle, ledger, profile } = options;
    for (const { id, plan } of profile.accounts) {
      const terms = { plan: plan.name, planEndsAt: null, disabled: false, multiplier: null, retention: null };
      this.table.accounts.set(id, { id, name: id, ...terms, createdAt: new Date(0) });
    }
    this.table.onWrite = (key) => {
      oracle.callers.wrote(key);
      if (chance.oneIn(deadlyOneIn)) schedule.after(chance.delay(2), undefined, 'dies behind a change', options.crash);
    };
    this.table.onAnnounce = (hash) => this.#announce('key', hash);
    oracle.callers.endOf = (id) => ledger.callOf(id);
    const { budgets } = oracle.callers;
    budgets.endOf = oracle.callers.endOf;
    budgets.settings = profile.budgets?.settings ?? [];
    budgets.wallOf = (node) => this.#nodes[node]!.wallClock;
    const own = ledger.ownBudgets;
    own.isUsed = profile.budgets?.changes !== undefined;
    own.onWrite = (account, terms, isEnded) => {
      budgets.wrote(account, terms, isEnded);
      this.#announce(budgetsTopic, account);
    };
  }

  /** Callers come once there are nodes. */
  open(nodes: readonly Node[], errands: Errands): Callers {
    const { chance, profile, oracle } = this.#options;
    this.#nodes = nodes;
    this.#callers = new Callers({ chance, profile, oracle: oracle.callers, errands });
    const { budgets, accounts, topUp } = profile;
    this.#ceilings =
      budgets?.changes &&
      new Ceilings({ chance: budgets.changes, settings: budgets.settings, accounts, topUp, errands });
    return this.#callers;
  }

  begin(again: Again): void {
    const { chance, callers } = this.#options;
    this.#callers!.begin();
    this.#ceilings?.begin(again);
    again('API keys', callers.meanMs, () => this.#callers!.happen());
    again('cut off', callers.cutMeanMs, () => this.#cutOff(chance.pick(this.#nodes)));
  }

  /** A row of the table of changes: the one that can read that hears of it soon, and the one that cannot as soon as he can. */
  #announce(topic: string, subject: string): void {
    const { schedule, chance, mutant } = this.#options;
    if (mutant.announces?.(topic) === false) return;
    for (const node of this.#nodes) {
      const delayMs = Math.min(chance.delay(newsMeanMs), pollMs);
      schedule.after(delayMs, undefined, `news of a ${topic}`, () => this.#report(node, topic, subject));
    }
  }

  #report(node: Node, topic: string, subject: string): void {
    const { schedule, mutant } = this.#options;
    if (!node.canRead) {
      schedule.after(pollMs, undefined, `news of a ${topic}`, () => this.#report(node, topic, subject));
      return;
    }
    if (mutant.hears?.(topic) !== false) node.hear(topic, subject);
  }

  #cutOff(node: Node): void {
    const { schedule, chance, oracle } = this.#options;
    if (node.isCutOff) return;
    node.isCutOff = true;
    const back = oracle.callers.away(node.index);
    schedule.after(chance.delay(chance.pick([300, 3_000])), undefined, 'no more cut off', () => {
      node.isCutOff = false;
      back();
    });
  }

  /** Everybody reaches the database again. */
  calm(): void {
    for (const node of this.#nodes) node.isCutOff = false;
  }
}
