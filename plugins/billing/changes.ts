/** Changes of one account beside its calls: in the database under the account's lock, kept from the calls of this process, told to all. */
import type { Host } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { type Money, money } from '../../core/money.ts';
import type { Database, PlanTerm } from '../../core/vocabulary.ts';
import type { Books } from './books.ts';
import type { Entries } from './entries.ts';
import { callIn } from './leases/call-in.ts';
import { balanceUnavailable } from './purses.ts';
import type { Store } from './store.ts';
import { keepUp, type StatedPlan } from './terms.ts';

const none = money(0n);
const callInTries = 3;

type Work<T> = (entries: Entries) => Promise<T>;

/** How calls are kept from money that is on its way out. */
interface Guard {
  /** false: they could not be: nothing may be taken. */
  readonly mayTake: boolean;
  /** Is told whether memory knows of the change. */
  readonly told?: ((known: boolean) => void) | undefined;
}

/** `isCurrent`: what may not be taken is not there, as far as the database knows. */
type Guarded<T> = (guard: Guard, isCurrent: boolean) => Promise<T>;

/** What is due is a sale, and calls have not been kept from its price: nothing of it is done. */
class UnguardedSale extends GatewayError {
  readonly price: Money;

  constructor(price: Money) {
    super('overloaded', 'What is due to the account could not be done; please try again soon.', {
      retryAfterMs: 1_000,
    });
    this.price = price;
  }
}

export class Changes {
  readonly #host: Host;
  readonly #database: Database;
  readonly #store: Store;
  readonly #books: () => Books | undefined;
  /** Sales under way that are due, by account: one at a time, or one would refuse what it takes for the other. */
  readonly #sales = new Map<string, Promise<number>>();
  /** Run when an account's term has ended. */
  onTermEnded: ((entries: Entries, term: PlanTerm) => Promise<void>) | undefined;

  /** `books` tells what this process spends from memory, while it serves. */
  constructor(host: Host, database: Database, store: Store, books: () => Books | undefined) {
    this.#host = host;
    this.#database = database;
    this.#store = store;
    this.#books = books;
  }

  /** Changes the account. `atMost`: what may be taken by that, which calls cannot spend meanwhile. */
  async change<T>(accountId: string, atMost: Money, work: Work<T>): Promise<T> {
    // Whoever is asked for what is there must count what is due.
    await this.upkeep(accountId, undefined);
    const running = this.#books();
    if (this.#database.shared === true) return this.#changeShared(accountId, atMost, work);
    if (running === undefined || atMost <= 0n) return this.#change(accountId, work, { mayTake: true });
    return this.#keep(running, accountId, atMost, (guard) => this.#change(accountId, work, guard));
  }

  /** Processes spend what they have leased; the transaction sees how much that is. */
  async #changeShared<T>(accountId: string, atMost: Money, work: Work<T>): Promise<T> {
    const tools = { host: this.#host, database: this.#database, store: this.#store };
    for (let tries = callInTries; ; tries -= 1) {
      const isFree = atMost > 0n && (await callIn(tools, accountId, atMost));
      try {
        return await this.#change(accountId, work, { mayTake: true });
      } catch (error) {
        const isLacking = error instanceof GatewayError && error.kind === 'insufficient_balance';
        // Nothing of it was done; a process may have leased again what it had just given back.
        if (!isLacking || !isFree || tries === 1) throw error;
      }
    }
  }

  /** Runs `work` while calls are kept from `amount`: they are let in by memory alone, which so knows before the database does. */
  async #keep<T>({ purses, flusher }: Books, accountId: string, amount: Money, work: Guarded<T>): Promise<T> {
    const purse = await purses.acquire(accountId);
    try {
      let told = purses.reserve(purse, amount);
      const isCurrent = told !== undefined || (await flusher.refresh(accountId));
      if (isCurrent) told ??= purses.reserve(purse, amount);
      return await work({ mayTake: told !== undefined, told }, isCurrent);
    } finally {
      purses.release(purse);
    }
  }

  async #change<T>(accountId: string, work: Work<T>, { mayTake, told }: Guard): Promise<T> {
    let isUndone = false;
    try {
      return await this.#transact(accountId, (entries) => {
        entries.mayTake = mayTake;
        return work(entries);
      });
    } catch (error) {
      // What was refused has changed nothing; of anything else it is not known. Processes that heard of it would lease again.
      isUndone = error instanceof GatewayError;
      throw error;
    } finally {
      const known = isUndone || (await this.#tell(accountId));
      told?.(known);
    }
  }

  /** What is due comes first, so that nothing is bought with money that has expired; it stays if the rest is refused. */
  async read<T>(accountId: string, work: Work<T>): Promise<T> {
    await this.upkeep(accountId, undefined);
    return this.#transact(accountId, work);
  }

  /** Gives and takes what is due; resolves with when there is something to do again. */
  async upkeep(accountId: string, stated: StatedPlan | undefined): Promise<number> {
    const running = this.#books();
    try {
      const isComplete = await this.#isComplete(accountId);
      const { next, rows } = await this.#transact(accountId, async (entries) => {
        entries.isComplete = isComplete;
        // What processes have leased the transaction sees; what calls of this one have it may not know yet.
        const isSeen = running === undefined || this.#database.shared === true;
        return { next: await this.#keepUp(entries, stated, isSeen ? undefined : none), rows: entries.rows };
      });
      if (rows > 0) await this.#tell(accountId);
      return next;
    } catch (error) {
      if (!(error instanceof UnguardedSale)) throw error;
      return this.#sell(running!, accountId, stated, error.price);
    }
  }

  /**
   * Whether the ledger has all that calls were charged until now. Where processes lease it tells what it may lack; else that
   * is in this one's journal, or in one that nobody has read yet.
   */
  async #isComplete(accountId: string): Promise<boolean> {
    if (this.#database.shared === true) return true;
    const running = this.#books();
    if (running === undefined) return false;
    // What is not in memory has been applied.
    const purse = running.purses.find(accountId);
    const rows = purse?.rows ?? 0;
    const isApplied = () => purse === undefined || purse.appliedRows >= rows;
    return isApplied() || ((await running.flusher.refresh(accountId)) && isApplied());
  }

  /** What is due takes `price`: of the account's plan, bought once more. It is refused where calls have set that aside. */
  async #sell(running: Books, accountId: string, stated: StatedPlan | undefined, price: Money): Promise<number> {
    const other = this.#sales.get(accountId);
    if (other !== undefined) {
      await other.catch(() => {});
      return this.upkeep(accountId, stated);
    }
    const sale = this.#keep(running, accountId, price, (guard, isCurrent) => {
      if (!isCurrent) throw balanceUnavailable();
      return this.#change(accountId, (entries) => this.#keepUp(entries, stated, price), guard);
    }).finally(() => this.#sales.delete(accountId));
    this.#sales.set(accountId, sale);
    return sale;
  }

  /** `atMost`: what calls are kept from; undefined: from whatever it takes. */
  #keepUp(entries: Entries, stated: StatedPlan | undefined, atMost: Money | undefined): Promise<number> {
    const ended = this.onTermEnded;
    entries.onSale = (price) => {
      if (atMost !== undefined && price > atMost) throw new UnguardedSale(price);
    };
    return keepUp(entries, stated, ended && ((term) => ended(entries, term)));
  }

  #transact<T>(accountId: string, work: Work<T>): Promise<T> {
    return this.#store.transact(accountId, this.#host.clock.now(), work);
  }

  /** Resolves with whether this process knows. The money has moved: that others hear of it later is no failure of that. */
  async #tell(accountId: string): Promise<boolean> {
    const running = this.#books();
    const known = running?.purses.knows(accountId) ? await running.flusher.refresh(accountId) : true;
    await this.#database.announce('account', accountId).catch((error: unknown) => {
      this.#host.log.warn({ error, accountId }, 'a change of an account could not be announced');
    });
    return known;
  }
}
