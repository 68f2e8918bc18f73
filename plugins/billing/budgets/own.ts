/** Keeps what accounts have of their own in memory, from an account's first call on, and as it is now in the database. */
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Log } from '../../../core/contract/host-tools.ts';
import type { BudgetBook } from './book.ts';
import type { BudgetRows } from './rows.ts';
import type { Tallies } from './tallies.ts';

/** What admission asks about the scopes of a call. */
export interface ScopeServices {
  readonly tallies: Tallies;
  readonly book: BudgetBook;
  readonly own: OwnBudgets;
}

export interface OwnBudgetsOptions {
  readonly rows: Pick<BudgetRows, 'read' | 'some' | 'changedWithin'>;
  readonly book: BudgetBook;
  readonly log: Log;
  /** Called when what is known of an account has changed. */
  readonly changed: (accountId: string) => void;
  /** The most accounts in memory. */
  readonly limit: number;
}

interface Entry {
  /** Counts announcements: what was read before the last one is not used. */
  announced: number;
  isKnown: boolean;
  reading: Promise<void> | undefined;
}

/** In case an announcement was lost. */
const lookEveryTicks = 30;
const lookBackMs = 120_000;

export class OwnBudgets {
  readonly #options: OwnBudgetsOptions;
  readonly #accounts = new Map<string, Entry>();
  readonly #failed = new Set<string>();
  #some = false;
  #ticks = 0;

  constructor(options: OwnBudgetsOptions) {
    this.#options = options;
  }

  /** Before calls come. What is announced meanwhile may be newer than what is read. */
  async start(): Promise<void> {
    if (await this.#options.rows.some()) this.#expect(true);
  }

  #expect(some: boolean): void {
    this.#some = some;
    this.#options.book.expect(some);
  }

  /** Resolves when the budgets of the account are in the book; undefined: they are. */
  ready(accountId: string): Promise<void> | undefined {
    if (!this.#some) return undefined;
    const known = this.#accounts.get(accountId);
    if (known?.isKnown === true) return undefined;
    return this.#known(accountId).catch((cause: unknown) => {
      const message = 'The budgets of this account cannot be read at the moment; please try again soon.';
      throw new GatewayError('overloaded', message, { code: 'budget_unavailable', retryAfterMs: 1_000, cause });
    });
  }

  /** Another account may take its place while it is read. */
  async #known(accountId: string): Promise<void> {
    while (this.#accounts.get(accountId)?.isKnown !== true)
      await this.#read(accountId, this.#accounts.get(accountId) ?? this.#enter(accountId));
  }

  /** Something of the account has changed. */
  announced(accountId: string): void {
    this.#expect(true);
    const entry = this.#accounts.get(accountId);
    if (entry === undefined) return;
    entry.announced += 1;
    this.#again(accountId, entry);
  }

  /** Every second. */
  tick(): Promise<void> | undefined {
    for (const accountId of this.#failed) {
      const entry = this.#accounts.get(accountId);
      this.#failed.delete(accountId);
      if (entry !== undefined) this.#again(accountId, entry);
    }
    this.#ticks += 1;
    return this.#ticks % lookEveryTicks === 0 ? this.#look() : undefined;
  }

  async #look(): Promise<void> {
    for (const accountId of await this.#options.rows.changedWithin(lookBackMs)) this.announced(accountId);
  }

  #again(accountId: string, entry: Entry): void {
    this.#read(accountId, entry).catch((error: unknown) => {
      this.#failed.add(accountId);
      this.#options.log.warn(
        { error, account_id: accountId },
        'changed budgets could not be read; they are read again',
      );
    });
  }

  #enter(accountId: string): Entry {
    for (const [oldest] of this.#accounts) {
      if (this.#accounts.size < this.#options.limit) break;
      this.#accounts.delete(oldest);
      this.#options.book.forget(oldest);
    }
    const entry = { announced: 0, isKnown: false, reading: undefined };
    this.#accounts.set(accountId, entry);
    return entry;
  }

  /** Those who ask during a reading wait for it. */
  #read(accountId: string, entry: Entry): Promise<void> {
    entry.reading ??= this.#readNow(accountId, entry).finally(() => {
      entry.reading = undefined;
    });
    return entry.reading;
  }

  async #readNow(accountId: string, entry: Entry): Promise<void> {
    const { rows, book, changed } = this.#options;
    for (;;) {
      const before = entry.announced;
      const own = await rows.read(accountId);
      if (this.#accounts.get(accountId) !== entry) return;
      if (entry.announced !== before) continue;
      book.put(accountId, own);
      entry.isKnown = true;
      changed(accountId);
      return;
    }
  }
}
