/**
 * The ledger's database in memory: the meaning of every statement of the store, nothing of its text. The conformance test
 * holds it against the embedded database and PostgreSQL.
 */
import { type Money, money } from '../../core/money.ts';
import { type Cursor, ShutOutError, shutOutOf } from '../../plugins/billing/batch.ts';
import type { KeptDeposit } from '../../plugins/billing/deposit-rows.ts';
import { placeDraws } from '../../plugins/billing/draws.ts';
import { Entries, type Grant } from '../../plugins/billing/entries.ts';
import type { Funds } from '../../plugins/billing/funds.ts';
import type { AttemptNote, SettleRecord } from '../../plugins/billing/records.ts';
import type { Store } from '../../plugins/billing/store.ts';
import { MemoryEntryRows } from './memory-entries.ts';
import { MemoryLeases, type StoredCursor } from './memory-leases.ts';
import { MemoryPots } from './memory-pots.ts';
import {
  checkUsage,
  type Draft,
  makesRow,
  mayHaveRun,
  type PostingRecord,
  postingOf,
  type Row,
  recordsOf,
  spentIn,
} from './memory-records.ts';
import { MemoryTerms } from './memory-terms.ts';
import { putIn, runnerOf, type Undo } from './memory-undo.ts';

export type { Row } from './memory-records.ts';

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

export interface StoredDeposit extends KeptDeposit {
  readonly account: string;
}

export interface Totals {
  available: bigint;
  held: bigint;
  revenue: bigint;
  funding: bigint;
  absorbed: bigint;
}

/** What one statement wrote, and how it is taken back. */
export interface Written {
  readonly rows: readonly Row[];
  readonly undo: () => void;
}

export interface Balance {
  balance: bigint;
  held: bigint;
}

/** The rows of one request, by what the unique indexes know of them. */
interface Known {
  heldAt: number | undefined;
  ended: Row['kind'] | undefined;
  parts: number[];
}

export class MemoryLedger implements Store {
  readonly rows: Row[] = [];
  readonly accounts = new Map<string, Balance>();
  /** By reference, and by id. */
  readonly grants = new Map<string, StoredGrant>();
  readonly grantsById = new Map<string, StoredGrant>();
  readonly pots = new MemoryPots();
  readonly terms = new MemoryTerms();
  /** By request. */
  readonly refunds = new Map<string, readonly StoredRefund[]>();
  readonly deposits = new Map<string, StoredDeposit>();
  readonly usage = new Map<string, SettleRecord>();
  /** By request and number. */
  readonly attempts = new Map<string, AttemptNote>();
  readonly totals: Totals = { available: 0n, held: 0n, revenue: 0n, funding: 0n, absorbed: 0n };
  readonly cursors = new Map<string, StoredCursor>();
  readonly leases: MemoryLeases;
  /** Told of the rows of each entry beside the calls, when it is committed. */
  onEntry: (row: Row, grant: StoredGrant | undefined) => void = () => {};
  /** Told of each row that a lease paid, with what is left of that; and of each account whose balance or leases have moved. */
  onRow: (row: Row, leased: bigint) => void = () => {};
  onCommit: (account: string) => void = () => {};
  /** Told of each charge of a call. */
  onCharge: (charge: SettleRecord) => void = () => {};
  readonly #now: () => number;
  readonly #known = new Map<string, Known>();
  readonly #references = new Map<string, Row>();
  /** Of each account, those that do not expire; and what was paid out of each. */
  readonly #lasting = new Map<string, StoredGrant[]>();
  readonly #paidOut = new Map<string, bigint>();
  #grantCount = 0;

  /** `now`: the database's clock, in milliseconds. */
  constructor(now: () => number = () => 0) {
    this.#now = now;
    const { accounts, cursors, pots, terms } = this;
    const onMoved = (account: string) => this.onCommit(account);
    this.leases = new MemoryLeases({ accounts, cursors, pots, terms, now, onMoved });
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

  async apply(text: string, accountIds: readonly string[], cursor: Cursor): Promise<Map<string, Money>> {
    const given = recordsOf(text).filter(makesRow);
    const locked = this.#lock(accountIds);
    const fresh = this.#fresh(given, locked);
    const claimed = this.cursors.get(cursor.journal);
    if (claimed?.owner !== cursor.owner || claimed.applied < (cursor.known ?? 0))
      throw new ShutOutError(shutOutOf(cursor.journal));
    // From here on nothing can fail: it is the commit.
    for (const row of this.#write(given, fresh, locked).rows) {
      const { account, amount } = row;
      const { journal, leaseMs } = cursor;
      if (leaseMs !== undefined) this.onRow(row, this.leases.apply(account, journal, amount, leaseMs));
    }
    claimed.applied = Math.max(claimed.applied, cursor.applied);
    claimed.asked = Math.max(claimed.asked, cursor.number ?? 0);
    claimed.seenAt = this.#now();
    for (const id of accountIds) this.onCommit(id);
    return new Map(accountIds.map((id) => [id, money(this.accounts.get(id)!.balance)]));
  }

  /** The rows of records that no journal has, inside a transaction of more than them; and how they are taken back. */
  postRecords(given: readonly PostingRecord[], account: string): Written {
    const locked = this.#lock([account]);
    return this.#write(given, this.#fresh(given, locked), locked);
  }

  #lock(accountIds: readonly string[]): Map<string, Balance> {
    return new Map(accountIds.map((id) => [id, { ...(this.accounts.get(id) ?? { balance: 0n, held: 0n }) }]));
  }

  /** The rows that the records make beside those that are there. Throws as the statement would. */
  #fresh(given: readonly PostingRecord[], locked: ReadonlyMap<string, Balance>): Row[] {
    const running = new Map(Array.from(locked, ([id, { balance }]) => [id, balance]));
    const rows: Row[] = [];
    for (const record of given) {
      const draft = postingOf(record);
      if (this.#isKnown(draft)) continue;
      const before = running.get(draft.account);
      if (before === undefined) throw new Error('null value in column "balance_after" violates not-null constraint');
      running.set(draft.account, before + draft.amount);
      rows.push({ ...draft, seq: 0, balanceAfter: before + draft.amount });
    }
    for (const record of given) checkUsage(record);
    return rows;
  }

  #write(given: readonly PostingRecord[], fresh: readonly Row[], locked: ReadonlyMap<string, Balance>): Written {
    const undo: Undo = [];
    for (const [id, balance] of locked) if (!this.accounts.has(id)) this.accounts.set(id, { ...balance });
    const rows: Row[] = [];
    for (const row of fresh) {
      // Of two alike in one statement the second is left out.
      if (this.#isKnown(row)) continue;
      const inserted = this.#insert(row);
      rows.push(inserted);
      undo.push(() => this.unpost(inserted));
    }
    for (const record of given) this.#note(record, undo);
    const charged = rows.filter(({ account, revenue }) => revenue > 0n && this.pots.isOpen(account));
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
        return [id, { balance, pool: this.pots.pools([id], [at]).get(id), term: this.terms.newestOf(id) }];
      }),
    );
  }

  async endOf(requestId: string): ReturnType<Store['endOf']> {
    const known = this.#known.get(requestId);
    if (known?.ended === 'VOID' && mayHaveRun(this.attempts, requestId)) return 'in_vain';
    return known === undefined ? undefined : ((known.ended ?? 'open') as Awaited<ReturnType<Store['endOf']>>);
  }

  async spentBy(keyId: string, from: number): ReturnType<Store['spentBy']> {
    return spentIn(this.usage.values(), this.deposits.values(), keyId, from);
  }

  async transact<T>(accountId: string, at: number, work: (entries: Entries) => Promise<T>): Promise<T> {
    const { balance, held } = this.accounts.get(accountId) ?? { balance: 0n, held: 0n };
    const rows = new MemoryEntryRows(this, accountId);
    const given = {
      accountId,
      at: this.terms.momentOf(accountId, at),
      balance: money(balance),
      held: money(held),
      leased: money(this.leases.sumOf(accountId)),
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

  /** Adds a row that no call made. */
  post(draft: Draft, balanceAfter: bigint): Row {
    const { reference } = draft;
    if (reference !== undefined && this.#references.has(reference)) throw new Error('duplicate key: ledger_reference');
    if (!this.accounts.has(draft.account)) this.accounts.set(draft.account, { balance: 0n, held: 0n });
    const row = this.#insert({ ...draft, seq: 0, balanceAfter });
    if (reference !== undefined) this.#references.set(reference, row);
    if (row.kind === 'PAYOUT') this.#payOut(row.grantId!, -row.amount);
    if (row.kind === 'CREDIT' || row.kind === 'REFUND') this.#lastingIn(row)?.push(this.grantsById.get(row.grantId!)!);
    return row;
  }

  /** Takes the last row back, which nobody has seen. */
  unpost(row: Row): void {
    this.rows.pop();
    if (row.reference !== undefined) this.#references.delete(row.reference);
    if (row.kind === 'PAYOUT') this.#payOut(row.grantId!, row.amount);
    if (row.kind === 'CREDIT' || row.kind === 'REFUND') this.#lastingIn(row)?.pop();
    const known = row.request === undefined ? undefined : this.#known.get(row.request)!;
    if (row.kind === 'HOLD') known!.heldAt = undefined;
    else if (row.kind === 'EXTEND') known!.parts.pop();
    else if (known !== undefined) known.ended = undefined;
    if (known !== undefined && known.heldAt === undefined && known.ended === undefined && known.parts.length === 0)
      this.#known.delete(row.request!);
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

  #draw(charged: readonly Row[], locked: ReadonlyMap<string, Balance>): () => void {
    const charges = charged.map((row) => {
      const heldAt = this.#known.get(row.request!)?.heldAt ?? row.at;
      return { seq: String(row.seq), accountId: row.account, cost: row.revenue, heldAt };
    });
    const ids = [...new Set(charges.map(({ accountId }) => accountId))];
    const times = [...new Set(charges.map(({ heldAt }) => heldAt))];
    const uncharged = new Map(Array.from(locked, ([id, { balance, held }]) => [id, balance + held]));
    return this.pots.draw(placeDraws(charges, this.pots.pools(ids, times), uncharged));
  }

  #isKnown({ request, kind, part }: Draft): boolean {
    const known = request === undefined ? undefined : this.#known.get(request);
    if (known === undefined) return false;
    if (kind === 'HOLD') return known.heldAt !== undefined;
    if (kind === 'EXTEND') return known.parts.includes(part);
    return known.ended !== undefined;
  }

  #insert(draft: Row): Row {
    const row = { ...draft, seq: this.rows.length + 1 };
    this.rows.push(row);
    this.#move(row, 1n);
    if (row.request === undefined) return row;
    let known = this.#known.get(row.request);
    if (known === undefined) {
      known = { heldAt: undefined, ended: undefined, parts: [] };
      this.#known.set(row.request, known);
    }
    if (row.kind === 'HOLD') known.heldAt = row.at;
    else if (row.kind === 'EXTEND') known.parts.push(row.part);
    else known.ended = row.kind;
    return row;
  }

  #move(row: Row, sign: bigint): void {
    const account = this.accounts.get(row.account)!;
    account.balance += sign * row.amount;
    account.held += sign * row.held;
    this.totals.available += sign * row.amount;
    this.totals.held += sign * row.held;
    this.totals.revenue += sign * row.revenue;
    this.totals.funding += sign * row.funding;
    this.totals.absorbed += sign * row.absorbed;
  }

  /** Usage and attempts stand beside the rows, once each. */
  #note(record: PostingRecord, undo: Undo): void {
    if (record.kind !== 'SETTLE' && record.kind !== 'VOID') return;
    if (record.kind === 'SETTLE' && !this.usage.has(record.id)) {
      putIn(this.usage, record.id, record, undo);
      this.onCharge(record);
    }
    for (const note of record.attempts) {
      const key = `${record.id} ${note.number}`;
      if (!this.attempts.has(key)) putIn(this.attempts, key, note, undo);
    }
  }
}
