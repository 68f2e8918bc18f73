/** Acquires lease shares of balances for this node, returns what other nodes need, and renews its leases. */
import type { Clock, Log } from '../../../core/contract/host-tools.ts';
import { type Money, money } from '../../common/domain/money.ts';
import { lockedAt } from '../grants/balances.ts';
import type { Funds } from '../grants/funds.ts';
import { type BalanceCache, balanceUnavailable } from '../ledger/balance-cache.ts';
import type { CachedBalance, LeaseShare } from '../ledger/cached-balance.ts';
import { beatMs, type Flusher } from '../ledger/flusher.ts';
import { patienceMs } from './recall.ts';
import { idleTurns, type LeaseRequest, leaseRequestOf, takeAnswer } from './share.ts';
import type { Leased } from './store.ts';
import type { LeaseTopUp, WaitState } from './top-up.ts';

/**
 * The duration of leases, after which a node that cannot reach the database admits no calls, and the remainder below which they are renewed:
 * at any time an outage of `bridgeMs` passes.
 */
export function leaseTimes(bridgeMs: number): { readonly lastsMs: number; readonly renewBelowMs: number } {
  return bridgeMs === 0
    ? { lastsMs: 30_000, renewBelowMs: 15_000 }
    : { lastsMs: bridgeMs + 60_000, renewBelowMs: bridgeMs + 15_000 };
}
/** The time a call waits for what calls on other nodes leave, or for money that is free and others take first. */
const maxWaitMs = 1_000;
/** The least number of requests before a call gets 503 although its money is free of leases. */
const maxTries = 10;
/** The same for money that other nodes have leased: they were asked to return it and had time to do so. */
const leastTries = 3;
/** The time after which a call that ended on another node is in the ledger: a beat of its batches, and as long to write one. */
const ledgerDelayMs = 2 * beatMs;
/** The shortest interval between recalls of one account. */
const recallIntervalMs = 200;
/** Checks, one per second, without a new row after which the small share of an idle account is returned too. */
const restTurns = 3_600;
/** Accounts of which leases are renewed in one check, so that no statement keeps calls waiting that need money. */
const renewalsAtOnce = 500;
const none = money(0n);

export interface LeaseManagerOptions {
  /** This node's id. */
  readonly node: string;
  readonly balances: BalanceCache;
  readonly flusher: Flusher;
  readonly clock: Clock;
  readonly log: Log;
  /** How long an outage of the database may be that accounts pass within a small share; absent: 0, and nothing is kept for it. */
  readonly bridgeMs?: number;
  /** Accounts with such a share, at most. */
  readonly mostResting?: number;
  readonly takeShares: (requests: readonly LeaseRequest[]) => Promise<Map<string, Leased>>;
  /** Notifies all nodes: `lease wanted`, `lease returned`. */
  readonly announce: (topic: string, subject: string) => Promise<void>;
}

export class LeaseManager implements LeaseTopUp {
  readonly #options: LeaseManagerOptions;
  readonly #times: ReturnType<typeof leaseTimes>;
  readonly #idleFor = new Uint32Array(restTurns);
  #draining = false;

  constructor(options: LeaseManagerOptions) {
    this.#options = options;
    this.#times = leaseTimes(options.bridgeMs ?? 0);
  }

  /** Acquires the first share of a new cached balance. */
  async open(cached: CachedBalance, need: Money): Promise<void> {
    await this.#exchange(cached, need);
  }

  async request(cached: CachedBalance, amount: Money, { tries, since }: WaitState): Promise<boolean> {
    const share = cached.lease!;
    // Other calls may already have taken the last exchange's money; money being returned is free again after the next.
    const obtainable = share.unleased + share.withheld;
    const isFree = obtainable > 0n && cached.base + cached.posted + obtainable >= amount;
    const isElsewhere = !isFree && this.#mayBeReturned(cached, amount);
    const waitedMs = tries === 0 ? 0 : this.#options.clock.monotonic() - since;
    // With a slow database a few tries take long; money that is there is no reason for a 402.
    if (isFree && tries >= maxTries && waitedMs >= maxWaitMs) throw balanceUnavailable();
    if (isElsewhere && tries >= leastTries && waitedMs >= patienceMs) throw balanceUnavailable();
    if (!isFree && !isElsewhere && tries > 0 && waitedMs >= waitMsOf(share, amount)) return false;
    if (tries > 0 && !isFree) await this.#recall(cached);
    await this.#exchange(cached, amount);
    return true;
  }

  /** Whether the amount is there if the nodes that live return all that they have: some of it they may have spent. */
  #mayBeReturned({ lease, pool }: CachedBalance, amount: Money): boolean {
    const { nodes, elsewhere, rest } = lease!;
    if (nodes === 1 || elsewhere === 0n) return false;
    const locked = pool === undefined ? 0n : lockedAt(pool.grants, pool.spent, this.#options.clock.now()).locked;
    return rest - locked + elsewhere >= amount;
  }

  topUp(cached: CachedBalance): void {
    // Set so that the next calls do not ask for the same.
    cached.lease!.lowWater = none;
    cached.lease!.resting = false;
    void this.#options.flusher.refresh(cached.accountId);
  }

  prepare(cached: CachedBalance, amount: Money): void {
    const share = cached.lease!;
    if (cached.base + cached.posted >= amount || share.ahead >= amount) return;
    share.ahead = amount;
    share.resting = false;
    void this.#options.flusher.refresh(cached.accountId);
  }

  /** Asks the database once for all calls that wait for this account. */
  async #exchange(cached: CachedBalance, amount: Money): Promise<void> {
    const { waiting } = cached.lease!;
    cached.lease!.resting = false;
    waiting.push(amount);
    try {
      if (!(await this.#options.flusher.refresh(cached.accountId))) throw balanceUnavailable();
    } finally {
      waiting.splice(waiting.indexOf(amount), 1);
    }
  }

  /** Called by the flusher between two batches: exchanges the shares of these accounts. */
  async exchange(accountIds: readonly string[]): Promise<Map<string, Funds>> {
    const { balances: cachedBalances, clock, takeShares } = this.#options;
    const sentAt = clock.monotonic();
    // Money that an evicted balance left in the database is returned.
    const requests = accountIds.map((accountId) => {
      const cached = cachedBalances.find(accountId);
      return cached === undefined ? nothingOf(accountId) : leaseRequestOf(cached, cached.lease!, sentAt);
    });
    const answers = await takeShares(requests);
    const funds = new Map<string, Funds>();
    for (const request of requests) {
      const answer = answers.get(request.accountId)!;
      this.#take(request, answer, sentAt);
      funds.set(request.accountId, { balance: answer.amount, pool: answer.pool, term: answer.term });
    }
    return funds;
  }

  #take(request: LeaseRequest, answer: Leased, sentAt: number): void {
    const { balances: cachedBalances, flusher, node } = this.#options;
    const cached = cachedBalances.find(request.accountId);
    const share = cached?.lease;
    if (cached === undefined || share === undefined) return;
    const isTooMuch = takeAnswer(cached, share, request, answer, sentAt, answer.lastsMs);
    if (isTooMuch) void flusher.refresh(request.accountId);
    if (!request.leaving || !share.isRecalled) return;
    share.isRecalled = share.leaving;
    this.#report('lease returned', `${node} ${request.accountId}`);
  }

  /** Asks the other nodes for unused money, and waits for an answer or the next turn. */
  #recall(cached: CachedBalance): Promise<void> {
    const { clock, node } = this.#options;
    const share = cached.lease!;
    const now = clock.monotonic();
    if (now - share.recalledAt >= recallIntervalMs) {
      share.recalledAt = now;
      this.#report('lease wanted', `${node} ${cached.accountId}`);
    }
    share.turn ??= Promise.withResolvers<void>();
    return share.turn.promise;
  }

  #report(topic: string, subject: string): void {
    this.#options.announce(topic, subject).catch((error: unknown) => {
      this.#options.log.warn({ error, topic }, 'other nodes could not be notified of a lease');
    });
  }

  /** Another node needs the money that is unused here. `subject`: node and account. */
  wanted(subject: string): void {
    const cached = this.#balanceOf(subject);
    if (cached?.lease === undefined) return;
    cached.lease.isRecalled = true;
    // Otherwise the next call would lease all of it again before the node that asked for it.
    cached.lease.target = none;
    this.#leave(cached);
  }

  /** Another node has returned money: waiting calls ask again. */
  returned(subject: string): void {
    const cached = this.#balanceOf(subject);
    if (cached?.lease !== undefined) this.#nextTurn(cached);
  }

  #balanceOf(subject: string): CachedBalance | undefined {
    const space = subject.indexOf(' ');
    if (subject.slice(0, space) === this.#options.node) return undefined;
    return this.#options.balances.find(subject.slice(space + 1));
  }

  #nextTurn({ lease: share }: CachedBalance): void {
    const turn = share!.turn;
    share!.turn = undefined;
    turn?.resolve();
  }

  /** A batch sent at `sentAt` was applied: it renewed the leases of its accounts. */
  renewed(accountIds: readonly string[], sentAt: number): void {
    for (const accountId of accountIds) {
      const cached = this.#options.balances.find(accountId);
      if (cached?.lease === undefined) continue;
      const { lease: share } = cached;
      // Money that could not be returned before the ledger had these rows.
      if (share.leaving || share.withheld > 0n) void this.#options.flusher.refresh(accountId);
      if (cached.pool !== undefined) continue;
      // An expired lease may have been released: the database must be asked.
      if (this.#options.clock.monotonic() < share.validUntil)
        share.validUntil = Math.max(share.validUntil, sentAt + this.#times.lastsMs);
    }
  }

  /** Every few milliseconds: lets waiting calls ask again, and returns the remainder of nearly empty accounts. */
  turn(): void {
    for (const cached of this.#options.balances) {
      const share = cached.lease!;
      if (share.turn !== undefined) this.#nextTurn(cached);
      const isSpare = this.#draining || (share.tight && share.nodes > 1 && !this.#bridges(cached));
      if (!isSpare || share.leaving || cached.users > 0) continue;
      if (cached.base + cached.posted > 0n) this.#leave(cached);
    }
  }

  /** Once a second: returns unused money but for what bridges an outage, and renews leases that end soon. */
  look(): void {
    const now = this.#options.clock.monotonic();
    const places = this.#placesForIdle();
    let renewals = 0;
    for (const cached of this.#options.balances) {
      const share = cached.lease!;
      const isIdle = share.idleTurns >= idleTurns;
      const rests = isIdle && this.#bridges(cached) && places(share.idleTurns);
      // A negative balance was overspent by a settlement; what remains of its lease is returned too.
      const isEmpty = cached.base + cached.posted === 0n;
      if (isIdle && !rests && !isEmpty) this.#leave(cached);
      if (!rests && (isIdle || isEmpty)) continue;
      const isRenewed = share.validUntil - now >= this.#times.renewBelowMs;
      if (rests === share.resting && isRenewed) continue;
      if (rests && ++renewals > renewalsAtOnce) continue;
      share.resting = rests;
      void this.#options.flusher.refresh(cached.accountId);
    }
  }

  /**
   * Counts since when accounts are idle. Whether one that is idle for so many checks may keep a small share: those that called
   * last may, as many as there are places for.
   */
  #placesForIdle(): (turns: number) => boolean {
    const idleFor = this.#idleFor.fill(0);
    for (const cached of this.#options.balances) {
      const share = cached.lease!;
      const isIdle = share.posted === cached.posted && share.rows === cached.rows;
      share.idleTurns = isIdle ? share.idleTurns + 1 : 0;
      share.posted = cached.posted;
      share.rows = cached.rows;
      if (share.idleTurns >= idleTurns && this.#bridges(cached)) idleFor[share.idleTurns]! += 1;
    }
    let left = this.#options.mostResting ?? 0;
    let longest = idleTurns;
    while (longest < restTurns && idleFor[longest]! <= left) left -= idleFor[longest++]!;
    return (turns) => turns < longest || (turns === longest && left-- > 0);
  }

  /**
   * Whether a small share of the account, once it is idle, bridges an outage: of what it has here, or of what a recall has taken
   * from it. What covers no call is of more use to other nodes.
   */
  #bridges({ base, posted, lease }: CachedBalance): boolean {
    const { idleTurns: turns, unit, isRecalled, rest, elsewhere, held } = lease!;
    if (this.#options.bridgeMs === undefined || this.#options.bridgeMs === 0 || this.#draining) return false;
    if (turns >= restTurns || isRecalled || unit === 0n) return false;
    const available = base + posted;
    return available >= unit || (available === 0n && rest + elsewhere + held >= unit);
  }

  /** From now on only money reserved by calls is kept. */
  drain(): void {
    this.#draining = true;
    for (const cached of this.#options.balances) if (cached.base + cached.posted > 0n) this.#leave(cached);
  }

  #leave(cached: CachedBalance): void {
    cached.lease!.leaving = true;
    void this.#options.flusher.refresh(cached.accountId);
  }

  /** Returns the leases of these accounts, which the database lists for this node, where no cached balance exists. */
  reclaim(accountIds: readonly string[]): void {
    const { balances: cachedBalances, flusher } = this.#options;
    for (const accountId of accountIds) if (!cachedBalances.knows(accountId)) void flusher.refresh(accountId);
  }
}

/** How long a call waits for what calls that end elsewhere leave: not at all if they have too little. */
function waitMsOf({ nodes, elsewhere, held, rest }: LeaseShare, amount: Money): number {
  if (nodes === 1 || rest + elsewhere + held < amount) return 0;
  if (elsewhere > 0n) return maxWaitMs;
  return held > 0n ? ledgerDelayMs : 0;
}

function nothingOf(accountId: string): LeaseRequest {
  const nothing = { pending: none, keep: none, need: none, smallest: none, target: none, ahead: none };
  return { accountId, ...nothing, leaving: true, owing: false };
}
