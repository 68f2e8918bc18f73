/**
 * The ledger's database in memory: the meaning of every statement of the store, nothing of its text. The conformance test
 * holds it against the embedded database and PostgreSQL.
 */

import { placeAllocations } from '../../plugins/billing/grants/allocations.ts';
import type { Funds } from '../../plugins/billing/grants/funds.ts';
import type { StoredAuthorization } from '../../plugins/billing/ledger/authorization-rows.ts';
import { type Cursor, FencedError, fencedErrorOf } from '../../plugins/billing/ledger/batch.ts';
import { Entries } from '../../plugins/billing/ledger/entries.ts';
import type { Grant } from '../../plugins/billing/ledger/entry-rows.ts';
import type { AttemptNote, EndRecord, SettleRecord } from '../../plugins/billing/model/records.ts';
import type { Store } from '../../plugins/billing/store.ts';
import { type Money, money } from '../../plugins/common/domain/money.ts';
import { MemoryBudgets } from './memory-budgets.ts';
import { MemoryEntryRows } from './memory-entries.ts';
import { MemoryGrants } from './memory-grants.ts';
import { MemoryLeases, type StoredCursor } from './memory-leases.ts';
import {
  attemptsIn,
  chargeOf,
  checkCall,
  costIn,
  type Draft,
  type Entry,
  isEnd,
  mayHaveRun,
  type Row,
  recordsOf,
  spentIn,
} from './memory-records.ts';
import { MemoryShares } from './memory-shares.ts';
import { MemoryTerms } from './memory-terms.ts';
import { putIn, runnerOf, type Undo } from './memory-undo.ts';

export type { Entry, Row } from './memory-records.ts';

export interface StoredGrant extends Grant {
  readonly id: string;
  readonly account: string;
  readonly amount: bigint;
  /** Wall-clock milliseconds. */
  readonly at: number;
}

/** A charge, or a part of it, that was given back. */
export interface StoredRefund {
  readonly grantId: string;
  readonly amount: bigint;
}

export interface StoredDeposit extends StoredAuthorization {
  readonly account: string;
}

export interface Totals {
  balance: bigint;
  revenue: bigint;
  funding: bigint;
}

/** What one statement wrote, and how it is taken back. */
export interface Written {
  readonly rows: readonly Row[];
  readonly undo: () => void;
}

/** What may be spent, and what deposits set aside. */
export interface Balance {
  balance: bigint;
  held: bigint;
}

export class MemoryLedger implements Store {
  readonly rows: Row[] = [];
  readonly accounts = new Map<string, Balance>();
  /** By reference, and by id. */
  readonly grants = new Map<string, StoredGrant>();
  readonly grantsById = new Map<string, StoredGrant>();
  readonly grantBalances = new MemoryGrants();
  readonly terms = new MemoryTerms();
  /** By request. */
  readonly refunds = new Map<string, readonly StoredRefund[]>();
  readonly deposits = new Map<string, StoredDeposit>();
  /** The calls that have ended, by request. */
  readonly calls = new Map<string, EndRecord>();
  /** Archived calls, as sums and the ledger's rows still have them. */
  readonly archived = new Map<string, EndRecord>();
  /** A call by its row, or by its file. */
  callOf: (id: string) => EndRecord | undefined = (id) => this.calls.get(id);
  /** By request and number. */
  readonly attempts = new Map<string, AttemptNote>();
  readonly totals: Totals = { balance: 0n, revenue: 0n, funding: 0n };
  readonly cursors = new Map<string, StoredCursor>();
  readonly leases: MemoryLeases;
  readonly budgets: MemoryShares;
  readonly ownBudgets: MemoryBudgets;
  /** Called for what no call in a journal did, when it is committed. */
  onEntry: (entry: Entry, grant: StoredGrant | undefined) => void = () => {};
  /** Called for each row that a lease paid, with what is left of that; and of each account whose balance or leases have moved. */
  onRow: (row: Row, leased: bigint) => void = () => {};
  onCommit: (account: string) => void = () => {};
  /** Called for each charge of a call; and of an end of one that has ended otherwise. */
  onCharge: (charge: SettleRecord) => void = () => {};
  onSecondEnd: (end: EndRecord) => void = () => {};
  readonly #now: () => number;
  readonly #references = new Map<string, Row>();
  /** Non-expiring credits of each account, with the paid part of each. */
  readonly #lasting = new Map<string, StoredGrant[]>();
  readonly #paidOut = new Map<string, bigint>();
  #grantCount = 0;

  /** `now`: the database's clock, in milliseconds. */
  constructor(now: () => number = () => 0) {
    this.#now = now;
    this.ownBudgets = new MemoryBudgets(now);
    const { accounts, cursors, grantBalances, terms } = this;
    const onMoved = (account: string) => this.onCommit(account);
    this.leases = new MemoryLeases({ accounts, cursors, grantBalances, terms, now, onMoved });
    const calls = () => [...this.calls.values(), ...this.archived.values()];
    this.budgets = new MemoryShares({
      ...{ cursors, now },
      charged: ({ counted }) => spentIn(calls(), this.deposits.values(), counted!.spending, counted!.from),
    });
  }

  async cursorOf(journal: string): Promise<{ applied: number; epoch: number } | undefined> {
    const known = this.cursors.get(journal);
    return known === undefined ? undefined : { applied: known.applied, epoch: known.epoch };
  }

  async claim(journal: string, owner: string, epoch: number): Promise<boolean> {
    const known = this.cursors.get(journal);
    if (known !== undefined && known.epoch >= epoch) return false;
    this.cursors.set(journal, { owner, epoch, applied: known?.applied ?? 0, asked: 0, seenAt: this.#now() });
    return true;
  }

  async apply(text: string, accounts: ReadonlyMap<string, Money>, cursor: Cursor): Promise<Map<string, Money>> {
    const given = recordsOf(text).filter(isEnd);
    const accountIds = [...accounts.keys()];
    const locked = this.#lock(accountIds);
    const fresh = this.#fresh(given, locked);
    const claimed = this.cursors.get(cursor.journal);
    if (claimed?.owner !== cursor.owner || claimed.applied < (cursor.known ?? 0))
      throw new FencedError(fencedErrorOf(cursor.journal));
    // From here on nothing can fail: it is the commit.
    const { rows } = this.#write(fresh, locked);
    const { journal, leaseMs } = cursor;
    if (leaseMs !== undefined) {
      for (const row of rows) this.onRow(row, this.leases.charge(row.account, journal, row.amount));
      for (const [id, open] of accounts) this.leases.renew(id, journal, open, leaseMs);
    }
    claimed.applied = Math.max(claimed.applied, cursor.applied);
    claimed.asked = Math.max(claimed.asked, cursor.number ?? 0);
    claimed.seenAt = this.#now();
    for (const id of accountIds) this.onCommit(id);
    return new Map(accountIds.map((id) => [id, money(this.accounts.get(id)!.balance)]));
  }

  /** The rows of an end that no journal has, inside a transaction of more than it; and how they are taken back. */
  postEnd(record: EndRecord, account: string): Written {
    const locked = this.#lock([account]);
    return this.#write(this.#fresh([record], locked), locked);
  }

  #lock(accountIds: readonly string[]): Map<string, Balance> {
    return new Map(accountIds.map((id) => [id, { ...(this.accounts.get(id) ?? { balance: 0n, held: 0n }) }]));
  }

  /** The calls that have not ended, in order, with the rows that their ends make. Throws as the statement would. */
  #fresh(given: readonly EndRecord[], locked: ReadonlyMap<string, Balance>): { record: EndRecord; row?: Row }[] {
    const running = new Map(Array.from(locked, ([id, { balance, held }]) => [id, balance + held]));
    const seen = new Set<string>();
    const fresh: { record: EndRecord; row?: Row }[] = [];
    for (const record of given) {
      const known = this.calls.get(record.id) ?? this.archived.get(record.id);
      if (known !== undefined && (known.kind !== record.kind || costIn(known) !== costIn(record)))
        this.onSecondEnd(record);
      if (known !== undefined || seen.has(record.id)) continue;
      seen.add(record.id);
      checkCall(record);
      const draft = chargeOf(record);
      if (draft.amount === 0n) {
        fresh.push({ record });
        continue;
      }
      const before = running.get(draft.account);
      if (before === undefined) throw new Error('null value in column "balance_after" violates not-null constraint');
      running.set(draft.account, before + draft.amount);
      fresh.push({ record, row: { ...draft, seq: 0, balanceAfter: before + draft.amount } });
    }
    return fresh;
  }

  #write(fresh: readonly { record: EndRecord; row?: Row }[], locked: ReadonlyMap<string, Balance>): Written {
    const undo: Undo = [];
    for (const [id, balance] of locked) if (!this.accounts.has(id)) this.accounts.set(id, { ...balance });
    const rows: Row[] = [];
    for (const { record, row } of fresh) {
      this.#note(record, undo);
      if (row === undefined) continue;
      const inserted = this.#insert(row);
      rows.push(inserted);
      undo.push(() => this.unpost(inserted));
    }
    const charged = rows.filter(({ account }) => this.grantBalances.isOpen(account));
    if (charged.length > 0) undo.push(this.#draw(charged, locked));
    return {
      rows,
      undo: () => {
        for (const step of undo.reverse()) step();
      },
    };
  }

  async funds(accountIds: readonly string[], at: number): Promise<Map<string, Funds>> {
    return new Map(
      accountIds.map((id): [string, Funds] => {
        const balance = money(this.accounts.get(id)?.balance ?? 0n);
        return [id, { balance, pool: this.grantBalances.pools([id], [at]).get(id), term: this.terms.nameOf(id) }];
      }),
    );
  }

  async expired(before: number, after: string, limit: number): Promise<string[]> {
    return this.grantBalances.expired(before, after, limit);
  }

  async endOf(requestId: string): ReturnType<Store['endOf']> {
    const known = this.calls.get(requestId) ?? this.archived.get(requestId);
    if (known === undefined) return this.deposits.has(requestId) ? 'open' : undefined;
    if (known.kind === 'SETTLE') return 'charged';
    return mayHaveRun(known) ? 'in_vain' : 'free';
  }

  async transact<T>(accountId: string, at: number, work: (entries: Entries) => Promise<T>): Promise<T> {
    const { balance, held } = this.accounts.get(accountId) ?? { balance: 0n, held: 0n };
    const rows = new MemoryEntryRows(this, accountId);
    const given = {
      accountId,
      at: this.terms.momentOf(accountId, at),
      balance: money(balance),
      held: money(held),
      ...(await this.leases.leasedOf(accountId)),
    };
    try {
      const result = await work(new Entries(runnerOf(rows), 'main', rows, given));
      for (const work of rows.commits) work();
      this.onCommit(accountId);
      return result;
    } catch (error) {
      for (const undo of rows.undo.reverse()) undo();
      throw error;
    }
  }

  hasEnded(id: string): boolean {
    return this.calls.has(id) || this.archived.has(id);
  }

  /** The call's row is deleted for a file. */
  archive(id: string): void {
    const record = this.calls.get(id);
    if (record !== undefined) this.archived.set(id, record);
    this.calls.delete(id);
  }

  /** Adds a row that no call made. `balanceAfter`: without what deposits set aside. */
  post(draft: Draft, balanceAfter: bigint): Row {
    const { reference } = draft;
    if (reference !== undefined && this.#references.has(reference)) throw new Error('duplicate key: ledger_reference');
    const account = this.accounts.get(draft.account) ?? { balance: 0n, held: 0n };
    this.accounts.set(draft.account, account);
    const row = this.#insert({ ...draft, seq: 0, balanceAfter: balanceAfter + account.held });
    if (reference !== undefined) this.#references.set(reference, row);
    if (row.kind === 'PAYOUT') this.#payOut(row.grantId!, -row.amount);
    if (row.kind === 'CREDIT' || row.kind === 'REFUND') this.#lastingIn(row)?.push(this.grantsById.get(row.grantId!)!);
    return row;
  }

  /** Takes the last row back, which no one has seen. */
  unpost(row: Row): void {
    this.rows.pop();
    if (row.reference !== undefined) this.#references.delete(row.reference);
    if (row.kind === 'PAYOUT') this.#payOut(row.grantId!, row.amount);
    if (row.kind === 'CREDIT' || row.kind === 'REFUND') this.#lastingIn(row)?.pop();
    this.#move(row, -1n);
  }

  /** An account's grants that do not expire, newest first. */
  lastingOf(account: string): StoredGrant[] {
    return (this.#lasting.get(account) ?? []).toReversed();
  }

  paidOutOf(grantId: string): bigint {
    return this.#paidOut.get(grantId) ?? 0n;
  }

  #payOut(grantId: string, amount: bigint): void {
    this.#paidOut.set(grantId, this.paidOutOf(grantId) + amount);
  }

  #lastingIn({ account, grantId }: Row): StoredGrant[] | undefined {
    if (this.grantsById.get(grantId!)?.expiresAt !== undefined) return undefined;
    const known = this.#lasting.get(account) ?? [];
    this.#lasting.set(account, known);
    return known;
  }

  entryOf(reference: string): Row | undefined {
    return this.#references.get(reference);
  }

  newGrantId(): string {
    this.#grantCount += 1;
    return `00000000-0000-4000-8000-${this.#grantCount.toString(16).padStart(12, '0')}`;
  }

  /** A deposit begins, or ends with a negative amount: what it sets aside cannot be spent. */
  setAside(account: string, amount: bigint): void {
    const known = this.accounts.get(account) ?? { balance: 0n, held: 0n };
    this.accounts.set(account, known);
    known.balance -= amount;
    known.held += amount;
  }

  #draw(charged: readonly Row[], locked: ReadonlyMap<string, Balance>): () => void {
    const charges = charged.map((row) => {
      const heldAt = this.calls.get(row.request!)!.heldAt ?? row.at;
      return { seq: String(row.seq), accountId: row.account, cost: row.revenue, heldAt };
    });
    const ids = [...new Set(charges.map(({ accountId }) => accountId))];
    const times = [...new Set(charges.map(({ heldAt }) => heldAt))];
    const uncharged = new Map(Array.from(locked, ([id, { balance, held }]) => [id, balance + held]));
    return this.grantBalances.draw(placeAllocations(charges, this.grantBalances.pools(ids, times), uncharged));
  }

  #insert(draft: Row): Row {
    const row = { ...draft, seq: this.rows.length + 1 };
    this.rows.push(row);
    this.#move(row, 1n);
    return row;
  }

  #move(row: Row, sign: bigint): void {
    const account = this.accounts.get(row.account)!;
    account.balance += sign * row.amount;
    this.totals.balance += sign * row.amount;
    this.totals.revenue += sign * row.revenue;
    this.totals.funding += sign * row.funding;
  }

  /** Each call has one row, with its attempts. */
  #note(record: EndRecord, undo: Undo): void {
    putIn(this.calls, record.id, record, undo);
    for (const note of attemptsIn(record)) putIn(this.attempts, `${record.id} ${note.number}`, note, undo);
    if (record.kind === 'SETTLE') this.onCharge(record);
  }
}
