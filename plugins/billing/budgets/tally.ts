/** What this process knows of one scope in memory: its share of the ceiling, and what calls have taken of it. */
import { type Money, money, zero } from '../../common/domain/money.ts';
import type { Period } from '../grants/periods.ts';
import { periodOf } from './calendar.ts';
import { ceilingIn, countsModel, least, most, type Scope } from './scope.ts';
import type { ShareAnswer, ShareRequest } from './shares.ts';

/** A share is asked for so many holds of the call that needs it. */
const usualHolds = 16n;
/** After another process has asked for what is left, no more than calls need is taken for this long. */
const modestMs = 1_000;
/** Where one process spends all, what orders hold is read again in the background after this long, before an admission and before a refusal. */
const refreshMs = 2_500;
const oldestMs = 5_000;
const staleMs = 1_000;
/** A refusal that the database has confirmed is repeated without asking for so long. */
const refusedMs = 200;
const never: Period = { start: Number.POSITIVE_INFINITY, end: Number.POSITIVE_INFINITY };
const past = Number.NEGATIVE_INFINITY;

/** How long a share lasts, and the remainder below which it is renewed; undefined: one process spends all. */
export type ShareTimes = { readonly lastsMs: number; readonly renewBelowMs: number } | undefined;

/** Times are monotonic but for those of the period. */
export class Tally {
  readonly key: string;
  scope: Scope;
  period: Period = never;
  /** What may be spent in the period. */
  #ceiling: Money;
  /** What new calls may take; below zero: settlements went beyond their holds. */
  #free: Money = zero;
  /** What running answers may not take of it: the ceiling was lowered by so much since the last answer. */
  #lowered: Money = zero;
  /** What running calls hold. */
  #held: Money = zero;
  /** What has ended, and what was ordered, since the last request for a share began: the ledger may lack it. */
  #ended: Money = zero;
  /**
   * The same, of each call the larger of its cost and its hold. A power cut can take an end that the database lacks, and recovery may then charge
   * all that was held: that much is not returned.
   */
  #bound: Money = zero;
  /** What orders hold, in any process. */
  #ordered: Money = zero;
  /** False: nothing may be taken before the database was asked. */
  #known = false;
  /** Periods have changed since the last request: its answer is about others. */
  #isRecounted = false;
  #validUntil = past;
  #renewAt = past;
  #readAt = past;
  /** Below this, more is asked for in the background. */
  #low: Money = zero;
  /** The database has confirmed that so much is not there. */
  #refused: Money = zero;
  #refusedUntil = past;
  /** What the last answer left for others, and what may come back from them. */
  #rest: Money = zero;
  elsewhere: Money = zero;
  /** What calls wait for, and what a running answer will need. */
  readonly #needs: Money[] = [];
  #ahead: Money = zero;
  /** Everything that is free is returned with the next request. */
  #leaving = false;
  #modestUntil = past;
  /** The cheapest of the calls that waited last. */
  #unit = money(1n);
  #model: string | undefined;
  #isCounted = true;
  /** Calls that wait for admission, and rounds that ask for it. */
  waiting = 0;
  asked = 0;
  #turn: PromiseWithResolvers<void> | undefined;
  recalledAt = past;
  /** When the first of the calls that wait now began to. */
  #waitsSince = Number.POSITIVE_INFINITY;
  readonly #times: ShareTimes;

  constructor(scope: Scope, times: ShareTimes) {
    this.key = scope.key;
    this.scope = scope;
    this.#ceiling = scope.amount;
    this.#times = times;
  }

  /** Takes a changed ceiling into account. */
  adopt(scope: Scope): void {
    const before = this.scope;
    if (before === scope) return;
    this.scope = scope;
    if (before.calendar !== scope.calendar && !isSameCalendar(before, scope)) this.#recount();
    this.#limit();
  }

  /** Periods begin at other times: the present one may have begun earlier, so what is known of it is not enough. Running answers go on by it. */
  #recount(): void {
    this.period = never;
    this.#refusedUntil = past;
    this.#known = false;
    this.#isRecounted = true;
    if (this.#times !== undefined) this.#leaving = true;
  }

  /** Takes into account that another ceiling is in force. */
  #limit(): void {
    const before = this.#ceiling;
    this.#ceiling = ceilingIn(this.scope, this.period);
    if (this.#ceiling === before) return;
    this.#refusedUntil = past;
    if (this.#times === undefined) this.#free = money(this.#free + this.#ceiling - before);
    else {
      this.#known = false;
      this.#lowered = most(this.#lowered + before - this.#ceiling, 0n);
      // A share of the old ceiling is worth nothing.
      this.#leaving = true;
    }
  }

  /** Begins the current period if another one was running. A share is kept: what calls hold counts in the new period. */
  roll(now: number): void {
    const { period } = this;
    if (now >= period.start && now < period.end) return;
    this.period = periodOf(this.scope.calendar, now);
    this.#refusedUntil = past;
    this.#limit();
    if (this.#times !== undefined) return;
    // The clock went back, or the scope is new.
    if (now < period.start) this.#known = false;
    this.#free = money(this.#ceiling - this.#held - this.#ordered);
    this.#ended = zero;
    if (this.#ordered > 0n) this.#validUntil = past;
  }

  /** Whether this much can be taken at once. A free call always can. */
  admits(amount: Money, at: number): boolean {
    return amount === 0n || (this.#known && at < this.#validUntil && this.#free >= amount);
  }

  /** Whether it is known without asking that this much is not there. */
  refuses(amount: Money, at: number): boolean {
    if (!this.#known || this.#free >= amount) return false;
    if (this.#times === undefined) return this.#ordered === 0n || at - this.#readAt < staleMs;
    return at < this.#refusedUntil && amount >= this.#refused;
  }

  /** Whether calls may go on by what is known, though it is old. */
  isUsable(amount: Money): boolean {
    return this.#times === undefined && this.#known && this.#free >= amount;
  }

  get isKnown(): boolean {
    return this.#known;
  }

  /** Whether a running answer may take so much more. It is not ended while a ceiling is being read. */
  covers(amount: Money): boolean {
    return amount === 0n || (this.#times === undefined && !this.#known) || this.#free - this.#lowered >= amount;
  }

  /** True: more should be asked for. */
  take(amount: Money, at: number): boolean {
    this.#held = money(this.#held + amount);
    this.#free = money(this.#free - amount);
    return (this.#low > 0n && this.#free < this.#low) || at >= this.#renewAt;
  }

  /** A call has ended that held this much. The end of an earlier period's call does not count in this one. */
  end(held: Money, cost: Money, at: number): void {
    // It ends in a period in which no call has come yet.
    if (this.#times === undefined && at >= this.period.end) this.roll(at);
    const counted = this.#times === undefined && at < this.period.start ? zero : cost;
    this.#held = money(this.#held - held);
    this.#free = money(this.#free + held - counted);
    // With what others have, it may be enough now.
    if (held > counted) this.#refusedUntil = past;
    if (this.asked > 0) this.#note(counted, held > counted ? held : counted);
  }

  /** A call has ended, of which nothing was held here. */
  charge(cost: Money, at: number): void {
    this.end(zero, cost, at);
  }

  /** Only while a request is under way: each begins behind all earlier ends. */
  #note(cost: Money, bound: Money): void {
    this.#ended = money(this.#ended + cost);
    this.#bound = money(this.#bound + bound);
  }

  /** Whether calls of this model count in it: nearly always the one that ended last. */
  counts(model: string): boolean {
    if (model !== this.#model) {
      this.#model = model;
      this.#isCounted = countsModel(this.scope.spending, model);
    }
    return this.#isCounted;
  }

  /** What was held is an order's from here on. `isSure`: it has been placed. */
  order(held: Money, isSure: boolean): void {
    this.#held = money(this.#held - held);
    if (this.asked > 0) this.#note(held, held);
    this.#ordered = money(this.#ordered + held);
    if (!isSure) this.doubt();
  }

  doubt(): void {
    if (this.#times === undefined) this.#known = false;
  }

  get isIdle(): boolean {
    return this.#held === 0n && this.waiting === 0 && this.asked === 0;
  }

  get isShared(): boolean {
    return this.#times !== undefined;
  }

  /** A call waits for this much. */
  wait(amount: Money, at: number): void {
    if (at < this.#waitsSince) this.#waitsSince = at;
    this.#needs.push(amount);
  }

  waited(amount: Money): void {
    this.#needs.splice(this.#needs.indexOf(amount), 1);
    if (this.#needs.length === 0) this.#waitsSince = Number.POSITIVE_INFINITY;
  }

  /** A running answer will need this much. False: it is there, or was asked for. */
  needSoon(amount: Money): boolean {
    if (this.#times === undefined || this.#free >= amount || this.#ahead >= amount) return false;
    this.#ahead = amount;
    return true;
  }

  /** More is being asked for: the next calls need not ask for the same. */
  toppingUp(): void {
    this.#low = zero;
    this.#renewAt = Number.POSITIVE_INFINITY;
  }

  /** Another process needs what is free here. */
  leave(at: number): void {
    this.#leaving = true;
    this.#modestUntil = at + modestMs;
  }

  /** From here on ends are counted that the ledger may lack when it is asked. */
  mark(): void {
    this.#ended = zero;
    this.#bound = zero;
  }

  /** The request as of now. What is returned cannot be spent from here on, whether an answer arrives or not. */
  request(at: number): ShareRequest {
    const needs = this.#needs;
    const need = money(needs.reduce((sum, amount) => sum + amount, 0n) + this.#ahead);
    const smallest = needs.reduce((found, amount) => least(found, amount), needs[0] ?? this.#ahead);
    const { spending, id } = this.scope;
    if (smallest > 0n) this.#unit = smallest;
    if (this.#leaving) this.#free = least(this.#free, this.#bound - this.#ended);
    const isModest = this.#leaving || at < this.#modestUntil;
    this.#leaving = false;
    this.#isRecounted = false;
    this.#ahead = zero;
    return {
      accountId: spending.accountId,
      scope: id,
      counted: { spending, from: this.period.start, amount: this.#ceiling },
      pending: money(this.#held + this.#ended),
      open: this.#held,
      keep: most(this.#free, 0n),
      need,
      smallest,
      wish: isModest ? zero : money(this.#unit * usualHolds),
      waitedMs: needs.length === 0 ? 0 : Math.max(0, at - this.#waitsSince),
    };
  }

  /** The answer to a request sent at `sentAt`, for the period that began at `from`. True: something is to be returned at once. */
  answered(request: ShareRequest, { amount, rest, elsewhere, ordered }: ShareAnswer, sentAt: number): boolean {
    if (this.#times === undefined && request.counted!.from !== this.period.start) return false;
    if (request.counted!.amount !== this.#ceiling || this.#isRecounted) return false;
    this.#known = true;
    this.#lowered = zero;
    this.#readAt = sentAt;
    this.#free = money(amount - this.#held - this.#ended);
    this.#ordered = ordered;
    this.elsewhere = elsewhere;
    if (this.#times === undefined) {
      this.#validUntil = ordered > 0n ? sentAt + oldestMs : Number.POSITIVE_INFINITY;
      this.#renewAt = ordered > 0n ? sentAt + refreshMs : Number.POSITIVE_INFINITY;
      return false;
    }
    this.#validUntil = sentAt + this.#times.lastsMs;
    this.#renewAt = this.#validUntil - this.#times.renewBelowMs;
    const granted = amount - request.pending;
    this.#rest = money(most(rest, 0n) - granted);
    // Near the end nothing is asked for in advance.
    this.#low = granted < request.smallest * 4n || this.#rest <= 0n ? zero : money(granted / 2n);
    if (this.#rest >= 0n) return false;
    this.#free = most(this.#free + this.#rest, least(this.#free, 0n));
    return request.keep > 0n;
  }

  /** Whether the database may have this much for a call behind the last answer, here or with others. */
  isObtainable(amount: Money): boolean {
    return this.#free + most(this.#rest, 0n) + this.elsewhere >= amount;
  }

  /** What calls of this process could take, as far as is known. */
  get left(): Money {
    return most(this.#free + most(this.#rest, 0n) + this.elsewhere, 0n);
  }

  confirmRefusal(amount: Money, at: number): void {
    this.#refused = amount;
    this.#refusedUntil = at + refusedMs;
  }

  /** Nothing could be read: what is known is used for a while. */
  postpone(at: number): void {
    if (this.#times === undefined) this.#validUntil = Math.max(this.#validUntil, at + oldestMs);
    this.#renewAt = at + refreshMs;
  }

  get nextTurn(): Promise<void> {
    this.#turn ??= Promise.withResolvers();
    return this.#turn.promise;
  }

  /** There may be more: waiting calls ask again, and new ones are not refused without asking. */
  endTurn(): void {
    this.#refusedUntil = past;
    this.#turn?.resolve();
    this.#turn = undefined;
  }
}

function isSameCalendar({ calendar: left }: Scope, { calendar: right }: Scope): boolean {
  return left.every === right.every && left.zone === right.zone && left.first === right.first;
}
