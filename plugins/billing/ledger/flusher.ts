/** Applies the backlog to the database batch by batch, and refreshes the balances in memory from the database. */
import type { Clock, Log } from '../../../core/contract/host-tools.ts';
import { Outage } from '../../../core/contract/outage.ts';
import type { Money } from '../../common/domain/money.ts';
import { Pace } from '../../common/kit/pace.ts';
import type { Funds } from '../grants/funds.ts';
import { accountsOf, type Backlog, type Batch, batchBytes, textOf } from './backlog.ts';
import type { Balance } from './balance.ts';
import type { BalanceCache } from './balance-cache.ts';
import { FencedError } from './batch.ts';

const longestPauseMs = 5_000;
/** About the time between two batches under load. */
export const beatMs = 250;
const nothingDue = Promise.resolve(true);

export interface FlusherOptions {
  readonly backlog: Backlog;
  readonly balances: BalanceCache;
  readonly clock: Clock;
  readonly log: Log;
  /** The database's cursor at the start. */
  readonly applied: number;
  /**
   * Applies journal text idempotently, moves the cursor to `applied`, and returns the accounts' balances afterwards.
   * `accounts`: those of which calls end in the text, with what their running calls hold.
   */
  readonly apply: (text: string, accounts: ReadonlyMap<string, Money>, applied: number) => Promise<Map<string, Money>>;
  readonly fundsOf: (accountIds: readonly string[]) => Promise<Map<string, Funds>>;
}

export class Flusher {
  readonly #options: FlusherOptions;
  readonly #pace: Pace;
  readonly #outage: Outage;
  /** Accounts that another process may have changed since their balances were read. */
  readonly #stale = new Set<string>();
  /** Callers that wait for the next read, whether it succeeds or not. */
  #isRequested = new Map<string, PromiseWithResolvers<boolean>>();
  /** Callers that wait for the read in progress. */
  #reading = new Map<string, PromiseWithResolvers<boolean>>();
  #running: Promise<boolean> | undefined;
  #applied: number;
  /** Batches up to this number are applied in one go. */
  #wanted = -1;
  #failures = 0;
  #fenced = false;
  #notBefore = Number.NEGATIVE_INFINITY;

  constructor(options: FlusherOptions) {
    this.#options = options;
    this.#pace = new Pace({ clock: options.clock, beatMs, fullBytes: batchBytes });
    this.#applied = options.applied;
    const { clock, log } = options;
    const [began, over] = ['the ledger could not be written', 'the ledger is written again'];
    this.#outage = new Outage({ clock, log, began, over, fields: {} });
  }

  /** Whether another process has claimed the journal: from then on this one must not spend. */
  get fenced(): boolean {
    return this.#fenced;
  }

  /** The database's cursor: all records up to this sequence number are applied. */
  get appliedSequence(): number {
    return this.#applied;
  }

  /**
   * Applies everything pending, also what the journal writes at the end of this turn. Resolves with false when the
   * database failed; then the next try waits a little longer.
   */
  drain(): Promise<boolean> {
    return this.#applyThrough(this.#options.backlog.newest + 1);
  }

  /**
   * Applies what is pending if it is due, and leaves what comes meanwhile to the next batch. Call it every few
   * milliseconds; undefined: there is nothing to do now.
   */
  advance(): Promise<boolean> | undefined {
    const { backlog } = this.#options;
    const isRequested = this.#stale.size > 0 || this.#isWanted();
    // Text that makes no row goes with the next that does, or when there is much of it.
    const isDue = backlog.hasRows ? this.#pace.isDue(backlog.bytes) : backlog.bytes >= batchBytes;
    if (!isRequested && !isDue) return undefined;
    return this.#applyThrough(backlog.newest);
  }

  #isWanted(): boolean {
    const { head } = this.#options.backlog;
    return head !== undefined && head <= this.#wanted;
  }

  #applyThrough(newest: number): Promise<boolean> {
    if (newest > this.#wanted) this.#wanted = newest;
    if (this.#running === undefined && !this.#isWanted() && this.#stale.size === 0) return nothingDue;
    // Begins after a moment, so that requests made together are answered together.
    this.#running ??= Promise.resolve().then(() => this.#run());
    return this.#running;
  }

  /**
   * Reads an account's balance again, between two batches. Resolves with whether that succeeded; if not, it is
   * retried.
   */
  refresh(accountId: string): Promise<boolean> {
    this.#stale.add(accountId);
    let requested = this.#isRequested.get(accountId);
    if (requested === undefined) {
      requested = Promise.withResolvers<boolean>();
      this.#isRequested.set(accountId, requested);
    }
    void this.drain();
    return requested.promise;
  }

  async #run(): Promise<boolean> {
    const { backlog, clock } = this.#options;
    try {
      if (clock.monotonic() < this.#notBefore) {
        answer(this.#isRequested, false);
        return false;
      }
      this.#pace.begun();
      while (this.#isWanted() || this.#stale.size > 0) {
        const batch = this.#isWanted() ? backlog.take() : undefined;
        if (batch !== undefined) await this.#apply(batch);
        if (this.#stale.size > 0) await this.#reread();
      }
      this.#outage.succeeded();
      this.#failures = 0;
      return true;
    } catch (error) {
      const pauseMs = Math.min(longestPauseMs, 50 * 2 ** this.#failures);
      this.#failures += 1;
      this.#fenced ||= error instanceof FencedError;
      this.#notBefore = clock.monotonic() + pauseMs;
      this.#outage.failed(error);
      answer(this.#isRequested, false);
      return false;
    } finally {
      // In the turn in which nothing more was wanted: who asks later begins another run.
      this.#running = undefined;
    }
  }

  /** A failed batch may have been committed; it stays at the head of the backlog and is applied again. */
  async #apply(batch: Batch): Promise<void> {
    const { apply, backlog, balances: inMemory } = this.#options;
    const balances = await apply(textOf(batch), accountsOf(batch), batch.last);
    this.#applied = batch.last;
    backlog.drop();
    for (const [accountId, balance] of balances) {
      if (!inMemory.reconcileTotal(accountId, balance)) this.#stale.add(accountId);
    }
  }

  /** Safe only while no batch failed: the balance may already include that one, although it is still queued. */
  async #reread(): Promise<void> {
    const accountIds = [...this.#stale];
    this.#reading = this.#isRequested;
    // Changes announced during this read are for the next one.
    this.#stale.clear();
    this.#isRequested = new Map();
    try {
      const funds = await this.#options.fundsOf(accountIds);
      for (const [accountId, found] of funds) this.#options.balances.reconcile(accountId, found);
      answer(this.#reading, true);
    } catch (error) {
      for (const accountId of accountIds) this.#stale.add(accountId);
      answer(this.#reading, false);
      throw error;
    }
  }

  /** For a request that its balance in memory cannot pay: asks the database, unless that was done just now. */
  async freshen(balance: Balance): Promise<boolean> {
    const pending = this.#reading.get(balance.accountId) ?? this.#isRequested.get(balance.accountId);
    return pending === undefined ? balance.mayAsk() && this.refresh(balance.accountId) : pending.promise;
  }
}

function answer(requested: Map<string, PromiseWithResolvers<boolean>>, worked: boolean): void {
  for (const { resolve } of requested.values()) resolve(worked);
  requested.clear();
}
