/** The way from a gateway to its database: slow, cut off before or after the commit, and late transactions of the dead. */

import type { BudgetShares } from '../../plugins/billing/budgets/shares.ts';
import type { Funds } from '../../plugins/billing/grants/funds.ts';
import type { Leases } from '../../plugins/billing/leases/store.ts';
import type { Cursor } from '../../plugins/billing/ledger/batch.ts';
import type { Entries } from '../../plugins/billing/ledger/entries.ts';
import type { Store } from '../../plugins/billing/store.ts';
import type { Money } from '../../plugins/common/domain/money.ts';
import type { Chance } from './chance.ts';
import { linkedBudgets, MemoryBudgets, type Readings } from './memory-budgets.ts';
import type { Life, Schedule } from './schedule.ts';

export interface DatabaseFaults {
  down: boolean;
  /** One in so many transactions meets a fault; 0: none. */
  faultOneIn: number;
  readonly meanMs: number;
}

const timeoutMs = 40;

export interface LinkOptions {
  readonly schedule: Schedule;
  readonly chance: Chance;
  readonly store: Store;
  readonly faults: DatabaseFaults;
  readonly life: Life;
  /** This way alone is cut. */
  readonly isCut: () => boolean;
  /** Milliseconds that have been leapt over so far: no one is on the way meanwhile. */
  readonly leaptMs: () => number;
  /** false: the process has the database to itself, inside it. */
  readonly shared: boolean;
  readonly readings: Readings;
}

/** One process's connection. What it has sent may be carried out after the process has died. */
export class DatabaseLink implements Store {
  readonly #schedule: Schedule;
  readonly #chance: Chance;
  readonly #store: Store;
  readonly #faults: DatabaseFaults;
  readonly #life: Life;

  readonly #readings: Readings;
  readonly #shared: boolean;
  readonly #leaptMs: () => number;
  readonly #isCut: () => boolean;
  #awaySince: number | undefined;
  /** The journal that this process writes. */
  journal: string | undefined;

  constructor(options: LinkOptions) {
    this.#schedule = options.schedule;
    this.#chance = options.chance;
    this.#store = options.store;
    this.#faults = options.faults;
    this.#life = options.life;
    this.#readings = options.readings;
    this.#shared = options.shared;
    this.#leaptMs = options.leaptMs;
    this.#isCut = options.isCut;
  }

  cursorOf(journal: string): ReturnType<Store['cursorOf']> {
    return this.send('cursor', () => this.#store.cursorOf(journal));
  }

  claim(journal: string, owner: string, epoch: number): Promise<boolean> {
    this.journal = journal;
    return this.send('claim', () => this.#store.claim(journal, owner, epoch));
  }

  apply(text: string, accounts: ReadonlyMap<string, Money>, cursor: Cursor): Promise<Map<string, Money>> {
    return this.send('apply', () => this.#store.apply(text, accounts, cursor));
  }

  funds(accountIds: readonly string[], at: number): Promise<Map<string, Funds>> {
    return this.send('funds', () => this.#store.funds(accountIds, at));
  }

  /** The work's statements are one step here: no other account's come in between, as the account's lock sees to it. */
  transact<T>(accountId: string, at: number, work: (entries: Entries) => Promise<T>): Promise<T> {
    const before = this.#leaptMs();
    const isUndone = this.#faults.faultOneIn > 0 && this.#chance.oneIn(this.#faults.faultOneIn);
    const run = () =>
      this.#store.transact(accountId, at + this.#leaptMs() - before, async (entries) => {
        const result = await work(entries);
        if (isUndone) throw new Error('the transaction could not be committed');
        return result;
      });
    return this.send('entry', run, this.#shared);
  }

  /** Statements come through. */
  get isOpen(): boolean {
    return !this.#faults.down && !this.#isCut();
  }

  /** For how long they have not, as far as anybody has looked. */
  get awayMs(): number {
    this.#awaySince = this.isOpen ? undefined : (this.#awaySince ?? this.#schedule.now);
    return this.#awaySince === undefined ? 0 : this.#schedule.now - this.#awaySince;
  }

  get leases(): Leases {
    const { leases } = this.#store;
    return {
      take: (node, round) => this.send('slices', () => leases.take(node, round)),
      returnAll: (node) => this.send('give back', () => leases.returnAll(node)),
      accountsOf: (node) => this.send('leases', () => leases.accountsOf(node)),
      heartbeat: (node, lives) => this.send('alive', () => leases.heartbeat(node, lives)),
      countOthers: (journal) => this.send('others', () => leases.countOthers(journal)),
      leasedOf: (accountId) => this.send('leased', () => leases.leasedOf(accountId)),
    };
  }

  expired(...range: Parameters<Store['expired']>): ReturnType<Store['expired']> {
    return this.send('expired', () => this.#store.expired(...range));
  }

  endOf(requestId: string): ReturnType<Store['endOf']> {
    return this.send('end', () => this.#store.endOf(requestId));
  }

  get ownBudgets(): Store['ownBudgets'] {
    const { ownBudgets } = this.#store;
    if (!(ownBudgets instanceof MemoryBudgets) || !ownBudgets.isUsed) return ownBudgets;
    return linkedBudgets(ownBudgets, (name, run) => this.send(name, run), this.#readings);
  }

  get budgets(): BudgetShares {
    const { budgets } = this.#store;
    return {
      take: (node, round) => this.send('shares', () => budgets.take(node, round)),
      read: (requests) => this.send('spend', () => budgets.read(requests)),
      returnAll: (node) => this.send('give shares back', () => budgets.returnAll(node)),
      reclaim: (node) => this.send('reclaim shares', () => budgets.reclaim(node)),
    };
  }

  /**
   * One transaction on its way there and its answer on the way back. `mayBeLate`: false for what a database inside the
   * process does before anything that is asked later, or not at all.
   */
  send<T>(name: string, run: () => Promise<T>, mayBeLate = true): Promise<T> {
    return new Promise((resolve, reject) => {
      const { oneIn, delay } = { oneIn: this.#faults.faultOneIn, delay: () => this.#chance.delay(this.#faults.meanMs) };
      const isFaulty = oneIn > 0 && this.#chance.oneIn(oneIn);
      const fate = isFaulty ? this.#chance.below(mayBeLate ? 3 : 2) : -1;
      if (fate === 0) return this.#fail(`${name} refused`, delay(), reject);
      // The others reach the server; what they do there is done the one that still listens.
      const late = fate === 2 ? this.#chance.delay(timeoutMs * this.#chance.pick([2, 10])) : delay();
      if (fate !== -1) this.#fail(`${name} timed out`, late + (fate === 1 ? delay() : timeoutMs - late), reject);
      this.#schedule.after(late, mayBeLate ? undefined : this.#life, name, () => {
        if (!this.isOpen) return this.#fail('the database is down', delay(), reject);
        const done = run();
        if (fate !== -1) return void done.catch(() => {});
        this.#schedule.after(delay(), this.#life, `${name} answered`, () => void done.then(resolve, reject));
        // Its answer is on the way: a failure is heard then.
        done.catch(() => {});
      });
    });
  }

  #fail(what: string, delayMs: number, reject: (error: Error) => void): void {
    this.#schedule.after(Math.max(0, delayMs), this.#life, 'database fault', () => reject(new Error(what)));
  }
}
