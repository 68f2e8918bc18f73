/**
 * Cached balances: what this process may spend of each account, loaded on first use, shared by its requests,
 * bounded.
 */

import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import { type Money, zero } from '../../common/domain/money.ts';
import { within } from '../../common/kit/waits/within.ts';
import type { Funds } from '../grants/funds.ts';
import { type Balance, balanceUnavailable } from './balance.ts';

/** How long a call waits for a balance that is read for the first time. */
export const longestReadMs = 5_000;

export interface BalanceCacheOptions<Kind extends Balance> {
  readonly clock: Clock;
  /** The most accounts in memory. */
  readonly limit: number;
  /** An unused balance is evicted after this long. */
  readonly idleMs: number;
  readonly kind: new (accountId: string, clock: Clock) => Kind;
  /** The account's funds in the database; 0 when it has none. */
  readonly fundsOf: (accountId: string) => Promise<Funds>;
  /** Present where processes share accounts: leases money for a new balance, for a call that needs this much. */
  lease?(balance: Kind, need: Money): Promise<unknown>;
}

export class BalanceCache<Kind extends Balance = Balance> {
  readonly #options: BalanceCacheOptions<Kind>;
  readonly #balances = new Map<string, Kind>();
  readonly #loading = new Map<string, Promise<Kind>>();

  constructor(options: BalanceCacheOptions<Kind>) {
    this.#options = options;
  }

  /** The most accounts in memory. */
  get limit(): number {
    return this.#options.limit;
  }

  find(accountId: string): Kind | undefined {
    return this.#balances.get(accountId);
  }

  /** Whether the account is in memory or being loaded, so that changes to it matter. */
  knows(accountId: string): boolean {
    return this.#balances.has(accountId) || this.#loading.has(accountId);
  }

  [Symbol.iterator](): IterableIterator<Kind> {
    return this.#balances.values();
  }

  /**
   * The account's balance, in use until its `release`. 503 when the database does not answer: an unknown balance
   * allows nothing. `need`: the amount that the call will request. `longestMs`: 503 after so long, too; the balance being read is
   * there for a later call.
   */
  async acquire(accountId: string, need: Money = zero, longestMs?: number): Promise<Kind> {
    let balance = this.#loading.get(accountId) ?? this.#balances.get(accountId) ?? this.#load(accountId, need);
    if (balance instanceof Promise)
      balance = await (longestMs === undefined ? balance : within(longestMs, balance, balanceUnavailable));
    balance.use();
    return balance;
  }

  /** Evicts balances that have been unused for a while. */
  sweep(idleMs: number = this.#options.idleMs): void {
    const before = this.#options.clock.monotonic() - idleMs;
    for (const balance of this.#balances.values())
      if (balance.isUnusedSince(before)) this.#balances.delete(balance.accountId);
  }

  /** The balance in memory, or one that pays for nothing before the database has been asked. */
  unread(accountId: string): Kind {
    return this.find(accountId) ?? this.#add(accountId);
  }

  #load(accountId: string, need: Money): Promise<Kind> {
    const loading = this.#read(accountId, need).finally(() => this.#loading.delete(accountId));
    this.#loading.set(accountId, loading);
    return loading;
  }

  async #read(accountId: string, need: Money): Promise<Kind> {
    if (this.#options.lease !== undefined) return this.#readLease(this.#add(accountId), need);
    this.#makeRoom();
    const funds = await this.#options.fundsOf(accountId).catch((cause: unknown) => {
      throw balanceUnavailable(cause);
    });
    const balance = this.#set(accountId);
    balance.reconcile(funds);
    return balance;
  }

  /** It is in memory before its share arrives: the lease manager looks it up here. */
  async #readLease(balance: Kind, need: Money): Promise<Kind> {
    balance.use();
    try {
      await this.#options.lease!(balance, need);
      return balance;
    } catch (error) {
      if (balance.users === 1) this.#balances.delete(balance.accountId);
      throw error;
    } finally {
      balance.release();
    }
  }

  #add(accountId: string): Kind {
    this.#makeRoom();
    return this.#set(accountId);
  }

  #set(accountId: string): Kind {
    const { kind: NewBalance, clock } = this.#options;
    const balance = new NewBalance(accountId, clock);
    this.#balances.set(accountId, balance);
    return balance;
  }

  #makeRoom(): void {
    const { limit } = this.#options;
    if (this.#balances.size + this.#loading.size >= limit) this.sweep(0);
    if (this.#balances.size + this.#loading.size < limit) return;
    throw new GatewayError('overloaded', 'Too many accounts are active at the moment.', { retryAfterMs: 1_000 });
  }

  /** Sets what the database has. Only while no batch is in progress. */
  reconcile(accountId: string, funds: Funds): void {
    this.#balances.get(accountId)?.reconcile(funds);
  }

  /** Sets only the database's balance, after a batch. False: the account has grants and must be read in full. */
  reconcileTotal(accountId: string, balance: Money): boolean {
    return this.#balances.get(accountId)?.reconcileTotal(balance) ?? true;
  }
}
