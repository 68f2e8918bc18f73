/**
 * The arithmetic of one lease share: the request of a node, its use of the answer, and the time of the next
 * request. Pure.
 */

import { type Money, money } from '../../common/domain/money.ts';
import type { CachedBalance, LeaseShare } from '../ledger/cached-balance.ts';

/** One node's request in an exchange with the database. */
export interface LeaseRequest {
  readonly accountId: string;
  /** What running calls hold, and what ended ones cost that the database lacks: that much stays leased. */
  readonly pending: Money;
  readonly keep: Money;
  readonly need: Money;
  readonly smallest: Money;
  readonly target: Money;
  /**
   * The part of the need that a running answer requested, and whether the remainder is returned. Not sent to the
   * database.
   */
  readonly ahead: Money;
  readonly leaving: boolean;
  /** More is kept than calls need, until the ledger has the journal's rows. */
  readonly owing: boolean;
}

/** The database's answer; see the migration `013-movements.sql`. */
export interface Answer {
  readonly amount: Money;
  readonly allowed: Money;
  readonly rest: Money;
  readonly elsewhere: Money;
  readonly held: Money;
  readonly nodes: number;
}

const none = money(0n);

/** A share starts at this many holds of the call that needs it, and never aims lower. */
const leastHolds = 16n;
/**
 * The minimum for a rich account is this fraction of the node's fair share: enough for an outage, while little is blocked when a
 * node dies.
 */
const reservePart = 16n;
const most = 1_000_000_000_000_000_000n;
/** Money kept for an idle account, so that it is served through an outage of the database. */
const restingHolds = 8n;
/** Checks, one per second, without a new row after which a share is returned, but for that small one. */
export const idleTurns = 10;
/** A share used up sooner was too small; one that lasts longer was too large. */
const shortMs = 2_000;
const longMs = 30_000;

/**
 * The request at `now`. Returned money leaves the cached balance before the request is sent, so that no call can
 * spend it meanwhile; if the answer is lost it stays locked until one arrives. Money that ended calls released
 * stays leased until the ledger has their rows: it backs holds in the journal that the ledger lacks too, and these
 * must find their money there. Otherwise that money would appear only with later entries or, if this process is
 * killed before writing them, never.
 */
export function leaseRequestOf(cached: CachedBalance, share: LeaseShare, now: number): LeaseRequest {
  const { waiting, ahead, leaving } = share;
  const need = money(waiting.reduce((sum, amount) => sum + amount, 0n) + ahead);
  const asked = smallestOf(waiting) ?? ahead;
  const unposted = cached.freed - cached.appliedFreed;
  const kept = keptOf(share, need);
  if (kept !== undefined) {
    withhold(cached, share, largest([need, kept, unposted]));
  } else {
    if (asked > 0n) share.unit = asked;
    share.target = nextTarget(share, need, money(cached.base + cached.posted), now);
  }
  const available = cached.base + cached.posted;
  const reach = available + share.withheld;
  const bound = reach < unposted ? reach : unposted;
  const keep = available > bound ? available : bound;
  return {
    accountId: cached.accountId,
    pending: money(cached.appliedCharged - cached.posted),
    keep: money(keep > 0n ? keep : 0n),
    need,
    // Where not each node can keep a call's worth, free money stays free.
    smallest: kept === undefined || leaving ? asked : money(share.unit * BigInt(share.nodes)),
    target: kept === undefined ? share.target : kept,
    ahead,
    leaving,
    owing: keep > available || (leaving && available > need),
  };
}

/** What stays of a share that becomes smaller beside what calls need; undefined: it does not. */
function keptOf({ leaving, resting, unit, dearest }: LeaseShare, need: Money): Money | undefined {
  if (leaving) return none;
  return resting && need === 0n ? money((dearest > unit ? dearest : unit) * restingHolds) : undefined;
}

const smallestOf = (amounts: readonly Money[]): Money | undefined =>
  amounts.length === 0 ? undefined : amounts.reduce((least, amount) => (amount < least ? amount : least));

const largest = (amounts: readonly bigint[]): bigint =>
  amounts.reduce((most, amount) => (amount > most ? amount : most), 0n);

/** The money kept once the account is idle again covers its dearest calls of the time between. */
export function noteHold(share: LeaseShare, amount: Money): void {
  if (share.idleTurns < idleTurns && amount <= share.dearest) return;
  share.dearest = amount;
  share.idleTurns = 0;
}

/** Locks everything beyond `spokenFor`, so that calls cannot spend it. */
function withhold(cached: CachedBalance, share: LeaseShare, spokenFor: bigint): void {
  const spare = cached.base + cached.posted - spokenFor;
  if (spare <= 0n) return;
  cached.base = money(cached.base - spare);
  share.withheld = money(share.withheld + spare);
}

/** Grows while shares are used up quickly, shrinks while they last. A request for another reason changes nothing. */
function nextTarget(
  { target, grownAt, full, unit, reserve }: LeaseShare,
  need: Money,
  available: Money,
  now: number,
): Money {
  const lasted = now - grownAt;
  const isUsedUp = full && (available * 2n <= target || available < need);
  const scaled = isUsedUp && lasted < shortMs ? target * 2n : lasted > longMs ? target / 2n : target;
  const next = [unit * leastHolds, need, reserve].reduce((large, least) => (least > large ? least : large), scaled);
  return money(next < most ? next : most);
}

/**
 * Applies the database's answer to a request sent at `sentAt`; no batch was applied in between. True: the node has
 * something to return at once, which calls can no longer spend.
 */
export function takeAnswer(
  cached: CachedBalance,
  share: LeaseShare,
  request: LeaseRequest,
  answer: Answer,
  sentAt: number,
  lastsMs: number,
): boolean {
  const granted = answer.amount - request.pending;
  const excess = granted > answer.allowed ? granted - answer.allowed : 0n;
  cached.base = money(answer.amount - cached.appliedCharged - excess);
  share.withheld = money(excess);
  const usable = granted - excess;
  share.validUntil = sentAt + lastsMs;
  share.unleased = money(answer.allowed > granted ? answer.allowed - granted : 0n);
  share.elsewhere = answer.elsewhere;
  share.held = answer.held;
  share.rest = answer.rest;
  share.nodes = answer.nodes;
  if (request.leaving) share.leaving = request.owing;
  // Requests made meanwhile belong to the next exchange.
  if (share.ahead <= request.ahead) share.ahead = none;
  share.reserve = money(answer.allowed / BigInt(answer.nodes) / reservePart);
  share.full = usable >= share.target;
  share.tight = usable < share.unit * 4n;
  const aim = usable < share.target ? usable : share.target;
  // Below the reserve the next call asks for more: the first answer showed what there is.
  share.lowWater = money(share.tight ? 0n : (aim > share.reserve ? aim : share.reserve) / 2n);
  if (!request.leaving) share.grownAt = sentAt;
  return excess > 0n && !request.owing;
}
