/** The part of an account's balance that this process has leased: its use, requests for more, and returns. */

import type { Clock } from '../../../core/contract/host-tools.ts';
import { type Money, money, zero } from '../../common/domain/money.ts';
import type { WindowAt } from '../grants/balances.ts';
import { Balance } from '../ledger/balance.ts';
import { beatMs } from '../ledger/flusher.ts';
import type { Answer, LeaseRequest } from './store.ts';

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
/** Checks, one per second, without a new row after which a share is returned, but for that small one; and after which that is. */
export const idleTurns = 10;
export const restTurns = 3_600;
/** A share used up sooner was too small; one that lasts longer was too large. */
const shortMs = 2_000;
const longMs = 30_000;
/** The time a call waits for money that calls on other nodes leave, or for money that is free and others take first. */
export const maxWaitMs = 1_000;
/** The time after which a call that ended on another node is in the ledger: a beat of its batches, and as long to write one. */
const ledgerDelayMs = 2 * beatMs;
/** The shortest interval between recalls of one account. */
const recallIntervalMs = 200;
const never = Number.NEGATIVE_INFINITY;

/** Times are monotonic. */
export class LeasedBalance extends Balance {
  /** From this time on it admits no call before the database has been asked again. */
  #validUntil = never;
  /** Below this, more is acquired in the background. */
  #lowWater: Money = zero;
  /** The usual request, when it last grew, and whether it was granted in full. */
  #target: Money = zero;
  #grownAt = never;
  #full = false;
  /** The least that is requested, so that calls continue for a while when the database is away. */
  #reserve: Money = zero;
  /** The cheapest of the calls that waited last. */
  #unit: Money = zero;
  /** The dearest hold since the account was idle last. */
  #dearest: Money = zero;
  /** The cost of each waiting call. */
  readonly #waiting: Money[] = [];
  /** Money that a running answer will need soon. */
  #ahead: Money = zero;
  /** The next exchange returns the unused amount: another node needs it, or it has been unused for a while. */
  #leaving = false;
  /** Locked to be returned: the database may still count it as leased. */
  #withheld: Money = zero;
  /** Another node has requested it and waits for its return. */
  #isRecalled = false;
  /**
   * The last answer: money beyond all leases, leases of others, holds of all calls, otherwise
   * free, how many nodes live.
   */
  #unleased: Money = zero;
  #elsewhere: Money = zero;
  #held: Money = zero;
  #rest: Money = zero;
  #nodes = 1;
  /** Its account is idle: a small share is kept for an outage of the database. */
  #resting = false;
  /** Little was available: the remainder is returned at once. */
  #tight = false;
  /** Holds and costs of calls by the last check, and how many had ended; the number of checks since without a change. */
  #lastPosted: Money = zero;
  #lastRows = 0;
  #idleTurns = 0;
  /** When other nodes were last asked to return money, and the calls that wait for the next turn. */
  #recalledAt = never;
  #turn: PromiseWithResolvers<void> | undefined;

  constructor(accountId: string, clock: Clock) {
    super(accountId, clock, true);
  }

  override hold(amount: Money): boolean {
    super.hold(amount);
    // The money kept once the account is idle again covers its dearest calls of the time between.
    if (this.#idleTurns >= idleTurns || amount > this.#dearest) {
      this.#dearest = amount;
      this.#idleTurns = 0;
    }
    return this.base + this.posted < this.#lowWater;
  }

  override admits(amount: Money): boolean {
    return this.clock.monotonic() < this.#validUntil && this.covers(amount);
  }

  /** A lease was cut from money that is not locked. */
  protected override locked(): Money {
    return zero;
  }

  override bindingWindow(amount: Money): WindowAt | undefined {
    return super.bindingWindow(amount, this.#rest);
  }

  /**
   * The request at `now`. Returned money leaves the balance before the request is sent, so that no call can
   * spend it meanwhile; if the answer is lost it stays locked until one arrives. Money that ended calls released
   * stays leased until the ledger has their rows: it backs holds in the journal that the ledger lacks too, and these
   * must find their money there. Otherwise that money would appear only with later entries or, if this process is
   * killed before writing them, never.
   */
  request(now: number): LeaseRequest {
    const [waiting, ahead, leaving] = [this.#waiting, this.#ahead, this.#leaving];
    const need = money(waiting.reduce((sum, amount) => sum + amount, 0n) + ahead);
    const requested = smallestOf(waiting) ?? ahead;
    const { unposted } = this;
    const kept = this.#keptWhileReturning(need);
    if (kept !== undefined) this.#withhold(largest([need, kept, unposted]));
    else {
      if (requested > 0n) this.#unit = requested;
      this.#target = this.#nextTarget(need, now);
    }
    const { available } = this;
    const reach = available + this.#withheld;
    const bound = reach < unposted ? reach : unposted;
    const keep = available > bound ? available : bound;
    return {
      accountId: this.accountId,
      pending: this.pending,
      keep: money(keep > 0n ? keep : 0n),
      need,
      // Where not each node can keep a call's worth, free money stays free.
      smallest: kept === undefined || leaving ? requested : money(this.#unit * BigInt(this.#nodes)),
      target: kept ?? this.#target,
      ahead,
      leaving,
      owing: keep > available || (leaving && available > need),
    };
  }

  /** The rest of a share that becomes smaller, beside the need of calls; undefined: it does not. */
  #keptWhileReturning(need: Money): Money | undefined {
    if (this.#leaving) return zero;
    const dearest = this.#dearest > this.#unit ? this.#dearest : this.#unit;
    return this.#resting && need === 0n ? money(dearest * restingHolds) : undefined;
  }

  /** Locks everything beyond `spokenFor`, so that calls cannot spend it. */
  #withhold(spokenFor: bigint): void {
    const spare = this.available - spokenFor;
    if (spare <= 0n) return;
    this.base = money(this.base - spare);
    this.#withheld = money(this.#withheld + spare);
  }

  /** Grows while shares are used up quickly, shrinks while they last. A request for another reason changes nothing. */
  #nextTarget(need: Money, now: number): Money {
    const [target, lasted, { available }] = [this.#target, now - this.#grownAt, this];
    const isUsedUp = this.#full && (available * 2n <= target || available < need);
    const scaled = isUsedUp && lasted < shortMs ? target * 2n : lasted > longMs ? target / 2n : target;
    const next = largest([scaled, this.#unit * leastHolds, need, this.#reserve]);
    return money(next < most ? next : most);
  }

  /**
   * The database has granted a share for a request sent at `sentAt`; no batch was applied in between. True: the node has
   * something to return at once, which calls can no longer spend.
   */
  grant(request: LeaseRequest, answer: Answer, sentAt: number, lastsMs: number): boolean {
    const granted = answer.amount - request.pending;
    const excess = granted > answer.allowed ? granted - answer.allowed : 0n;
    this.rebase(answer.amount, excess);
    this.#withheld = money(excess);
    const usable = granted - excess;
    this.#validUntil = sentAt + lastsMs;
    this.#unleased = money(answer.allowed > granted ? answer.allowed - granted : 0n);
    this.#elsewhere = answer.elsewhere;
    this.#held = answer.held;
    this.#rest = answer.rest;
    this.#nodes = answer.nodes;
    if (request.leaving) this.#leaving = request.owing;
    // Requests made meanwhile belong to the next exchange.
    if (this.#ahead <= request.ahead) this.#ahead = zero;
    this.#reserve = money(answer.allowed / BigInt(answer.nodes) / reservePart);
    this.#full = usable >= this.#target;
    this.#tight = usable < this.#unit * 4n;
    const aim = usable < this.#target ? usable : this.#target;
    // Below the reserve the next call asks for more: the first answer showed what there is.
    this.#lowWater = money(this.#tight ? 0n : (aim > this.#reserve ? aim : this.#reserve) / 2n);
    if (!request.leaving) this.#grownAt = sentAt;
    return excess > 0n && !request.owing;
  }

  /** Whether the answer to this request has returned the money that another node waits for. */
  hasReturned({ leaving }: LeaseRequest): boolean {
    if (!leaving || !this.#isRecalled) return false;
    this.#isRecalled = this.#leaving;
    return true;
  }

  /** A batch has renewed the lease. An expired one may have been released: the database must be asked. */
  renew(until: number): void {
    if (this.hasGrants || this.clock.monotonic() >= this.#validUntil) return;
    this.#validUntil = Math.max(this.#validUntil, until);
  }

  endsBefore(time: number): boolean {
    return this.#validUntil < time;
  }

  /** Whether money waits for the ledger to have some rows before it can be returned. */
  get owes(): boolean {
    return this.#leaving || this.#withheld > 0n;
  }

  /** A call waits for this much, until `waited`. */
  wait(amount: Money): void {
    this.#resting = false;
    this.#waiting.push(amount);
  }

  waited(amount: Money): void {
    this.#waiting.splice(this.#waiting.indexOf(amount), 1);
  }

  /** More is being acquired: the next calls need not ask for the same. */
  topUp(): void {
    this.#lowWater = zero;
    this.#resting = false;
  }

  /** A running answer will need this much. False: it is there, or was asked for. */
  needSoon(amount: Money): boolean {
    if (this.available >= amount || this.#ahead >= amount) return false;
    this.#ahead = amount;
    this.#resting = false;
    return true;
  }

  /**
   * Whether the next exchange can bring the amount: other calls may already have taken the last one's money; money being
   * returned is free again after the next.
   */
  isObtainable(amount: Money): boolean {
    const obtainable = this.#unleased + this.#withheld;
    return obtainable > 0n && this.available + obtainable >= amount;
  }

  /** Whether the amount is there if the nodes that live return all that they have: some of it they may have spent. */
  mayBeReturned(amount: Money): boolean {
    if (this.#nodes === 1 || this.#elsewhere === 0n) return false;
    return this.#rest - (this.hasGrants ? super.locked() : 0n) + this.#elsewhere >= amount;
  }

  /** How long a call waits for money that calls leave which end elsewhere: not at all if they have too little. */
  waitMsFor(amount: Money): number {
    if (this.#nodes === 1 || this.#rest + this.#elsewhere + this.#held < amount) return 0;
    if (this.#elsewhere > 0n) return maxWaitMs;
    return this.#held > 0n ? ledgerDelayMs : 0;
  }

  /** Whether other nodes may be asked again for unused money. */
  mayRecall(now: number): boolean {
    if (now - this.#recalledAt < recallIntervalMs) return false;
    this.#recalledAt = now;
    return true;
  }

  /** Another node needs the money that is unused here. Otherwise the next call would lease all of it again before that node. */
  recalled(): void {
    this.#isRecalled = true;
    this.#target = zero;
  }

  /** The next exchange returns the unused money. */
  leave(): void {
    this.#leaving = true;
  }

  get nextTurn(): Promise<void> {
    this.#turn ??= Promise.withResolvers();
    return this.#turn.promise;
  }

  /** Lets waiting calls ask again. */
  endTurn(): void {
    this.#turn?.resolve();
    this.#turn = undefined;
  }

  /** Whether so little is left that all of it goes back as soon as no request uses it. */
  get isTight(): boolean {
    return this.#tight && this.#nodes > 1;
  }

  get isLeaving(): boolean {
    return this.#leaving;
  }

  get isResting(): boolean {
    return this.#resting;
  }

  rest(isResting: boolean): void {
    this.#resting = isResting;
  }

  /** Checks since calls last changed something. */
  get idleTurns(): number {
    return this.#idleTurns;
  }

  countIdle(): number {
    const isUnchanged = this.#lastPosted === this.posted && this.#lastRows === this.rows;
    this.#idleTurns = isUnchanged ? this.#idleTurns + 1 : 0;
    this.#lastPosted = this.posted;
    this.#lastRows = this.rows;
    return this.#idleTurns;
  }

  /**
   * Whether a small share of the account, once it is idle, bridges an outage: of money that it has here, or that a recall has taken
   * from it. A share that covers no call is of more use to other nodes.
   */
  get bridges(): boolean {
    const [unit, { available }] = [this.#unit, this];
    if (this.#idleTurns >= restTurns || this.#isRecalled || unit === 0n) return false;
    return available >= unit || (available === 0n && this.#rest + this.#elsewhere + this.#held >= unit);
  }
}

const smallestOf = (amounts: readonly Money[]): Money | undefined =>
  amounts.length === 0 ? undefined : amounts.reduce((least, amount) => (amount < least ? amount : least));

const largest = (amounts: readonly bigint[]): bigint =>
  amounts.reduce((most, amount) => (amount > most ? amount : most), 0n);
