/** The leases of the database in memory: the same sums as the statement's oracle, with runs, numbers of asks and times. */
import { type Money, money } from '../../core/money.ts';
import { ShutOutError } from '../../plugins/billing/batch.ts';
import type { Ask } from '../../plugins/billing/leases/slice.ts';
import { type Leased, type Leases, type Node, type Round, takeWithin } from '../../plugins/billing/leases/store.ts';
import { sliceOf } from '../plugins/billing/leases/lease-model.ts';
import type { Balance } from './memory-ledger.ts';
import type { MemoryPots } from './memory-pots.ts';
import type { MemoryTerms } from './memory-terms.ts';

/** Who goes on with a journal, as the database knows it. Times are the database's. */
export interface StoredCursor {
  owner: string;
  epoch: number;
  applied: number;
  /** Number of the last round of asks. */
  asked: number;
  seenAt: number;
}

interface Lease {
  amount: bigint;
  expiresAt: number;
}

/** What it shares with the ledger. */
export interface LeasesOptions {
  readonly accounts: ReadonlyMap<string, Balance>;
  readonly cursors: ReadonlyMap<string, StoredCursor>;
  readonly pots: MemoryPots;
  readonly terms: MemoryTerms;
  readonly now: () => number;
  /** Told of each account of which a transaction has moved leases. */
  readonly onMoved: (account: string) => void;
}

const livesMs = 15_000;

export class MemoryLeases implements Leases {
  readonly #options: LeasesOptions;
  readonly #byAccount = new Map<string, Map<string, Lease>>();

  constructor(options: LeasesOptions) {
    this.#options = options;
  }

  async take({ journal, owner }: Node, round: Round): Promise<Map<string, Leased>> {
    const cursor = this.#options.cursors.get(journal);
    if (cursor?.owner !== owner || !this.counts(cursor, round.number))
      throw new ShutOutError(`journal ${journal} now belongs to another process`);
    cursor.asked = round.number;
    const answers = new Map<string, Leased>();
    for (const ask of round.asks) answers.set(ask.accountId, await this.#takeOne(journal, ask, round));
    return answers;
  }

  /** Whether this round is none that a later one has overtaken. */
  counts({ asked }: StoredCursor, number: number): boolean {
    return number > asked;
  }

  #takeOne(journal: string, ask: Ask, round: Round): Promise<Leased> {
    const { pots, terms, onMoved } = this.#options;
    const { accountId } = ask;
    const term = terms.newestOf(accountId);
    const pool = pots.pools([accountId], [round.at]).get(accountId);
    const take = async (locked: bigint, lastsMs: number): Promise<Leased> => {
      const answer = this.#cut(journal, ask, locked);
      this.#set(accountId, journal, answer.amount, this.#options.now() + lastsMs);
      onMoved(accountId);
      return { ...answer, pool, term, lastsMs };
    };
    return pool === undefined ? take(0n, round.lastsMs) : takeWithin(pool, ask.need, round, take);
  }

  #cut(journal: string, ask: Ask, locked: bigint) {
    const { accounts, cursors, now } = this.#options;
    const { balance, held } = accounts.get(ask.accountId) ?? { balance: 0n, held: 0n };
    const own = this.#byAccount.get(ask.accountId)?.get(journal)?.amount ?? 0n;
    const since = now() - livesMs;
    const nodes = [...cursors].filter(([name, { seenAt }]) => name === journal || seenAt > since).length;
    return sliceOf({ balance, held, own, ...this.others(ask.accountId, journal), nodes }, ask, locked);
  }

  /** Whether what this node has leased is its own still. */
  stays(_journal: string): boolean {
    return true;
  }

  /** What all other nodes have of the account, and as much of that as those have that live. */
  others(account: string, journal: string): { others: bigint; elsewhere: bigint } {
    const now = this.#options.now();
    let [others, elsewhere] = [0n, 0n];
    for (const [node, { amount, expiresAt }] of this.#byAccount.get(account) ?? []) {
      if (node === journal || amount < 0n || !this.stays(node)) continue;
      others += amount;
      if (expiresAt > now) elsewhere += amount;
    }
    return { others, elsewhere };
  }

  /** What nodes may spend of it. */
  sumOf(account: string): bigint {
    return this.others(account, '').others;
  }

  async leasedOf(account: string): Promise<{ leased: Money; byLiving: Money }> {
    const { others, elsewhere } = this.others(account, '');
    return { leased: money(others), byLiving: money(elsewhere) };
  }

  /** Whether a node still owes what it spent beyond its lease. */
  isOwed(account: string): boolean {
    return [...(this.#byAccount.get(account)?.values() ?? [])].some(({ amount }) => amount < 0n);
  }

  /** Whether anything of any account is leased, or owed. */
  get isEmpty(): boolean {
    return [...this.#byAccount.values()].every((leases) => leases.size === 0);
  }

  /** A batch took from the balance what it takes from the lease. Returns what is left of that; below zero it is owed. */
  apply(account: string, journal: string, amount: bigint, lastsMs: number): bigint {
    const { amount: before, expiresAt } = this.#byAccount.get(account)?.get(journal) ?? { amount: 0n, expiresAt: 0 };
    const leases = this.#byAccount.get(account) ?? new Map<string, Lease>();
    leases.set(journal, { amount: before + amount, expiresAt: Math.max(expiresAt, this.#options.now() + lastsMs) });
    this.#byAccount.set(account, leases);
    return before + amount;
  }

  #set(account: string, journal: string, amount: bigint, expiresAt: number): void {
    const leases = this.#byAccount.get(account) ?? new Map<string, Lease>();
    if (amount === 0n) leases.delete(journal);
    else leases.set(journal, { amount, expiresAt });
    this.#byAccount.set(account, leases);
  }

  async giveAllBack({ journal, owner }: Node): Promise<void> {
    if (this.#options.cursors.get(journal)?.owner !== owner) return;
    for (const [account, leases] of this.#byAccount) if (leases.delete(journal)) this.#options.onMoved(account);
  }

  async accountsOf({ journal }: Node): Promise<string[]> {
    return [...this.#byAccount].filter(([, leases]) => leases.has(journal)).map(([account]) => account);
  }

  async tellAlive({ journal, owner }: Node, lives: boolean): Promise<void> {
    const cursor = this.#options.cursors.get(journal);
    if (cursor?.owner === owner) cursor.seenAt = lives ? this.#options.now() : Number.NEGATIVE_INFINITY;
  }

  async countOthers(journal: string): Promise<number> {
    const since = this.#options.now() - livesMs;
    return [...this.#options.cursors].filter(([name, { seenAt }]) => name !== journal && seenAt > since).length;
  }
}
