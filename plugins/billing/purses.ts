/** What this process may spend of each account, in memory: loaded on first use, shared by all of its requests, bounded. */
import type { Clock } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { type Money, money } from '../../core/money.ts';
import { remainingIn } from './draws.ts';
import type { Funds, PoolState } from './funds.ts';
import { newSlice, type Slice } from './leases/slice.ts';
import { bindingWindow, lockedAt, type WindowAt } from './pots.ts';

/**
 * The one place that says yes or no to spending an account's money in this process: of the whole balance where no other
 * process spends it, of the slice that the database leased to this one where others do.
 */
export interface Purse {
  readonly accountId: string;
  /** The balance (or the slice of it) without what was posted since the purse was loaded; `posted` on top is what may be spent. */
  base: Money;
  /** Sum and number of all entries since the purse was loaded, and as much of them as the database has. */
  posted: Money;
  rows: number;
  appliedPosted: Money;
  appliedRows: number;
  /** Of a slice: what ended calls have given back of what was set aside for them, and as much of that as the database has. */
  freed: Money;
  appliedFreed: Money;
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
  /** What is known of the lease; undefined: the whole balance is this process's. */
  readonly slice: Slice | undefined;
}

/** What a purse had come to at the last of its entries in one batch. */
export interface Share {
  readonly purse: Purse;
  readonly batch: number;
  posted: Money;
  rows: number;
  freed: Money;
}

export interface PurseOptions {
  readonly clock: Clock;
  /** Accounts in memory at most. */
  readonly limit: number;
  /** An unused purse is forgotten after this long. */
  readonly idleMs: number;
  /** What the account has in the database; 0 when it has nothing yet. */
  readonly fundsOf: (accountId: string) => Promise<Funds>;
  /** Given where processes share accounts: gets the first slice for a new purse, for a call that needs so much. */
  readonly lease?: ((purse: Purse, need: Money) => Promise<unknown>) | undefined;
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

  /**
   * The account's purse, kept in memory until `release`. 503 when the database does not answer: an unknown balance is no
   * balance. `need`: what the call will ask of it.
   */
  async acquire(accountId: string, need: Money = money(0n)): Promise<Purse> {
    const purse = this.#loading.get(accountId) ?? this.#purses.get(accountId) ?? this.#load(accountId, need);
    return this.use(purse instanceof Promise ? await purse : purse);
  }

  [Symbol.iterator](): IterableIterator<Purse> {
    return this.#purses.values();
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

  /** Whether a call that costs `amount` at most may be let in now. */
  admits(purse: Purse, amount: Money): boolean {
    const isKnown = purse.slice === undefined || this.#options.clock.monotonic() < purse.slice.validUntil;
    return isKnown && this.covers(purse, amount);
  }

  /** What may be spent now. */
  spendable(purse: Purse): Money {
    return money(purse.base + purse.posted - (purse.pool === undefined ? 0n : this.#lockedIn(purse)));
  }

  /** The window that keeps money back which the balance has; undefined when the money is not there. */
  bindingWindow(purse: Purse, amount: Money): WindowAt | undefined {
    const rest = purse.slice?.rest ?? purse.base + purse.posted;
    if (purse.pool === undefined || rest < amount) return undefined;
    return bindingWindow(purse.pool.pots, purse.pool.spent, this.#options.clock.now());
  }

  /**
   * What is not free now. The grants are those that the database told last: what was set aside since then reduces their
   * rest and what is free of it alike, so that the difference stays; where the time of setting aside lies in an earlier
   * window it is too high until the database has the charge, never too low.
   */
  #lockedIn(purse: Purse): Money {
    // A slice was cut from what is free.
    if (purse.slice !== undefined) return money(0n);
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
    if (purse.slice === undefined) purse.base = money(funds.balance - purse.appliedPosted - purse.reserved);
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
    // What has expired may have been taken off already, without this process knowing: the rest must cover it.
    const now = this.#options.clock.now();
    const expired = remainingIn(purse.pool?.pots.filter(({ expiresAt }) => expiresAt <= now) ?? []);
    if (purse.base + purse.posted - expired < amount) return undefined;
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
      // A slice is given back before it is forgotten.
      const left = purse.slice !== undefined && purse.base + purse.posted > 0n;
      const settled = purse.users === 0 && purse.rows === purse.appliedRows && !left;
      if (settled && purse.usedAt <= before) this.#purses.delete(purse.accountId);
    }
  }

  #load(accountId: string, need: Money): Promise<Purse> {
    const loading = this.#read(accountId, need).finally(() => this.#loading.delete(accountId));
    this.#loading.set(accountId, loading);
    return loading;
  }

  async #read(accountId: string, need: Money): Promise<Purse> {
    const { clock, limit, fundsOf, lease } = this.#options;
    if (this.#purses.size + this.#loading.size >= limit) this.sweep(0);
    if (this.#purses.size + this.#loading.size >= limit) {
      throw new GatewayError('overloaded', 'Too many accounts are active at the moment.', { retryAfterMs: 1_000 });
    }
    if (lease !== undefined) return this.#readSlice(newPurse(accountId, clock.monotonic(), newSlice()), need);
    const { balance, pool, term } = await fundsOf(accountId).catch((cause: unknown) => {
      throw balanceUnavailable(cause);
    });
    const purse = newPurse(accountId, clock.monotonic(), undefined);
    Object.assign(purse, { base: balance, term });
    setPool(purse, pool);
    this.#purses.set(accountId, purse);
    return purse;
  }

  /** The purse is there before its slice: whoever brings slices looks for it here. */
  async #readSlice(purse: Purse, need: Money): Promise<Purse> {
    this.#purses.set(purse.accountId, purse);
    purse.users += 1;
    try {
      await this.#options.lease!(purse, need);
      return purse;
    } catch (error) {
      if (purse.users === 1) this.#purses.delete(purse.accountId);
      throw error;
    } finally {
      purse.users -= 1;
    }
  }
}

/** The database does not tell what an account has. */
export function balanceUnavailable(cause?: unknown): GatewayError {
  return new GatewayError('overloaded', 'The balance cannot be read at the moment; please try again soon.', {
    code: 'balance_unavailable',
    retryAfterMs: 1_000,
    cause,
  });
}

function newPurse(accountId: string, now: number, slice: Slice | undefined): Purse {
  return {
    accountId,
    base: money(0n),
    posted: money(0n),
    rows: 0,
    appliedPosted: money(0n),
    appliedRows: 0,
    freed: money(0n),
    appliedFreed: money(0n),
    users: 0,
    usedAt: now,
    askedAt: Number.NEGATIVE_INFINITY,
    turn: -1,
    share: undefined,
    pool: undefined,
    locked: money(0n),
    lockedFrom: Number.NEGATIVE_INFINITY,
    lockedUntil: Number.POSITIVE_INFINITY,
    term: undefined,
    upkeepAt: Number.NEGATIVE_INFINITY,
    upkeep: undefined,
    reserved: money(0n),
    slice,
  };
}

/** What is locked is worked out when it is asked for next. */
function setPool(purse: Purse, pool: PoolState | undefined): void {
  purse.pool = pool;
  purse.lockedUntil = Number.NEGATIVE_INFINITY;
}
