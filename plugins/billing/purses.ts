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
  /** The database's balance without what was posted to it since the purse was loaded; `posted` on top is what may be spent. */
  base: Money;
  /** Sum and number of all entries since the purse was loaded, and as much of them as the database has. */
  posted: Money;
  rows: number;
  appliedPosted: Money;
  appliedRows: number;
  /** Requests that use it now. */
  users: number;
  usedAt: number;
  /** When the balance was last asked of the database for the sake of a refused request. */
  askedAt: number;
  /** The last turn of the backlog in which it is named, and its share in the last batch in which it is. */
  turn: number;
  share: Share | undefined;
}

/** What a purse had come to at the last of its entries in one batch. */
export interface Share {
  readonly purse: Purse;
  readonly batch: number;
  posted: Money;
  rows: number;
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

/** What may still be set aside: the database's balance and every entry that has not reached it yet. */
export function availableIn(purse: Purse): Money {
  return money(purse.base + purse.posted);
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
    return this.use(this.#purses.get(accountId) ?? (await this.#load(accountId)));
  }

  /** Keeps a purse that is in memory there until `release`. */
  use(purse: Purse): Purse {
    purse.users += 1;
    return purse;
  }

  release(purse: Purse): void {
    purse.users -= 1;
    purse.usedAt = this.#options.clock.monotonic();
  }

  /** Whether `amount` can be set aside. An amount of 0 always can: what is free stays free with an empty balance. */
  covers(purse: Purse, amount: Money): boolean {
    return amount === 0n || purse.base + purse.posted >= amount;
  }

  /** The database's balance is the truth; what has not reached it comes on top. Only while no batch is on its way. */
  reconcile(accountId: string, balance: Money): void {
    const purse = this.#purses.get(accountId);
    if (purse !== undefined) purse.base = money(balance - purse.appliedPosted);
  }

  /** Forgets purses that nobody has used for a while. */
  sweep(idleMs: number = this.#options.idleMs): void {
    const before = this.#options.clock.monotonic() - idleMs;
    for (const purse of this.#purses.values()) {
      const settled = purse.users === 0 && purse.rows === purse.appliedRows;
      if (settled && purse.usedAt <= before) this.#purses.delete(purse.accountId);
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
      base: balance,
      posted: money(0n),
      rows: 0,
      appliedPosted: money(0n),
      appliedRows: 0,
      users: 0,
      usedAt: now,
      askedAt: Number.NEGATIVE_INFINITY,
      turn: -1,
      share: undefined,
    };
    this.#purses.set(accountId, purse);
    return purse;
  }
}
