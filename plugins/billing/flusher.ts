/** Carries the backlog to the database batch by batch, and the database's balances back to memory. */
import type { Clock, Log } from '../../core/contract.ts';
import type { Money } from '../../core/money.ts';
import { accountsOf, type Backlog, type Batch, textOf } from './backlog.ts';
import { ShutOutError } from './batch.ts';
import type { Funds } from './funds.ts';
import type { Purse, Purses } from './purses.ts';

const longestPauseMs = 5_000;
const nothingDue = Promise.resolve(true);

export interface FlusherOptions {
  readonly backlog: Backlog;
  readonly purses: Purses;
  readonly clock: Clock;
  readonly log: Log;
  /** The database's cursor at the start. */
  readonly applied: number;
  /** Applies journal text, idempotently, moves the cursor to `applied`, and tells the accounts' balances afterwards. */
  readonly apply: (text: string, accountIds: readonly string[], applied: number) => Promise<Map<string, Money>>;
  readonly fundsOf: (accountIds: readonly string[]) => Promise<Map<string, Funds>>;
}

export class Flusher {
  readonly #options: FlusherOptions;
  /** Accounts whose balance another process may have changed, until it was read anew. */
  readonly #stale = new Set<string>();
  /** Who waits for the next reading, whether it works or not. */
  #asked = new Map<string, PromiseWithResolvers<boolean>>();
  /** Who waits for the reading that is going on. */
  #reading = new Map<string, PromiseWithResolvers<boolean>>();
  #running: Promise<boolean> | undefined;
  #applied: number;
  #failures = 0;
  #shutOut = false;
  #notBefore = Number.NEGATIVE_INFINITY;

  constructor(options: FlusherOptions) {
    this.#options = options;
    this.#applied = options.applied;
  }

  /** Whether another process has taken over: from then on this one must not spend. */
  get shutOut(): boolean {
    return this.#shutOut;
  }

  /** The database's cursor: no record up to this sequence number is left to apply. */
  get appliedSequence(): number {
    return this.#applied;
  }

  /** Applies all that is due. Resolves with false when the database refused; then the next try waits a little longer. */
  drain(): Promise<boolean> {
    if (this.#running === undefined && this.#options.backlog.empty && this.#stale.size === 0) return nothingDue;
    // Begins in a moment, so that what is asked for in one go is answered in one go.
    this.#running ??= Promise.resolve()
      .then(() => this.#run())
      .finally(() => {
        this.#running = undefined;
      });
    return this.#running;
  }

  /** Reads an account's balance anew, between two batches. Resolves with whether that worked; if not, it is tried again. */
  refresh(accountId: string): Promise<boolean> {
    this.#stale.add(accountId);
    let asked = this.#asked.get(accountId);
    if (asked === undefined) {
      asked = Promise.withResolvers<boolean>();
      this.#asked.set(accountId, asked);
    }
    void this.drain();
    return asked.promise;
  }

  async #run(): Promise<boolean> {
    if (this.#options.clock.monotonic() < this.#notBefore) {
      answer(this.#asked, false);
      return false;
    }
    const { backlog } = this.#options;
    try {
      while (!backlog.empty || this.#stale.size > 0) {
        const batch = backlog.take();
        if (batch !== undefined) await this.#apply(batch);
        if (this.#stale.size > 0) await this.#reread();
      }
      this.#failures = 0;
      return true;
    } catch (error) {
      const pauseMs = Math.min(longestPauseMs, 50 * 2 ** this.#failures);
      this.#failures += 1;
      this.#shutOut ||= error instanceof ShutOutError;
      this.#notBefore = this.#options.clock.monotonic() + pauseMs;
      this.#options.log.error({ error, backlog: backlog.rows, pauseMs }, 'the ledger could not be written');
      answer(this.#asked, false);
      return false;
    }
  }

  /** A batch that failed may have been committed all the same; it stays at the head of the backlog and is applied again. */
  async #apply(batch: Batch): Promise<void> {
    const { apply, backlog, purses } = this.#options;
    const balances = await apply(textOf(batch), accountsOf(batch), batch.last);
    this.#applied = batch.last;
    backlog.drop();
    for (const [accountId, balance] of balances) {
      if (!purses.reconcileBalance(accountId, balance)) this.#stale.add(accountId);
    }
  }

  /** Safe only after a batch that succeeded or with none left: before, the balance may already hold what is still queued. */
  async #reread(): Promise<void> {
    const accountIds = [...this.#stale];
    this.#reading = this.#asked;
    // News that come while the balances are being read are for the next reading.
    this.#stale.clear();
    this.#asked = new Map();
    try {
      const funds = await this.#options.fundsOf(accountIds);
      for (const [accountId, found] of funds) this.#options.purses.reconcile(accountId, found);
      answer(this.#reading, true);
    } catch (error) {
      for (const accountId of accountIds) this.#stale.add(accountId);
      answer(this.#reading, false);
      throw error;
    }
  }

  /** For a request that its purse cannot pay: asks the database, at most once a second for each account. */
  async freshen(purse: Purse): Promise<boolean> {
    const now = this.#options.clock.monotonic();
    const pending = this.#reading.get(purse.accountId) ?? this.#asked.get(purse.accountId);
    if (pending !== undefined) return pending.promise;
    if (now - purse.askedAt < 1_000) return false;
    purse.askedAt = now;
    return this.refresh(purse.accountId);
  }
}

function answer(asked: Map<string, PromiseWithResolvers<boolean>>, worked: boolean): void {
  for (const { resolve } of asked.values()) resolve(worked);
  asked.clear();
}
