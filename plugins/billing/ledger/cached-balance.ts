/** One account's balance in memory, and its leased share where several processes serve. Types. */
import { type Money, zero } from '../../common/domain/money.ts';
import type { PoolState } from '../grants/funds.ts';

/**
 * Decides alone what this process may spend of an account: of the whole balance where no other process spends it,
 * or of the leased share where others do.
 */
export interface CachedBalance {
  readonly accountId: string;
  /** The balance (or its share) without what calls have held and cost since it was loaded; `base + posted` may be spent. */
  base: Money;
  /** What calls have held, less what their ends have released, and what they cost: zero or less. */
  posted: Money;
  /** What the calls that ended have cost, zero or less, and their number; how much of both the database has. */
  charged: Money;
  rows: number;
  appliedCharged: Money;
  appliedRows: number;
  /** Where the balance is a share: the holds that ended calls have released, and how much of that the database has. */
  freed: Money;
  appliedFreed: Money;
  /** Requests that use it now. */
  users: number;
  usedAt: number;
  /** When the database was last asked because of a refused request. */
  askedAt: number;
  /** The last backlog turn that contains it, and its share in the last batch that contains it. */
  turn: number;
  share: Share | undefined;
  /** Its expiring grants; undefined: it has none, and all of its money may be spent at any time. */
  pool: PoolState | undefined;
  /** The amount locked between `lockedFrom` and `lockedUntil`: expired, or beyond its windows. */
  locked: Money;
  lockedFrom: number;
  lockedUntil: number;
  /** The plan term that began last. From `upkeepFrom` to `upkeepAt`, wall-clock times, no grant or expiry is due. */
  term: string | undefined;
  upkeepFrom: number;
  upkeepAt: number;
  upkeep: Promise<void> | undefined;
  /** Locked for a debit that is being made in the database. */
  reserved: Money;
  /** Resolved when a running debit ends. Undefined if no request waits for one. */
  unlocked: PromiseWithResolvers<void> | undefined;
  /** The lease's values; undefined: the whole balance belongs to this process. */
  readonly lease: LeaseShare | undefined;
}

/** The state of one lease. Times are monotonic. */
export interface LeaseShare {
  /** From this time on it admits no call before the database has been asked again. */
  validUntil: number;
  /** Below this, more is acquired in the background. */
  lowWater: Money;
  /** The usual request, when it last grew, and whether it was granted in full. */
  target: Money;
  grownAt: number;
  full: boolean;
  /** The least that is requested, so that calls continue for a while when the database is away. */
  reserve: Money;
  /** The cheapest of the calls that waited last. */
  unit: Money;
  /** The dearest hold since the account was idle last. */
  dearest: Money;
  /** The cost of each waiting call. */
  waiting: Money[];
  /** What a running answer will need soon. */
  ahead: Money;
  /** The next exchange returns the unused amount: another node needs it, or it has been unused for a while. */
  leaving: boolean;
  /** Locked to be returned: the database may still count it as leased. */
  withheld: Money;
  /** Another node has requested it and waits for its return. */
  isRecalled: boolean;
  /**
   * The last answer: money beyond all leases, leases of others, holds of all calls, otherwise
   * free, how many nodes live.
   */
  unleased: Money;
  elsewhere: Money;
  held: Money;
  rest: Money;
  nodes: number;
  /** Its account is idle: a small share is kept for an outage of the database. */
  resting: boolean;
  /** Little was available: the remainder is returned at once. */
  tight: boolean;
  /** What calls had held and cost by the last check, and how many had ended; the number of checks since without a change. */
  posted: Money;
  rows: number;
  idleTurns: number;
  /** When other nodes were last asked to return money, and the calls that wait for the next turn. */
  recalledAt: number;
  turn: PromiseWithResolvers<void> | undefined;
}

/** A balance's totals at the last of its entries in one batch. */
export interface Share {
  readonly balance: CachedBalance;
  readonly batch: number;
  charged: Money;
  rows: number;
  freed: Money;
  /** What running calls held then. */
  open: Money;
}

export function newLeaseShare(): LeaseShare {
  const never = Number.NEGATIVE_INFINITY;
  return {
    validUntil: never,
    lowWater: zero,
    target: zero,
    grownAt: never,
    full: false,
    reserve: zero,
    unit: zero,
    dearest: zero,
    waiting: [],
    ahead: zero,
    leaving: false,
    resting: false,
    withheld: zero,
    isRecalled: false,
    unleased: zero,
    elsewhere: zero,
    held: zero,
    rest: zero,
    nodes: 1,
    tight: false,
    posted: zero,
    rows: 0,
    idleTurns: 0,
    recalledAt: never,
    turn: undefined,
  };
}
