/** Budgets of single accounts in memory: the meaning of the statements of `budgets/rows.ts`, and a process's way to them. */
import { type BudgetRows, mostBudgets, type StoredBudget } from '../../plugins/billing/budgets/rows.ts';
import type { BudgetAuthority, BudgetTerms } from '../../plugins/common/domain/organizations/budgets.ts';
import type { DatabaseLink } from './database.ts';

interface Row extends StoredBudget {
  readonly accountId: string;
  readonly endedAt: number | undefined;
}

const refused = () =>
  Promise.reject(new Error('nothing is added to budgets in a simulation, and accounts have no zone'));

export class MemoryBudgets implements BudgetRows {
  /** Whether any world's account ever has budgets of its own. */
  isUsed = false;
  /** Called in the transaction of a change: the budget as it is from now on; undefined: it has ended. */
  onWrite: (accountId: string, terms: BudgetTerms, isEnded: boolean) => void = () => {};
  readonly #now: () => number;
  readonly #rows: Row[] = [];

  constructor(now: () => number) {
    this.#now = now;
  }

  async list(accountId: string): Promise<StoredBudget[]> {
    const own = this.#rows.filter((row) => row.accountId === accountId && row.endedAt === undefined);
    return own.map(({ accountId: _account, endedAt: _ended, ...stored }) => stored);
  }

  async read(accountId: string): ReturnType<BudgetRows['read']> {
    return { rules: await this.list(accountId), additions: new Map() };
  }

  async some(): Promise<boolean> {
    return this.#rows.length > 0;
  }

  async changedWithin(ms: number): Promise<string[]> {
    const since = this.#now() - ms;
    return [...new Set(this.#rows.filter(({ changedAt }) => changedAt > since).map(({ accountId }) => accountId))];
  }

  async warned(accountIds: readonly string[]): Promise<string[]> {
    const isWarned = ({ accountId, warn, hard, endedAt }: Row) =>
      endedAt === undefined && accountIds.includes(accountId) && (warn !== undefined || hard === false);
    return [...new Set(this.#rows.filter(isWarned).map(({ accountId }) => accountId))];
  }

  async set(accountId: string, authority: BudgetAuthority, terms: BudgetTerms): Promise<StoredBudget | undefined> {
    const own = this.#rows.filter((row) => row.accountId === accountId && row.authority === authority);
    const index = this.#rows.findIndex(
      (row) => row.accountId === accountId && row.authority === authority && countedIn(row) === countedIn(terms),
    );
    const known = this.#rows[index];
    const isThere = known !== undefined && known.endedAt === undefined;
    if (!isThere && own.filter(({ endedAt }) => endedAt === undefined).length >= mostBudgets) return undefined;
    const id = known?.id ?? `00000000-0000-4000-c000-${this.#rows.length.toString(16).padStart(12, '0')}`;
    const stored = { ...terms, id, authority, changedAt: this.#now() };
    this.#rows[index === -1 ? this.#rows.length : index] = { ...stored, accountId, endedAt: undefined };
    this.onWrite(accountId, terms, false);
    return stored;
  }

  async end(accountId: string, authority: BudgetAuthority, id: string): Promise<StoredBudget | undefined> {
    const stored = (await this.list(accountId)).find((row) => row.id === id && row.authority === authority);
    if (stored === undefined) return undefined;
    const at = this.#now();
    this.#rows[this.#rows.findIndex((row) => row.id === id)] = { ...stored, accountId, changedAt: at, endedAt: at };
    this.onWrite(accountId, stored, true);
    return stored;
  }

  add = refused;
  setZone = refused;
}

const countedIn = ({ of, subject, models, tag, by, every, zone, first }: BudgetTerms): string =>
  JSON.stringify([of, subject, models?.toSorted(), tag, of === 'models' ? by : undefined, every, zone, first]);

/** Called where the budgets of an account could not be read, and where they were. */
export interface Readings {
  readonly unread: (accountId: string) => void;
  readonly read: (accountId: string) => void;
}

/** A process's way to them. */
export function linkedBudgets(rows: MemoryBudgets, send: DatabaseLink['send'], { unread, read }: Readings): BudgetRows {
  return {
    list: (accountId) => send('budgets', () => rows.list(accountId)),
    some: () => send('any budgets', () => rows.some()),
    changedWithin: (ms) => send('changed budgets', () => rows.changedWithin(ms)),
    warned: (accountIds) => send('warned', () => rows.warned(accountIds)),
    set: (...terms) => send('set a budget', () => rows.set(...terms)),
    end: (...which) => send('end a budget', () => rows.end(...which)),
    add: refused,
    setZone: refused,
    read: async (accountId) => {
      try {
        const own = await send('own budgets', () => rows.read(accountId));
        read(accountId);
        return own;
      } catch (error) {
        unread(accountId);
        throw error;
      }
    },
  };
}
