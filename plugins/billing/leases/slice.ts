/** The arithmetic of one leased slice: what a node asks for, what it makes of the answer, when it asks again. Pure. */
import { type Money, money } from '../../../core/money.ts';
import type { Purse } from '../purses.ts';

/** What a purse knows of its lease. Times are monotonic. */
export interface Slice {
  /** From here on nothing is admitted by it before the database was asked again. */
  validUntil: number;
  /** With less than this left, more is asked for beside the calls. */
  lowWater: Money;
  /** What it asks for as a rule, when it last did, and whether it got that. */
  wish: Money;
  grownAt: number;
  full: boolean;
  /** It is not wished smaller than this, so that calls go on for a while when the database is away. */
  reserve: Money;
  /** The cheapest of the calls that waited last. */
  unit: Money;
  /** What the calls that wait cost, each. */
  waiting: Money[];
  /** What a running answer will need soon. */
  ahead: Money;
  /** Another node needs what is not used here, or nobody has used it for a while: the next exchange gives it back. */
  leaving: boolean;
  /** Kept from the calls of this node, to be given back: the database may still count it as leased. */
  withheld: Money;
  /** Another node has asked for it, and waits to hear that it is back. */
  called: boolean;
  /**
   * What the last answer told: what could have been had beyond it, what others have leased, what calls anywhere hold, what
   * nobody else has, how many nodes live.
   */
  unleased: Money;
  elsewhere: Money;
  held: Money;
  rest: Money;
  nodes: number;
  /** Little was there: what is left over goes back at once. */
  tight: boolean;
  /** It was last looked at with so many rows, and so often without a new one. */
  rows: number;
  idleTurns: number;
  /** When other nodes were last asked to give back; who waits for the next turn. */
  calledAt: number;
  turn: PromiseWithResolvers<void> | undefined;
}

/** What one exchange tells the database. */
export interface Ask {
  readonly accountId: string;
  readonly pending: Money;
  readonly keep: Money;
  readonly need: Money;
  readonly smallest: Money;
  readonly wish: Money;
  /** Of the need, what a running answer asked for; and whether the rest goes back. Not the database's affair. */
  readonly ahead: Money;
  readonly leaving: boolean;
  /** More is kept than calls need, until the ledger has what the journal has. */
  readonly owing: boolean;
}

/** What the database answers; see the migration `009-lease-asks.sql`. */
export interface Answer {
  readonly amount: Money;
  readonly allowed: Money;
  readonly rest: Money;
  readonly elsewhere: Money;
  readonly held: Money;
  readonly nodes: number;
}

const none = money(0n);

/** A slice begins as so many holds of the call that needs it, and is never wished smaller. */
const leastHolds = 16n;
/** Nor, for a rich account, than this part of the node's share: enough for an outage, and little is out of reach when a node dies. */
const reservePart = 16n;
const most = 1_000_000_000_000_000_000n;
/** A slice that is used up sooner was too small; one that lasts longer was too large. */
const shortMs = 2_000;
const longMs = 30_000;

export function newSlice(): Slice {
  const never = Number.NEGATIVE_INFINITY;
  return {
    validUntil: never,
    lowWater: none,
    wish: none,
    grownAt: never,
    full: false,
    reserve: none,
    unit: none,
    waiting: [],
    ahead: none,
    leaving: false,
    withheld: none,
    called: false,
    unleased: none,
    elsewhere: none,
    held: none,
    rest: none,
    nodes: 1,
    tight: false,
    rows: 0,
    idleTurns: 0,
    calledAt: never,
    turn: undefined,
  };
}

/**
 * What is asked for at `now`. What goes back leaves the purse before the database hears of it, so that no call can spend
 * it meanwhile; it stays out of reach if the answer is lost, until there is one.
 *
 * What ended calls gave back and the ledger does not have stays leased: it stands behind holds in the journal that the
 * ledger does not have either, and these must find their money there. Given away, it would be there only by entries that
 * come later, or, if this process is killed before it has written them, never.
 */
export function askOf(purse: Purse, slice: Slice, now: number): Ask {
  const { waiting, ahead, leaving } = slice;
  const need = money(waiting.reduce((sum, amount) => sum + amount, 0n) + ahead);
  const smallest = waiting.reduce((least, amount) => (amount < least ? amount : least), waiting[0] ?? ahead);
  const unposted = purse.freed - purse.appliedFreed;
  if (leaving) withhold(purse, slice, need > unposted ? need : unposted);
  else {
    if (smallest > 0n) slice.unit = smallest;
    slice.wish = nextWish(slice, need, now);
  }
  const available = purse.base + purse.posted;
  const reach = available + slice.withheld;
  const bound = reach < unposted ? reach : unposted;
  const keep = available > bound ? available : bound;
  return {
    accountId: purse.accountId,
    pending: money(purse.appliedPosted - purse.posted),
    keep: money(keep > 0n ? keep : 0n),
    need,
    smallest,
    wish: leaving ? none : slice.wish,
    ahead,
    leaving,
    owing: keep > available || (leaving && available > need),
  };
}

/** Keeps from the calls all that is beyond `spokenFor`. */
function withhold(purse: Purse, slice: Slice, spokenFor: bigint): void {
  const spare = purse.base + purse.posted - spokenFor;
  if (spare <= 0n) return;
  purse.base = money(purse.base - spare);
  slice.withheld = money(slice.withheld + spare);
}

/** Grows while slices are used up quickly, shrinks while they last. */
function nextWish({ wish, grownAt, full, unit, reserve }: Slice, need: Money, now: number): Money {
  const lasted = now - grownAt;
  const scaled = full && lasted < shortMs ? wish * 2n : lasted > longMs ? wish / 2n : wish;
  const next = [unit * leastHolds, need, reserve].reduce((large, least) => (least > large ? least : large), scaled);
  return money(next < most ? next : most);
}

/**
 * Takes the database's answer to an ask that was sent at `sentAt`; no batch was applied in between. true: the node has
 * something to give back at once, and calls cannot spend it any more.
 */
export function takeAnswer(
  purse: Purse,
  slice: Slice,
  ask: Ask,
  answer: Answer,
  sentAt: number,
  lastsMs: number,
): boolean {
  const granted = answer.amount - ask.pending;
  const excess = granted > answer.allowed ? granted - answer.allowed : 0n;
  purse.base = money(answer.amount - purse.appliedPosted - excess);
  slice.withheld = money(excess);
  const usable = granted - excess;
  slice.validUntil = sentAt + lastsMs;
  slice.unleased = money(answer.allowed > granted ? answer.allowed - granted : 0n);
  slice.elsewhere = answer.elsewhere;
  slice.held = answer.held;
  slice.rest = answer.rest;
  slice.nodes = answer.nodes;
  if (ask.leaving) slice.leaving = ask.owing;
  // What was asked for meanwhile is for the next exchange.
  if (slice.ahead <= ask.ahead) slice.ahead = none;
  slice.reserve = money(answer.allowed / BigInt(answer.nodes) / reservePart);
  slice.full = usable >= slice.wish;
  slice.tight = usable < slice.unit * 4n;
  const aim = usable < slice.wish ? usable : slice.wish;
  // Below the reserve more is asked for with the next call: the first answer has told what there is.
  slice.lowWater = money(slice.tight ? 0n : (aim > slice.reserve ? aim : slice.reserve) / 2n);
  if (!ask.leaving) slice.grownAt = sentAt;
  return excess > 0n && !ask.owing;
}
