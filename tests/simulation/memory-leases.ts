/** The leases of the database in memory: the same sums as the statement's oracle, with runs, numbers of asks and times. */

import {
  type Leased,
  type LeaseRequest,
  type Leases,
  type Node,
  type Round,
  takeWithin,
} from '../../plugins/billing/leases/store.ts';
import { FencedError } from '../../plugins/billing/ledger/batch.ts';
import type { LeasedMoney } from '../../plugins/billing/ledger/entry-rows.ts';
import { money } from '../../plugins/common/domain/money.ts';
import { sliceOf } from '../plugins/billing/leases/lease-model.ts';
import type { MemoryGrants } from './memory-grants.ts';
import type { Balance } from './memory-ledger.ts';
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
  /** Holds of calls when the node reported them last. */
  open: bigint;
  expiresAt: number;
}

/** What it shares with the ledger. */
export interface LeasesOptions {
  readonly accounts: ReadonlyMap<string, Balance>;
  readonly cursors: ReadonlyMap<string, StoredCursor>;
  readonly grantBalances: MemoryGrants;
  readonly terms: MemoryTerms;
  readonly now: () => number;
  /** Called for each account of which a transaction has moved leases. */
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
      throw new FencedError(`journal ${journal} now belongs to another process`);
    cursor.asked = round.number;
    const answers = new Map<string, Leased>();
    for (const call of round.requests) answers.set(call.accountId, await this.#takeOne(journal, call, round));
    return answers;
  }

  /** Whether this round is none that a later one has overtaken. */
  counts({ asked: requested }: StoredCursor, number: number): boolean {
    return number > requested;
  }

  #takeOne(journal: string, call: LeaseRequest, round: Round): Promise<Leased> {
    const { grantBalances, terms, onMoved } = this.#options;
    const { accountId } = call;
    const term = terms.nameOf(accountId);
    const pool = grantBalances.pools([accountId], [round.at]).get(accountId);
    const take = async (locked: bigint, lastsMs: number): Promise<Leased> => {
      const answer = this.#cut(journal, call, locked);
      this.#set(accountId, journal, {
        amount: answer.amount,
        open: call.pending,
        expiresAt: this.#options.now() + lastsMs,
      });
      onMoved(accountId);
      return { ...answer, pool, term, lastsMs };
    };
    return pool === undefined ? take(0n, round.lastsMs) : takeWithin(pool, call.need, round, take);
  }

  #cut(journal: string, call: LeaseRequest, locked: bigint) {
    const { accounts, cursors, now } = this.#options;
    const { balance } = accounts.get(call.accountId) ?? { balance: 0n };
    const own = this.#byAccount.get(call.accountId)?.get(journal)?.amount ?? 0n;
    const since = now() - livesMs;
    const nodes = [...cursors].filter(([name, { seenAt }]) => name === journal || seenAt > since).length;
    return sliceOf({ balance, own, ...this.others(call.accountId, journal), nodes }, call, locked);
  }

  /** Whether what this node has leased is its own still. */
  stays(_journal: string): boolean {
    return true;
  }

  /** What all other nodes have of the account, and what of it the living can return or their calls hold. */
  others(account: string, journal: string): { others: bigint; elsewhere: bigint; held: bigint } {
    const now = this.#options.now();
    let [others, elsewhere, held] = [0n, 0n, 0n];
    for (const [node, { amount, open, expiresAt }] of this.#byAccount.get(account) ?? []) {
      if (node === journal || amount < 0n || !this.stays(node)) continue;
      others += amount;
      if (expiresAt <= now) continue;
      elsewhere += amount > open ? amount - open : 0n;
      held += amount > open ? open : amount;
    }
    return { others, elsewhere, held };
  }

  /** What nodes may spend of it. */
  sumOf(account: string): bigint {
    return this.others(account, '').others;
  }

  /** What nodes may still take of it: at least what their calls hold, also where a node owes what it spent beyond its lease. */
  claimsOn(account: string): bigint {
    let claims = 0n;
    for (const { amount, open } of this.#byAccount.get(account)?.values() ?? [])
      claims += amount > open ? amount : open;
    return claims;
  }

  async leasedOf(account: string): Promise<LeasedMoney> {
    const { others, elsewhere } = this.others(account, '');
    let held = 0n;
    for (const { amount, open } of this.#byAccount.get(account)?.values() ?? [])
      if (amount > 0n) held += amount > open ? open : amount;
    return { leased: money(others), byLiving: money(elsewhere), open: money(held) };
  }

  /** Whether a node still owes what it spent beyond its lease. */
  isOwed(account: string): boolean {
    return [...(this.#byAccount.get(account)?.values() ?? [])].some(({ amount }) => amount < 0n);
  }

  amountOf(account: string, journal: string): bigint {
    return this.#byAccount.get(account)?.get(journal)?.amount ?? 0n;
  }

  /** Accounts of which this journal has a lease. */
  countOf(journal: string): number {
    return [...this.#byAccount.values()].filter((leases) => leases.has(journal)).length;
  }

  /** Whether anything of any account is leased, or owed. */
  get isEmpty(): boolean {
    return [...this.#byAccount.values()].every((leases) => leases.size === 0);
  }

  /** A charge takes from the lease what it takes from the balance. Returns what is left; below zero it is owed. */
  charge(account: string, journal: string, amount: bigint): bigint {
    const known = this.#byAccount.get(account)?.get(journal) ?? { amount: 0n, open: 0n, expiresAt: 0 };
    this.#leasesOf(account).set(journal, { ...known, amount: known.amount + amount });
    return known.amount + amount;
  }

  /** A batch with the ends of calls renews the lease, if there is one, and tells what the others hold. */
  renew(account: string, journal: string, open: bigint, lastsMs: number): void {
    const known = this.#byAccount.get(account)?.get(journal);
    if (known === undefined) return;
    const expiresAt = Math.max(known.expiresAt, this.#options.now() + lastsMs);
    this.#leasesOf(account).set(journal, { amount: known.amount, open, expiresAt });
  }

  #set(account: string, journal: string, lease: Lease): void {
    if (lease.amount === 0n) this.#leasesOf(account).delete(journal);
    else this.#leasesOf(account).set(journal, lease);
  }

  #leasesOf(account: string): Map<string, Lease> {
    const leases = this.#byAccount.get(account) ?? new Map<string, Lease>();
    this.#byAccount.set(account, leases);
    return leases;
  }

  async returnAll({ journal, owner }: Node): Promise<void> {
    if (this.#options.cursors.get(journal)?.owner !== owner) return;
    for (const [account, leases] of this.#byAccount) if (leases.delete(journal)) this.#options.onMoved(account);
  }

  async accountsOf({ journal }: Node): Promise<string[]> {
    return [...this.#byAccount].filter(([, leases]) => leases.has(journal)).map(([account]) => account);
  }

  async heartbeat({ journal, owner }: Node, lives: boolean): Promise<void> {
    const cursor = this.#options.cursors.get(journal);
    if (cursor?.owner === owner) cursor.seenAt = lives ? this.#options.now() : Number.NEGATIVE_INFINITY;
  }

  async countOthers(journal: string): Promise<number> {
    const since = this.#options.now() - livesMs;
    return [...this.#options.cursors].filter(([name, { seenAt }]) => name !== journal && seenAt > since).length;
  }
}
