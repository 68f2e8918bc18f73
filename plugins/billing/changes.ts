/** Changes of one account beside its calls: in the database under the account's lock, kept from the calls of this process, told to all. */
import type { Host } from '../../core/contract.ts';
import type { Money } from '../../core/money.ts';
import type { Database, PlanTerm } from '../../core/vocabulary.ts';
import type { Books } from './books.ts';
import type { Entries } from './entries.ts';
import { callIn } from './leases/call-in.ts';
import type { Store } from './store.ts';
import { keepUp, type StatedPlan } from './terms.ts';

type Work<T> = (entries: Entries) => Promise<T>;

/** How calls are kept from money that is on its way out. */
interface Guard {
  /** false: they could not be: nothing may be taken. */
  readonly mayTake: boolean;
  /** Is told whether memory knows of the change. */
  readonly told?: ((known: boolean) => void) | undefined;
}

export class Changes {
  readonly #host: Host;
  readonly #database: Database;
  readonly #store: Store;
  readonly #books: () => Books | undefined;
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
    const running = this.#books();
    if (this.#database.shared === true) {
      // Processes spend what they have leased; the transaction sees how much that is.
      if (atMost > 0n)
        await callIn({ host: this.#host, database: this.#database, store: this.#store }, accountId, atMost);
      await this.upkeep(accountId, undefined);
      return this.#change(accountId, work, { mayTake: true });
    }
    // Memory must count what is due before it is asked.
    await this.upkeep(accountId, undefined);
    if (running === undefined || atMost <= 0n) return this.#change(accountId, work, { mayTake: true });
    const { purses, flusher } = running;
    // Calls are let in by memory alone: so it must know of the debit before the database does.
    const purse = await purses.acquire(accountId);
    try {
      let told = purses.reserve(purse, atMost);
      if (told === undefined && (await flusher.refresh(accountId))) told = purses.reserve(purse, atMost);
      return await this.#change(accountId, work, { mayTake: told !== undefined, told });
    } finally {
      purses.release(purse);
    }
  }

  async #change<T>(accountId: string, work: Work<T>, { mayTake, told }: Guard): Promise<T> {
    try {
      return await this.#transact(accountId, (entries) => {
        entries.mayTake = mayTake;
        return work(entries);
      });
    } finally {
      const known = await this.#tell(accountId);
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
    const { next, rows } = await this.#transact(accountId, async (entries) => {
      const ended = this.onTermEnded;
      const due = await keepUp(entries, stated, ended && ((term) => ended(entries, term)));
      return { next: due, rows: entries.rows };
    });
    if (rows > 0) await this.#tell(accountId);
    return next;
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
