/**
 * Cached balances: what this process may spend of each account, loaded on first use, shared by its requests,
 * bounded.
 */

import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import { type Money, money } from '../../common/domain/money.ts';
import { within } from '../../common/kit/waits/within.ts';
import { remainingIn } from '../grants/allocations.ts';
import { bindingWindow, lockedAt, type WindowAt } from '../grants/balances.ts';
import type { Funds, PoolState } from '../grants/funds.ts';
import { type CachedBalance, type LeaseShare, newLeaseShare } from './cached-balance.ts';

/** How long a request waits for a running debit. */
const longestDebitMs = 5_000;
/** How long a call waits for a balance that is read for the first time. */
export const longestReadMs = 5_000;

export interface BalanceCacheOptions {
  readonly clock: Clock;
  /** The most accounts in memory. */
  readonly limit: number;
  /** An unused balance is evicted after this long. */
  readonly idleMs: number;
  /** The account's funds in the database; 0 when it has none. */
  readonly fundsOf: (accountId: string) => Promise<Funds>;
  /**
   * Present where processes share accounts: acquires the first lease share for a new balance, for a call that needs
   * this much.
   */
  readonly lease?: ((cached: CachedBalance, need: Money) => Promise<unknown>) | undefined;
}

/** The database's balance without what calls hold and what it lacks of their costs; locked money in it may not be spent now. */
export function availableIn(cached: CachedBalance): Money {
  return money(cached.base + cached.posted);
}

export class BalanceCache {
  readonly #options: BalanceCacheOptions;
  readonly #balances = new Map<string, CachedBalance>();
  readonly #loading = new Map<string, Promise<CachedBalance>>();

  constructor(options: BalanceCacheOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#balances.size;
  }

  /** The most accounts in memory. */
  get limit(): number {
    return this.#options.limit;
  }

  find(accountId: string): CachedBalance | undefined {
    return this.#balances.get(accountId);
  }

  /** Whether the account is in memory or being loaded, so that changes to it matter. */
  knows(accountId: string): boolean {
    return this.#balances.has(accountId) || this.#loading.has(accountId);
  }

  /**
   * The account's cached balance, pinned until `release`. 503 when the database does not answer: an unknown balance
   * allows nothing. `need`: the amount that the call will request. `longestMs`: 503 after so long, too; the balance being read is
   * there for a later call.
   */
  async acquire(accountId: string, need: Money = money(0n), longestMs?: number): Promise<CachedBalance> {
    const cached = this.#loading.get(accountId) ?? this.#balances.get(accountId) ?? this.#load(accountId, need);
    if (!(cached instanceof Promise)) return this.use(cached);
    return this.use(await (longestMs === undefined ? cached : within(longestMs, cached, balanceUnavailable)));
  }

  [Symbol.iterator](): IterableIterator<CachedBalance> {
    return this.#balances.values();
  }

  /** Pins a cached balance until `release`. */
  use(cached: CachedBalance): CachedBalance {
    cached.users += 1;
    return cached;
  }

  release(cached: CachedBalance): void {
    cached.users -= 1;
    cached.usedAt = this.#options.clock.monotonic();
  }

  /** Whether `amount` can be held. An amount of 0 always can: free calls need no balance. */
  covers(cached: CachedBalance, amount: Money): boolean {
    const available = cached.base + cached.posted;
    if (amount === 0n) return true;
    return available >= amount && (cached.pool === undefined || available - this.#lockedIn(cached) >= amount);
  }

  /** Whether a call that costs `amount` at most may be admitted now. */
  admits(cached: CachedBalance, amount: Money): boolean {
    const isKnown = cached.lease === undefined || this.#options.clock.monotonic() < cached.lease.validUntil;
    return isKnown && this.covers(cached, amount);
  }

  /** The amount that may be spent now. */
  spendable(cached: CachedBalance): Money {
    return money(cached.base + cached.posted - (cached.pool === undefined ? 0n : this.#lockedIn(cached)));
  }

  /** The window that locks money which the balance has; undefined when the money is missing. */
  bindingWindow(cached: CachedBalance, amount: Money): WindowAt | undefined {
    const rest = cached.lease?.rest ?? cached.base + cached.posted;
    if (cached.pool === undefined || rest < amount) return undefined;
    return bindingWindow(cached.pool.grants, cached.pool.spent, this.#options.clock.now());
  }

  /**
   * The locked amount. It uses the grants of the database's last answer: later holds reduce the remaining and the
   * free amount alike, so the difference stays; if a hold was made in an earlier window the result is too high
   * until the database has the charge, never too low.
   */
  #lockedIn(cached: CachedBalance): Money {
    // A lease share was cut from unlocked money.
    if (cached.lease !== undefined) return money(0n);
    const now = this.#options.clock.now();
    if (now >= cached.lockedUntil || now < cached.lockedFrom) {
      const { grants: grantBalances, spent } = cached.pool!;
      const { locked, start, end } = lockedAt(grantBalances, spent, now);
      Object.assign(cached, { locked, lockedFrom: start, lockedUntil: end });
    }
    return cached.locked;
  }

  /** Sets the database's balance; the charges that it lacks are taken off. Only while no batch is in progress. */
  reconcile(accountId: string, funds: Funds): void {
    const cached = this.#balances.get(accountId);
    if (cached === undefined) return;
    if (cached.lease === undefined) cached.base = money(funds.balance - cached.appliedCharged - cached.reserved);
    if (funds.pool !== undefined || cached.pool !== undefined) setPool(cached, funds.pool);
    if (funds.term === cached.term) return;
    // A plan was purchased: the next call applies due terms.
    cached.term = funds.term;
    cached.upkeepAt = Number.NEGATIVE_INFINITY;
  }

  /** Sets only the database's balance, after a batch: an account with grants must be read in full. */
  reconcileBalance(accountId: string, balance: Money): boolean {
    const cached = this.#balances.get(accountId);
    if (cached?.pool !== undefined) return false;
    if (cached !== undefined) cached.base = money(balance - cached.appliedCharged - cached.reserved);
    return true;
  }

  /**
   * Locks `amount` against calls until the returned function is called, after the balance has been reconciled. It must be
   * pinned. Undefined: the amount is not available.
   */
  reserve(cached: CachedBalance, amount: Money): (() => void) | undefined {
    // Expired grants may already have been removed by another process: the remainder must cover the amount.
    const now = this.#options.clock.now();
    const expired = remainingIn(cached.pool?.grants.filter(({ expiresAt }) => expiresAt <= now) ?? []);
    if (cached.base + cached.posted - expired < amount) return undefined;
    const move = (by: bigint) => {
      cached.reserved = money(cached.reserved + by);
      cached.base = money(cached.base - by);
    };
    move(amount);
    return () => {
      move(-amount);
      cached.unlocked?.resolve();
      cached.unlocked = undefined;
    };
  }

  /**
   * Resolves when a running debit releases its reservation. Between its commit and that release, memory counts the debit twice, so
   * `amount` may only seem to be missing. undefined: it is missing even without the reservations. 503 after `longestDebitMs`.
   */
  untilUnlocked(cached: CachedBalance, amount: Money): undefined | Promise<void> {
    if (cached.reserved === 0n || cached.base + cached.posted + cached.reserved < amount) return undefined;
    cached.unlocked ??= Promise.withResolvers();
    return within(longestDebitMs, cached.unlocked.promise, balanceUnavailable);
  }

  /** Evicts balances that have been unused for a while. */
  sweep(idleMs: number = this.#options.idleMs): void {
    const before = this.#options.clock.monotonic() - idleMs;
    for (const cached of this.#balances.values()) {
      // A lease share is returned before its balance is evicted.
      const left = cached.lease !== undefined && cached.base + cached.posted > 0n;
      const settled = cached.users === 0 && cached.rows === cached.appliedRows && !left;
      if (settled && cached.usedAt <= before) this.#balances.delete(cached.accountId);
    }
  }

  #load(accountId: string, need: Money): Promise<CachedBalance> {
    const loading = this.#read(accountId, need).finally(() => this.#loading.delete(accountId));
    this.#loading.set(accountId, loading);
    return loading;
  }

  /** The cached balance, or one without a lease share: it pays for nothing before the database has been asked. */
  unread(accountId: string): CachedBalance {
    const known = this.#balances.get(accountId);
    if (known !== undefined) return known;
    this.#makeRoom();
    const cached = newCachedBalance(accountId, this.#options.clock.monotonic(), newLeaseShare());
    this.#balances.set(accountId, cached);
    return cached;
  }

  #makeRoom(): void {
    const { limit } = this.#options;
    if (this.#balances.size + this.#loading.size >= limit) this.sweep(0);
    if (this.#balances.size + this.#loading.size < limit) return;
    throw new GatewayError('overloaded', 'Too many accounts are active at the moment.', { retryAfterMs: 1_000 });
  }

  async #read(accountId: string, need: Money): Promise<CachedBalance> {
    const { clock, fundsOf, lease } = this.#options;
    this.#makeRoom();
    if (lease !== undefined)
      return this.#readLease(newCachedBalance(accountId, clock.monotonic(), newLeaseShare()), need);
    const { balance, pool, term } = await fundsOf(accountId).catch((cause: unknown) => {
      throw balanceUnavailable(cause);
    });
    const cached = newCachedBalance(accountId, clock.monotonic(), undefined);
    Object.assign(cached, { base: balance, term });
    setPool(cached, pool);
    this.#balances.set(accountId, cached);
    return cached;
  }

  /** The balance is cached before its share arrives: the lease manager looks it up here. */
  async #readLease(cached: CachedBalance, need: Money): Promise<CachedBalance> {
    this.#balances.set(cached.accountId, cached);
    cached.users += 1;
    try {
      await this.#options.lease!(cached, need);
      return cached;
    } catch (error) {
      if (cached.users === 1) this.#balances.delete(cached.accountId);
      throw error;
    } finally {
      cached.users -= 1;
    }
  }
}

/** The error for a balance that the database does not return. */
export function balanceUnavailable(cause?: unknown): GatewayError {
  return new GatewayError('overloaded', 'The balance cannot be read at the moment; please try again soon.', {
    code: 'balance_unavailable',
    retryAfterMs: 1_000,
    cause,
  });
}

function newCachedBalance(accountId: string, now: number, share: LeaseShare | undefined): CachedBalance {
  return {
    accountId,
    base: money(0n),
    posted: money(0n),
    charged: money(0n),
    rows: 0,
    appliedCharged: money(0n),
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
    upkeepFrom: Number.NEGATIVE_INFINITY,
    upkeepAt: Number.NEGATIVE_INFINITY,
    upkeep: undefined,
    reserved: money(0n),
    unlocked: undefined,
    lease: share,
  };
}

/** The locked amount is recomputed at its next use. */
function setPool(cached: CachedBalance, pool: PoolState | undefined): void {
  cached.pool = pool;
  cached.lockedUntil = Number.NEGATIVE_INFINITY;
}
