/**
 * Account changes outside of calls: made in the database under the account's lock, protected from this process's
 * calls, announced to all processes.
 */
import { GatewayError } from '../../../core/contract/errors.ts';
import { accountAdmin } from '../../common/domain/admin/accounts.ts';
import type { PlanTerm } from '../../common/domain/ledger.ts';
import { type Money, money } from '../../common/domain/money.ts';
import { plans } from '../../common/domain/plans.ts';
import { patienceMs, pauseBefore, type RecallTools, recallLeases } from '../leases/recall.ts';
import { balanceUnavailable } from '../ledger/balance.ts';
import type { CreditTerms } from '../ledger/credit-lines.ts';
import type { Entries, Movement } from '../ledger/entries.ts';
import { applyDueTerms, type CallPlan, expireAfterMs } from '../ledger/terms.ts';
import type { RestoreWatch } from '../restores/watch.ts';
import type { BillingRuntime } from '../runtime.ts';

const none = money(0n);
const rereadAfterMs = 1_000;
/** The most accounts for which expired money is booked in one go. */
const mostAtOnce = 200;

type Work<T> = (entries: Entries) => Promise<T>;

/** Protects money being debited from the calls of this process. */
interface Guard {
  /** False: the money could not be protected, so nothing may be debited. */
  readonly mayTake: boolean;
  /** Called once memory has the change. */
  readonly release?: (() => void) | undefined;
}

/** `isCurrent`: money that may not be debited does not exist, according to the database. */
type Guarded<T> = (guard: Guard, isCurrent: boolean) => Promise<T>;

/** A due renewal that did not reserve its price against running calls: it is rolled back. */
class UnguardedSale extends GatewayError {
  readonly price: Money;

  constructor(price: Money) {
    super('overloaded', 'Due changes of the account could not be applied; please try again soon.', {
      retryAfterMs: 1_000,
    });
    this.price = price;
  }
}

export interface AccountTools extends RecallTools {
  /** The running runtime, which spends from memory; undefined while the process does not serve. */
  readonly runtime: () => BillingRuntime | undefined;
  readonly watch?: RestoreWatch | undefined;
  /** Absent: no account has a credit line. */
  readonly credit?: CreditTerms | undefined;
}

export class AccountChanges {
  readonly #tools: AccountTools;
  /** Up to this account expired money has been booked in the present round. */
  #bookedTo = '';
  /** Due renewals in progress, by account: one at a time, or one would count the other's reserved price as missing. */
  readonly #sales = new Map<string, Promise<number>>();
  /** Called when an account's term has ended. */
  onTermEnded: ((entries: Entries, term: PlanTerm) => Promise<void>) | undefined;

  constructor(tools: AccountTools) {
    this.#tools = tools;
  }

  /** Changes the account. `atMost`: the most the change debits, which calls cannot spend meanwhile. */
  async change<T>(accountId: string, atMost: Money, work: Work<T>): Promise<T> {
    // Due grants and expiries must be included before balances are reported.
    await this.#applyWhatIsDue(accountId);
    const running = this.#tools.runtime();
    if (this.#tools.database.shared === true) return this.#changeShared(accountId, atMost, work);
    if (running === undefined || atMost <= 0n) return this.#change(accountId, work, { mayTake: true });
    return this.#keep(running, accountId, atMost, (guard) => this.#change(accountId, work, guard));
  }

  /**
   * Processes spend what they have leased; the transaction sees the leased amount. What it lacks because living processes
   * have it leased may have been returned by the next try; 503 when they keep it, 402 only where the money is not there.
   */
  async #changeShared<T>(accountId: string, atMost: Money, work: Work<T>): Promise<T> {
    if (atMost <= 0n) return this.#change(accountId, work, { mayTake: true });
    const until = this.#tools.host.clock.monotonic() + patienceMs;
    for (let tries = 0; ; tries += 1) {
      await recallLeases(this.#tools, accountId, atMost, until);
      let isReturnable = false;
      try {
        return await this.#change(
          accountId,
          (entries) => {
            isReturnable = entries.mayBeReturned(atMost);
            return work(entries);
          },
          { mayTake: true },
        );
      } catch (error) {
        const isLacking = error instanceof GatewayError && error.kind === 'insufficient_balance';
        if (!isLacking || !isReturnable) throw error;
        if (this.#tools.host.clock.monotonic() >= until) throw balanceUnavailable(error);
      }
      // A process has leased again what it had just returned.
      await pauseBefore(tries);
    }
  }

  /**
   * Runs `work` while `amount` is protected from calls. Calls are admitted from memory alone, so memory has the
   * change before the database does.
   */
  async #keep<T>(
    { balances, flusher }: BillingRuntime,
    accountId: string,
    amount: Money,
    work: Guarded<T>,
  ): Promise<T> {
    const balance = await balances.acquire(accountId);
    try {
      let release = balance.reserve(amount);
      let isCurrent = true;
      while (release === undefined) {
        isCurrent = await flusher.refresh(accountId);
        if (isCurrent) release = balance.reserve(amount);
        const unlocked = release === undefined ? balance.untilUnlocked(amount) : undefined;
        if (unlocked === undefined) break;
        await unlocked;
      }
      return await work({ mayTake: release !== undefined, release }, isCurrent);
    } finally {
      balance.release();
    }
  }

  async #change<T>(accountId: string, work: Work<T>, { mayTake, release }: Guard): Promise<T> {
    let isUndone = false;
    try {
      return await this.#transact(accountId, (entries) => {
        entries.mayTake = mayTake;
        return work(entries);
      });
    } catch (error) {
      // A refused change had no effect; after any other error the result is unknown. Other processes would lease again on
      // an announcement.
      isUndone = error instanceof GatewayError;
      throw error;
    } finally {
      const known = isUndone || (await this.#announce(accountId));
      if (known) release?.();
      else if (release !== undefined) this.#releaseLater(accountId, release);
    }
  }

  /** Calls may not spend the amount before memory has what became of the change: the balance is read until it can be. */
  #releaseLater(accountId: string, release: () => void): void {
    setTimeout(async () => {
      const running = this.#tools.runtime();
      if (running === undefined) return;
      if (!running.balances.knows(accountId) || (await running.flusher.refresh(accountId))) release();
      else this.#releaseLater(accountId, release);
    }, rereadAfterMs).unref();
  }

  /**
   * Due changes are applied first, so that expired money buys nothing; they stay even if the remaining work is
   * refused.
   */
  async read<T>(accountId: string, work: Work<T>): Promise<T> {
    await this.#applyWhatIsDue(accountId, await this.#planOf(accountId));
    return this.#transact(accountId, work);
  }

  /** Gives what the account's plan brings now, and takes what has expired, as a call of the account would. */
  async applyDue(accountId: string): Promise<void> {
    const balance = this.#tools.runtime()?.balances.find(accountId);
    if (balance?.isChecked(this.#tools.host.clock.now()) === true) return;
    await this.#applyWhatIsDue(accountId, await this.#planOf(accountId));
  }

  /** Posts what has expired of accounts that make no calls, some at a time. */
  async bookExpired(): Promise<void> {
    const { host, store } = this.#tools;
    const accountIds = await store.expired(host.clock.now() - expireAfterMs, this.#bookedTo, mostAtOnce);
    this.#bookedTo = accountIds.length < mostAtOnce ? '' : accountIds.at(-1)!;
    for (const accountId of accountIds) {
      await this.upkeep(accountId, undefined).catch((error: unknown) => {
        host.log.warn({ error, account_id: accountId }, 'what has expired of an account could not be booked; retrying');
      });
    }
  }

  /** The plan that calls of the account are on. Undefined: none is known, or it makes no calls. */
  async #planOf(accountId: string): Promise<CallPlan | undefined> {
    const { host } = this.#tools;
    const offers = host.find(plans);
    const account = offers && (await host.find(accountAdmin)?.find(accountId));
    if (offers === undefined || account === undefined || account.disabled) return undefined;
    const at = host.clock.now();
    const hasEnded = account.planEndsAt !== undefined && at >= account.planEndsAt;
    return { terms: offers.terms(hasEnded ? offers.default : account.plan), at };
  }

  /**
   * Applies due grants and expiries. Writes the account's pending charges first. Most accounts have no plan term and no expiring
   * grant; a single query without a lock detects this and skips the transaction.
   */
  async #applyWhatIsDue(accountId: string, plan?: CallPlan): Promise<void> {
    await this.#isComplete(accountId);
    const { pool, term } = (await this.#tools.store.funds([accountId], this.#tools.host.clock.now())).get(accountId)!;
    if (pool !== undefined || term !== undefined || plan?.terms.grant !== undefined) await this.upkeep(accountId, plan);
  }

  /** Applies due grants and expiries; resolves with the time of the next ones. */
  async upkeep(accountId: string, callPlan: CallPlan | undefined): Promise<number> {
    const running = this.#tools.runtime();
    try {
      const isComplete = await this.#isComplete(accountId);
      const { next, rows } = await this.#transact(accountId, async (entries) => {
        entries.isComplete = isComplete;
        // The transaction sees what processes have leased; it may not yet see what this process's calls have charged.
        const isSeen = running === undefined || this.#tools.database.shared === true;
        return { next: await this.#applyDueTerms(entries, callPlan, isSeen ? undefined : none), rows: entries.rows };
      });
      if (rows > 0) await this.#announce(accountId);
      return next;
    } catch (error) {
      if (!(error instanceof UnguardedSale)) throw error;
      return this.#sell(running!, accountId, callPlan, error.price);
    }
  }

  /**
   * Whether the ledger has every charge made so far. With leases the database shows which charges may be missing; otherwise
   * it is in this process's journal, or in a journal that is not yet recovered.
   */
  async #isComplete(accountId: string): Promise<boolean> {
    if (this.#tools.database.shared === true) return true;
    const running = this.#tools.runtime();
    if (running === undefined) return false;
    // An account that is not in memory has no pending rows.
    const balance = running.balances.find(accountId);
    const rows = balance?.rows ?? 0;
    const isApplied = () => balance === undefined || balance.hasApplied(rows);
    return isApplied() || ((await running.flusher.refresh(accountId)) && isApplied());
  }

  /** A due renewal debits `price` for the account's plan. It is refused where calls hold that money. */
  async #sell(
    running: BillingRuntime,
    accountId: string,
    callPlan: CallPlan | undefined,
    price: Money,
  ): Promise<number> {
    const other = this.#sales.get(accountId);
    if (other !== undefined) {
      await other.catch(() => {});
      return this.upkeep(accountId, callPlan);
    }
    const sale = this.#keep(running, accountId, price, (guard, isCurrent) => {
      if (!isCurrent) throw balanceUnavailable();
      return this.#change(accountId, (entries) => this.#applyDueTerms(entries, callPlan, price), guard);
    }).finally(() => this.#sales.delete(accountId));
    this.#sales.set(accountId, sale);
    return sale;
  }

  /** `atMost`: the amount protected from calls; undefined: whatever it debits is protected. */
  #applyDueTerms(entries: Entries, callPlan: CallPlan | undefined, atMost: Money | undefined): Promise<number> {
    const ended = this.onTermEnded;
    entries.onSale = (price) => {
      if (atMost !== undefined && price > atMost) throw new UnguardedSale(price);
    };
    const onEnded = ended && ((term: PlanTerm) => ended(entries, term));
    return applyDueTerms(entries, callPlan, { onEnded, credit: this.#tools.credit });
  }

  async #transact<T>(accountId: string, work: Work<T>): Promise<T> {
    let moved: readonly Movement[] = [];
    const result = await this.#tools.store.transact(accountId, this.#tools.host.clock.now(), (entries) => {
      if (this.#tools.database.shared !== true) entries.hold(this.#heldByCalls(accountId));
      moved = entries.moved;
      return work(entries);
    });
    if (moved.length > 0) await this.#tools.watch?.add(moved);
    return result;
  }

  /** What this process's calls hold, and what they cost that the database lacks. */
  #heldByCalls(accountId: string): Money {
    return this.#tools.runtime()?.balances.find(accountId)?.pending ?? none;
  }

  /**
   * Resolves with whether this process has the change. The money has moved, so a late announcement is not a
   * failure.
   */
  async #announce(accountId: string): Promise<boolean> {
    const running = this.#tools.runtime();
    const known = running?.balances.knows(accountId) ? await running.flusher.refresh(accountId) : true;
    await this.#tools.database.announce('account', accountId).catch((error: unknown) => {
      this.#tools.host.log.warn({ error, account_id: accountId }, 'a change of an account could not be announced');
    });
    return known;
  }
}
