/** What this process may spend of each account, in memory: loaded on first use, shared by all of its requests, bounded. */
import type { Clock } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { type Money, money } from '../../core/money.ts';
import type { Funds, PoolState } from './funds.ts';
import { bindingWindow, lockedAt, type WindowAt } from './pots.ts';

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
  /** Its grants that expire; undefined: it has none, and all of its money may be spent at any time. */
  pool: PoolState | undefined;
  /** What of the balance may not be spent between `lockedFrom` and `lockedUntil`: it has expired, or its windows are used up. */
  locked: Money;
  lockedFrom: number;
  lockedUntil: number;
  /** The plan's term that began last, and the wall-clock time at which a grant is due or one that expired must be taken off. */
  term: string | undefined;
  upkeepAt: number;
  upkeep: Promise<void> | undefined;
  /** Set aside for a debit that the database is being asked for. */
  reserved: Money;
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
  /** What the account has in the database; 0 when it has nothing yet. */
  readonly fundsOf: (accountId: string) => Promise<Funds>;
}

/** The database's balance and every entry that has not reached it yet; of it, what is locked may not be spent now. */
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
    const available = purse.base + purse.posted;
    if (amount === 0n) return true;
    return available >= amount && (purse.pool === undefined || available - this.#lockedIn(purse) >= amount);
  }

  /** What may be spent now. */
  spendable(purse: Purse): Money {
    return money(purse.base + purse.posted - (purse.pool === undefined ? 0n : this.#lockedIn(purse)));
  }

  /** The window that keeps money back which the balance has; undefined when the money is not there. */
  bindingWindow(purse: Purse, amount: Money): WindowAt | undefined {
    if (purse.pool === undefined || purse.base + purse.posted < amount) return undefined;
    return bindingWindow(purse.pool.pots, purse.pool.spent, this.#options.clock.now());
  }

  /**
   * What is not free now. The grants are those that the database told last: what was set aside since then reduces their
   * rest and what is free of it alike, so that the difference stays; where the time of setting aside lies in an earlier
   * window it is too high until the database has the charge, never too low.
   */
  #lockedIn(purse: Purse): Money {
    const now = this.#options.clock.now();
    if (now >= purse.lockedUntil || now < purse.lockedFrom) {
      const { pots, spent } = purse.pool!;
      const { locked, start, end } = lockedAt(pots, spent, now);
      Object.assign(purse, { locked, lockedFrom: start, lockedUntil: end });
    }
    return purse.locked;
  }

  /** The database's balance is the truth; what has not reached it comes on top. Only while no batch is on its way. */
  reconcile(accountId: string, funds: Funds): void {
    const purse = this.#purses.get(accountId);
    if (purse === undefined) return;
    purse.base = money(funds.balance - purse.appliedPosted - purse.reserved);
    if (funds.pool !== undefined || purse.pool !== undefined) setPool(purse, funds.pool);
    if (funds.term === purse.term) return;
    // A plan was bought: whoever calls next sees to it.
    purse.term = funds.term;
    purse.upkeepAt = Number.NEGATIVE_INFINITY;
  }

  /** The database's balance alone, after a batch: of an account with a pool more than that must be asked. */
  reconcileBalance(accountId: string, balance: Money): boolean {
    const purse = this.#purses.get(accountId);
    if (purse?.pool !== undefined) return false;
    if (purse !== undefined) purse.base = money(balance - purse.appliedPosted - purse.reserved);
    return true;
  }

  /**
   * Keeps `amount` from being spent by calls until the returned function is told that the purse, which must be in use, has
   * been reconciled since; if it has not, the amount stays set aside until the purse is forgotten. undefined: it is not there.
   */
  reserve(purse: Purse, amount: Money): ((reconciled: boolean) => void) | undefined {
    if (purse.base + purse.posted < amount) return undefined;
    const move = (by: bigint) => {
      purse.reserved = money(purse.reserved + by);
      purse.base = money(purse.base - by);
    };
    move(amount);
    return (reconciled) => {
      if (reconciled) move(-amount);
    };
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
    const { clock, limit, fundsOf } = this.#options;
    if (this.#purses.size + this.#loading.size >= limit) this.sweep(0);
    if (this.#purses.size + this.#loading.size >= limit) {
      throw new GatewayError('overloaded', 'Too many accounts are active at the moment.', { retryAfterMs: 1_000 });
    }
    const { balance, pool, term } = await fundsOf(accountId).catch((cause: unknown) => {
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
      pool: undefined,
      locked: money(0n),
      lockedFrom: Number.NEGATIVE_INFINITY,
      lockedUntil: Number.POSITIVE_INFINITY,
      term,
      upkeepAt: Number.NEGATIVE_INFINITY,
      upkeep: undefined,
      reserved: money(0n),
    };
    setPool(purse, pool);
    this.#purses.set(accountId, purse);
    return purse;
  }
}

/** What is locked is worked out when it is asked for next. */
function setPool(purse: Purse, pool: PoolState | undefined): void {
  purse.pool = pool;
  purse.lockedUntil = Number.NEGATIVE_INFINITY;
}
