/** Acquires lease shares of balances for this node, returns what other nodes need, and renews its leases. */
import type { Clock, Log } from '../../../core/contract/host-tools.ts';
import { type Money, money } from '../../common/domain/money.ts';
import type { Funds } from '../grants/funds.ts';
import { balanceUnavailable } from '../ledger/balance.ts';
import type { BalanceCache } from '../ledger/balance-cache.ts';
import type { Flusher } from '../ledger/flusher.ts';
import { idleTurns, type LeasedBalance, maxWaitMs, restTurns } from './leased-balance.ts';
import { patienceMs } from './recall.ts';
import type { Leased, LeaseRequest } from './store.ts';
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
/** The least number of requests before a call gets 503 although its money is free of leases. */
const maxTries = 10;
/** The same for money that other nodes have leased: they were asked to return it and had time to do so. */
const leastTries = 3;
/** Accounts of which leases are renewed in one check, so that no statement keeps calls waiting that need money. */
const renewalsAtOnce = 500;
const none = money(0n);

export interface LeaseManagerOptions {
  /** This node's id. */
  readonly node: string;
  readonly balances: BalanceCache<LeasedBalance>;
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

  /** Asks the database once for all calls that wait for this account: one waits for this much. */
  async open(balance: LeasedBalance, amount: Money): Promise<void> {
    balance.wait(amount);
    try {
      if (!(await this.#options.flusher.refresh(balance.accountId))) throw balanceUnavailable();
    } finally {
      balance.waited(amount);
    }
  }

  async request(balance: LeasedBalance, amount: Money, { tries, since }: WaitState): Promise<boolean> {
    const isFree = balance.isObtainable(amount);
    const isElsewhere = !isFree && balance.mayBeReturned(amount);
    const waitedMs = tries === 0 ? 0 : this.#options.clock.monotonic() - since;
    // With a slow database a few tries take long; money that is there is no reason for a 402.
    if (isFree && tries >= maxTries && waitedMs >= maxWaitMs) throw balanceUnavailable();
    if (isElsewhere && tries >= leastTries && waitedMs >= patienceMs) throw balanceUnavailable();
    if (!isFree && !isElsewhere && tries > 0 && waitedMs >= balance.waitMsFor(amount)) return false;
    if (tries > 0 && !isFree) await this.#recall(balance);
    await this.open(balance, amount);
    return true;
  }

  topUp(balance: LeasedBalance): void {
    balance.topUp();
    void this.#options.flusher.refresh(balance.accountId);
  }

  prepare(balance: LeasedBalance, amount: Money): void {
    if (balance.needSoon(amount)) void this.#options.flusher.refresh(balance.accountId);
  }

  /** Called by the flusher between two batches: exchanges the shares of these accounts. */
  async exchange(accountIds: readonly string[]): Promise<Map<string, Funds>> {
    const { balances, clock, flusher, node, takeShares } = this.#options;
    const sentAt = clock.monotonic();
    // Money that an evicted balance left in the database is returned.
    const requests = accountIds.map((id) => balances.find(id)?.request(sentAt) ?? nothingOf(id));
    const answers = await takeShares(requests);
    const funds = new Map<string, Funds>();
    for (const request of requests) {
      const { accountId } = request;
      const answer = answers.get(accountId)!;
      const balance = balances.find(accountId);
      if (balance?.grant(request, answer, sentAt, answer.lastsMs) === true) void flusher.refresh(accountId);
      if (balance?.hasReturned(request) === true) this.#report('lease returned', `${node} ${accountId}`);
      funds.set(accountId, { balance: answer.amount, pool: answer.pool, term: answer.term });
    }
    return funds;
  }

  /** Asks the other nodes for unused money, and waits for an answer or the next turn. */
  #recall(balance: LeasedBalance): Promise<void> {
    const { clock, node } = this.#options;
    if (balance.mayRecall(clock.monotonic())) this.#report('lease wanted', `${node} ${balance.accountId}`);
    return balance.nextTurn;
  }

  #report(topic: string, subject: string): void {
    this.#options.announce(topic, subject).catch((error: unknown) => {
      this.#options.log.warn({ error, topic }, 'other nodes could not be notified of a lease');
    });
  }

  /** Another node needs the money that is unused here. `subject`: node and account. */
  wanted(subject: string): void {
    const balance = this.#balanceOf(subject);
    balance?.recalled();
    if (balance !== undefined) this.#leave(balance);
  }

  /** Another node has returned money: waiting calls ask again. */
  returned(subject: string): void {
    this.#balanceOf(subject)?.endTurn();
  }

  #balanceOf(subject: string): LeasedBalance | undefined {
    const space = subject.indexOf(' ');
    if (subject.slice(0, space) === this.#options.node) return undefined;
    return this.#options.balances.find(subject.slice(space + 1));
  }

  /** A batch sent at `sentAt` was applied: it renewed the leases of its accounts. */
  renewed(accountIds: readonly string[], sentAt: number): void {
    for (const accountId of accountIds) {
      const balance = this.#options.balances.find(accountId);
      // Money that could not be returned before the ledger had these rows.
      if (balance?.owes === true) void this.#options.flusher.refresh(accountId);
      balance?.renew(sentAt + this.#times.lastsMs);
    }
  }

  /** Every few milliseconds: lets waiting calls ask again, and returns the remainder of nearly empty accounts. */
  turn(): void {
    for (const balance of this.#options.balances) {
      balance.endTurn();
      const isSpare = this.#draining || (balance.isTight && !this.#bridges(balance));
      if (!isSpare || balance.isLeaving || balance.users > 0) continue;
      if (balance.available > 0n) this.#leave(balance);
    }
  }

  /** Once a second: returns unused money but for what bridges an outage, and renews leases that end soon. */
  look(): void {
    const renewBefore = this.#options.clock.monotonic() + this.#times.renewBelowMs;
    const places = this.#placesForIdle();
    let renewals = 0;
    for (const balance of this.#options.balances) {
      const isIdle = balance.idleTurns >= idleTurns;
      const rests = isIdle && this.#bridges(balance) && places(balance.idleTurns);
      // A negative balance was overspent by a settlement; what remains of its lease is returned too.
      const isEmpty = balance.available === 0n;
      if (isIdle && !rests && !isEmpty) this.#leave(balance);
      if (!rests && (isIdle || isEmpty)) continue;
      if (rests === balance.isResting && !balance.endsBefore(renewBefore)) continue;
      if (rests && ++renewals > renewalsAtOnce) continue;
      balance.rest(rests);
      void this.#options.flusher.refresh(balance.accountId);
    }
  }

  /**
   * Counts since when accounts are idle. Whether one that is idle for so many checks may keep a small share: those that called
   * last may, as many as there are places for.
   */
  #placesForIdle(): (turns: number) => boolean {
    const idleFor = this.#idleFor.fill(0);
    for (const balance of this.#options.balances) {
      const turns = balance.countIdle();
      if (turns >= idleTurns && this.#bridges(balance)) idleFor[turns]! += 1;
    }
    let left = this.#options.mostResting ?? 0;
    let longest = idleTurns;
    while (longest < restTurns && idleFor[longest]! <= left) left -= idleFor[longest++]!;
    return (turns) => turns < longest || (turns === longest && left-- > 0);
  }

  #bridges(balance: LeasedBalance): boolean {
    return (this.#options.bridgeMs ?? 0) > 0 && !this.#draining && balance.bridges;
  }

  /** From now on only money reserved by calls is kept. */
  drain(): void {
    this.#draining = true;
    for (const balance of this.#options.balances) if (balance.available > 0n) this.#leave(balance);
  }

  #leave(balance: LeasedBalance): void {
    balance.leave();
    void this.#options.flusher.refresh(balance.accountId);
  }

  /** Returns the leases of these accounts, which the database lists for this node, where no cached balance exists. */
  reclaim(accountIds: readonly string[]): void {
    const { balances, flusher } = this.#options;
    for (const accountId of accountIds) if (!balances.knows(accountId)) void flusher.refresh(accountId);
  }
}

function nothingOf(accountId: string): LeaseRequest {
  const nothing = { pending: none, keep: none, need: none, smallest: none, target: none, ahead: none };
  return { accountId, ...nothing, leaving: true, owing: false };
}
