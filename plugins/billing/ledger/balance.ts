/** One account's balance in memory: holds and costs of its calls, how much of them the database has, and how much may be spent. */
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import { type Money, money, zero } from '../../common/domain/money.ts';
import { within } from '../../common/kit/waits/within.ts';
import { remainingIn } from '../grants/allocations.ts';
import { bindingWindow, lockedAt, type WindowAt } from '../grants/balances.ts';
import type { Funds, PoolState } from '../grants/funds.ts';
import { clocksDifferMs } from '../grants/term-rows.ts';

/** How long a request waits for a running debit. */
const longestDebitMs = 5_000;
/** The database is asked for a balance that covers no call at most so often. */
const askEveryMs = 1_000;
const never = Number.NEGATIVE_INFINITY;

/** A balance's totals at the last of its ends in one batch. */
export type BatchTotals = Readonly<Totals>;

interface Totals {
  readonly balance: Balance;
  readonly batch: number;
  charged: Money;
  rows: number;
  freed: Money;
  /** The holds of running calls then. */
  open: Money;
}

/** Decides alone how much this process may spend of an account: of the whole balance, or of the part that it has leased. */
export class Balance {
  readonly accountId: string;
  readonly isLeased: boolean;
  protected readonly clock: Clock;
  /** Money without holds and costs of calls since it was loaded; `base + posted` may be spent. */
  protected base: Money = zero;
  /** Holds and costs of calls, less the holds that have ended: zero or less. */
  protected posted: Money = zero;
  /** Costs of ended calls, zero or less, and their number; how much of both the database has. */
  #charged: Money = zero;
  #rows = 0;
  #appliedCharged: Money = zero;
  #appliedRows = 0;
  /** Where it is leased: the holds that ended calls have released, and how much of that the database has. */
  #freed: Money = zero;
  #appliedFreed: Money = zero;
  /** Requests that use it now. */
  #users = 0;
  #usedAt = never;
  /** When the database was last asked because of a refused request. */
  #queriedAt = never;
  /** The last turn of the backlog with an end of it, and its totals in the last batch. */
  #turn = -1;
  #totals: Totals | undefined;
  /** Its expiring grants; undefined: it has none, and all of its money may be spent at any time. */
  #pool: PoolState | undefined;
  /** The amount locked between `#lockedFrom` and `#lockedUntil`: expired, or beyond its windows. */
  #locked: Money = zero;
  #lockedFrom = never;
  #lockedUntil = never;
  /** The plan term that began last. From `#checkedFrom` to `#checkedUntil`, wall-clock times, no grant or expiry is due. */
  #term: string | undefined;
  #checkedFrom = never;
  #checkedUntil = never;
  #checking: Promise<void> | undefined;
  /** Kept from calls for a debit that is being made in the database. */
  #reserved: Money = zero;
  /** Resolved when a running debit ends. Undefined if no request waits for one. */
  #unlocked: PromiseWithResolvers<void> | undefined;

  constructor(accountId: string, clock: Clock, isLeased = false) {
    this.accountId = accountId;
    this.clock = clock;
    this.isLeased = isLeased;
    this.#usedAt = clock.monotonic();
  }

  /** The database's balance without holds of calls and the costs that it lacks; locked money in it may not be spent now. */
  get available(): Money {
    return money(this.base + this.posted);
  }

  /** Holds of running calls, and costs of ended ones that the database lacks. */
  get pending(): Money {
    return money(this.#appliedCharged - this.posted);
  }

  /** Holds that ended calls have released and the database does not know yet. */
  protected get unposted(): bigint {
    return this.#freed - this.#appliedFreed;
  }

  /** Calls that have ended. */
  get rows(): number {
    return this.#rows;
  }

  /** Whether the database has so many of them. */
  hasApplied(rows: number): boolean {
    return this.#appliedRows >= rows;
  }

  get users(): number {
    return this.#users;
  }

  get hasGrants(): boolean {
    return this.#pool !== undefined;
  }

  /** Keeps it in memory until `release`. */
  use(): void {
    this.#users += 1;
  }

  release(): void {
    this.#users -= 1;
    this.#usedAt = this.clock.monotonic();
  }

  /** Whether nothing needs it in memory, and nothing has since then. Leased money is returned first. */
  isUnusedSince(before: number): boolean {
    const isSettled = this.#users === 0 && this.#rows === this.#appliedRows && this.#usedAt <= before;
    return isSettled && !(this.isLeased && this.available > 0n);
  }

  /** Whether `amount` can be held. An amount of 0 always can: free calls need no balance. */
  covers(amount: Money): boolean {
    if (amount === 0n) return true;
    const available = this.base + this.posted;
    return available >= amount && (this.#pool === undefined || available - this.locked() >= amount);
  }

  /** Whether a call that costs `amount` at most may be admitted now. */
  admits(amount: Money): boolean {
    return this.covers(amount);
  }

  /**
   * The locked amount. It uses the grants of the database's last answer: later holds reduce the remaining and the
   * free amount alike, so the difference stays; if a hold was made in an earlier window the result is too high
   * until the database has the charge, never too low.
   */
  protected locked(): Money {
    const now = this.clock.now();
    if (now >= this.#lockedUntil || now < this.#lockedFrom) {
      const { locked, start, end } = lockedAt(this.#pool!.grants, this.#pool!.spent, now);
      this.#locked = locked;
      this.#lockedFrom = start;
      this.#lockedUntil = end;
    }
    return this.#locked;
  }

  /** The window that locks money which the balance has; undefined when the money is missing. */
  bindingWindow(amount: Money, rest: bigint = this.available): WindowAt | undefined {
    if (this.#pool === undefined || rest < amount) return undefined;
    return bindingWindow(this.#pool.grants, this.#pool.spent, this.clock.now());
  }

  /** Takes the most that a call may cost, and keeps it until the call's `end`. True: more should be acquired for the next ones. */
  hold(amount: Money): boolean {
    this.#users += 1;
    this.posted = money(this.posted - amount);
    return false;
  }

  /** Takes more for a running call. */
  extend(amount: Money): void {
    this.posted = money(this.posted - amount);
  }

  /** Ends a call: its hold is released, and its cost is charged. True: it is the first end in this turn of the backlog. */
  end(held: Money, cost: Money, turn: number): boolean {
    const released = money(held - cost);
    this.posted = money(this.posted + released);
    this.#charged = money(this.#charged - cost);
    this.#rows += 1;
    if (this.isLeased && released > 0n) this.#freed = money(this.#freed + released);
    this.#users -= 1;
    this.#usedAt = this.clock.monotonic();
    if (this.#turn === turn) return false;
    this.#turn = turn;
    return true;
  }

  /** Adds its totals so far to a batch, which has everything that they count. */
  addTo({ number, totals }: { readonly number: number; readonly totals: BatchTotals[] }): void {
    let last = this.#totals;
    if (last?.batch !== number) {
      last = { balance: this, batch: number, charged: zero, rows: 0, freed: zero, open: zero };
      this.#totals = last;
      totals.push(last);
    }
    last.charged = this.#charged;
    last.rows = this.#rows;
    last.freed = this.#freed;
    last.open = money(this.#charged - this.posted);
  }

  /** The database has a batch, with these totals. */
  applied({ charged, rows, freed }: BatchTotals): void {
    this.#appliedCharged = charged;
    this.#appliedRows = rows;
    this.#appliedFreed = freed;
  }

  /** Sets the account's money in the database, without the part kept aside; the charges that the database lacks are taken off. */
  protected rebase(total: Money, aside: bigint): void {
    this.base = money(total - this.#appliedCharged - aside);
  }

  /** Sets the database's funds. Only while no batch is in progress. */
  reconcile({ balance, pool, term }: Funds): void {
    if (!this.isLeased) this.rebase(balance, this.#reserved);
    this.#pool = pool;
    // Computed at its next use.
    this.#lockedUntil = never;
    if (term === this.#term) return;
    // A plan was purchased: the next call applies due terms.
    this.#term = term;
    this.#checkedUntil = never;
  }

  /** Sets only the database's balance, after a batch. False: an account with grants must be read in full. */
  reconcileTotal(balance: Money): boolean {
    if (this.#pool !== undefined) return false;
    this.rebase(balance, this.#reserved);
    return true;
  }

  /** Whether the database may be asked again for a call that is not covered. */
  mayAsk(): boolean {
    const now = this.clock.monotonic();
    if (now - this.#queriedAt < askEveryMs) return false;
    this.#queriedAt = now;
    return true;
  }

  /**
   * Keeps `amount` from calls until the returned function is called, after the balance has been reconciled. It must be
   * in use. Undefined: the amount is not available.
   */
  reserve(amount: Money): (() => void) | undefined {
    // Expired grants may already have been removed by another process: the remainder must cover the amount.
    const now = this.clock.now();
    const expired = remainingIn(this.#pool?.grants.filter(({ expiresAt }) => expiresAt <= now) ?? []);
    if (this.available - expired < amount) return undefined;
    const move = (by: bigint) => {
      this.#reserved = money(this.#reserved + by);
      this.base = money(this.base - by);
    };
    move(amount);
    return () => {
      move(-amount);
      this.#unlocked?.resolve();
      this.#unlocked = undefined;
    };
  }

  /**
   * Resolves when a running debit releases its reservation. Between its commit and that release, memory counts the debit twice, so
   * `amount` may only seem to be missing. undefined: it is missing even without the reservations. 503 after `longestDebitMs`.
   */
  untilUnlocked(amount: Money): undefined | Promise<void> {
    if (this.#reserved === 0n || this.available + this.#reserved < amount) return undefined;
    this.#unlocked ??= Promise.withResolvers();
    return within(longestDebitMs, this.#unlocked.promise, balanceUnavailable);
  }

  /** Whether no grant or expiry is due at `now`. A clock that went back makes the last check worthless. */
  isChecked(now: number): boolean {
    return now < this.#checkedUntil && now >= this.#checkedFrom;
  }

  /** Nothing was due at `from`, and nothing will be before `until`. */
  checked(from: number, until: number): void {
    this.#checkedFrom = from - clocksDifferMs;
    this.#checkedUntil = until;
  }

  /** Whether nothing can become due, unless by the plan of a call. */
  get isPlain(): boolean {
    return this.#term === undefined && this.#pool === undefined;
  }

  /** Concurrent checks share one run. */
  check(work: () => Promise<void>): Promise<void> {
    this.#checking ??= work().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
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
