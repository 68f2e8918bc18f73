/** What this process may spend of each account, in memory: loaded on first use, shared by all of its requests, bounded. */
import type { Clock } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { type Money, money } from '../../core/money.ts';

/**
 * The one place that says yes or no to spending an account's money in this process. Today the whole balance is ours;
 * a node that shares an account with others would hold a slice of it here, and nobody else need know.
 */
export interface Purse {
  readonly accountId: string;
  /** What may still be set aside: the database's balance and every entry that has not reached it yet. */
  available: Money;
  /** Sum and number of the entries that have not reached the database. */
  unflushed: Money;
  queued: number;
  /** Requests that use it now. */
  users: number;
  usedAt: number;
  /** When the balance was last asked of the database for the sake of a refused request. */
  askedAt: number;
}

export interface PurseOptions {
  readonly clock: Clock;
  /** Accounts in memory at most. */
  readonly limit: number;
  /** An unused purse is forgotten after this long. */
  readonly idleMs: number;
  /** The account's balance in the database; 0 when it has none yet. */
  readonly balanceOf: (accountId: string) => Promise<Money>;
}

export class Purses {
  readonly #options: PurseOptions;
  readonly #purses = new Map<string, Purse>();
  readonly #loading = new Map<string, Promise<Purse>>();

  constructor(options: PurseOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#purses.size;
  }

  find(accountId: string): Purse | undefined {
    return this.#purses.get(accountId);
  }

  /** true when the account is here or on its way, so that news of it matter. */
  knows(accountId: string): boolean {
    return this.#purses.has(accountId) || this.#loading.has(accountId);
  }

  /** The account's purse, kept in memory until `release`. 503 when the database does not answer: an unknown balance is no balance. */
  async acquire(accountId: string): Promise<Purse> {
    const known = this.#purses.get(accountId);
    const purse = known ?? (await this.#load(accountId));
    purse.users += 1;
    purse.usedAt = this.#options.clock.monotonic();
    return purse;
  }

  release(purse: Purse): void {
    purse.users -= 1;
    purse.usedAt = this.#options.clock.monotonic();
  }

  /** Whether `amount` can be set aside. An amount of 0 always can: what is free stays free with an empty balance. */
  covers(purse: Purse, amount: Money): boolean {
    return amount === 0n || purse.available >= amount;
  }

  /** Moves the balance by an entry that is on its way to the database. */
  post(purse: Purse, amount: Money): void {
    purse.available = money(purse.available + amount);
    purse.unflushed = money(purse.unflushed + amount);
    purse.queued += 1;
  }

  /** An entry has reached the database. */
  applied(purse: Purse, amount: Money): void {
    purse.unflushed = money(purse.unflushed - amount);
    purse.queued -= 1;
  }

  /** The database's balance is the truth; what has not reached it comes on top. Only while no batch is on its way. */
  reconcile(accountId: string, balance: Money): void {
    const purse = this.#purses.get(accountId);
    if (purse !== undefined) purse.available = money(balance + purse.unflushed);
  }

  /** Forgets purses that nobody has used for a while. */
  sweep(idleMs: number = this.#options.idleMs): void {
    const before = this.#options.clock.monotonic() - idleMs;
    for (const purse of this.#purses.values()) {
      if (purse.users === 0 && purse.queued === 0 && purse.usedAt <= before) this.#purses.delete(purse.accountId);
    }
  }

  #load(accountId: string): Promise<Purse> {
    const running = this.#loading.get(accountId);
    if (running !== undefined) return running;
    const loading = this.#read(accountId).finally(() => this.#loading.delete(accountId));
    this.#loading.set(accountId, loading);
    return loading;
  }

  async #read(accountId: string): Promise<Purse> {
    const { clock, limit, balanceOf } = this.#options;
    if (this.#purses.size + this.#loading.size >= limit) this.sweep(0);
    if (this.#purses.size + this.#loading.size >= limit) {
      throw new GatewayError('overloaded', 'Too many accounts are active at the moment.', { retryAfterMs: 1_000 });
    }
    const balance = await balanceOf(accountId).catch((cause: unknown) => {
      throw new GatewayError('overloaded', 'The balance cannot be read at the moment; please try again soon.', {
        code: 'balance_unavailable',
        retryAfterMs: 1_000,
        cause,
      });
    });
    const now = clock.monotonic();
    const purse: Purse = {
      accountId,
      available: balance,
      unflushed: money(0n),
      queued: 0,
      users: 0,
      usedAt: now,
      askedAt: Number.NEGATIVE_INFINITY,
    };
    this.#purses.set(accountId, purse);
    return purse;
  }
}
