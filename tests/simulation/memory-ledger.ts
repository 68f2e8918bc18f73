/**
 * The ledger's database in memory: the meaning of every statement of the store, nothing of its text. The conformance test
 * holds it against the embedded database and PostgreSQL.
 */
import { type Money, money } from '../../core/money.ts';
import type { Orm } from '../../core/vocabulary.ts';
import { type Cursor, ShutOutError, shutOutOf } from '../../plugins/billing/batch.ts';
import { placeDraws } from '../../plugins/billing/draws.ts';
import { Entries, type Grant } from '../../plugins/billing/entries.ts';
import type { EntryRow } from '../../plugins/billing/entry-rows.ts';
import type { Funds } from '../../plugins/billing/funds.ts';
import type {
  AttemptNote,
  EndRecord,
  ExtendRecord,
  HoldRecord,
  JournalRecord,
  SettleRecord,
} from '../../plugins/billing/records.ts';
import type { Store } from '../../plugins/billing/store.ts';
import { MemoryEntryRows } from './memory-entries.ts';
import { MemoryLeases, type StoredCursor } from './memory-leases.ts';
import { MemoryPots } from './memory-pots.ts';

type PostingRecord = HoldRecord | ExtendRecord | EndRecord;

export interface Row {
  readonly seq: number;
  readonly account: string;
  readonly kind: PostingRecord['kind'] | EntryRow['kind'];
  readonly request: string | undefined;
  readonly part: number;
  readonly grantId: string | undefined;
  readonly reference: string | undefined;
  readonly amount: bigint;
  readonly held: bigint;
  readonly revenue: bigint;
  readonly funding: bigint;
  readonly absorbed: bigint;
  readonly balanceAfter: bigint;
  /** Wall-clock milliseconds. */
  readonly at: number;
}

export interface StoredGrant extends Grant {
  readonly id: string;
  readonly account: string;
  readonly amount: bigint;
}

export interface Totals {
  available: bigint;
  held: bigint;
  revenue: bigint;
  funding: bigint;
  absorbed: bigint;
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

type Draft = Omit<Row, 'seq' | 'balanceAfter'>;

/** No account has bought a plan here: whoever asks for one finds none. */
const noTerms = { execute: async () => [] } as unknown as Orm;

export class MemoryLedger implements Store {
  readonly rows: Row[] = [];
  readonly accounts = new Map<string, Balance>();
  /** By reference, and by id. */
  readonly grants = new Map<string, StoredGrant>();
  readonly grantsById = new Map<string, StoredGrant>();
  readonly pots = new MemoryPots();
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
  readonly #now: () => number;
  readonly #known = new Map<string, Known>();
  readonly #references = new Map<string, Row>();
  #grantCount = 0;

  /** `now`: the database's clock, in milliseconds. */
  constructor(now: () => number = () => 0) {
    this.#now = now;
    const { accounts, cursors, pots } = this;
    this.leases = new MemoryLeases({ accounts, cursors, pots, now, onMoved: (account) => this.onCommit(account) });
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
    const given = recordsOf(text);
    const locked = new Map(accountIds.map((id) => [id, { ...(this.accounts.get(id) ?? { balance: 0n, held: 0n }) }]));
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
    const claimed = this.cursors.get(cursor.journal);
    if (claimed?.owner !== cursor.owner || claimed.applied < (cursor.known ?? 0))
      throw new ShutOutError(shutOutOf(cursor.journal));
    // From here on nothing can fail: it is the commit.
    for (const [id, balance] of locked) if (!this.accounts.has(id)) this.accounts.set(id, { ...balance });
    const charged: Row[] = [];
    for (const row of rows) {
      // Of two alike in one statement the second is left out.
      if (this.#isKnown(row)) continue;
      const inserted = this.#insert(row);
      const { account, amount } = row;
      const { journal, leaseMs } = cursor;
      if (leaseMs !== undefined) this.onRow(row, this.leases.apply(account, journal, amount, leaseMs));
      if (inserted.revenue > 0n && this.pots.isOpen(inserted.account)) charged.push(inserted);
    }
    for (const record of given) this.#note(record);
    if (charged.length > 0) this.#draw(charged, locked);
    claimed.applied = Math.max(claimed.applied, cursor.applied);
    claimed.asked = Math.max(claimed.asked, cursor.number ?? 0);
    claimed.seenAt = this.#now();
    for (const id of accountIds) this.onCommit(id);
    return new Map(accountIds.map((id) => [id, money(this.accounts.get(id)!.balance)]));
  }

  async funds(accountIds: readonly string[], at: number): Promise<Map<string, Funds>> {
    return new Map(
      accountIds.map((id): [string, Funds] => {
        const balance = money(this.accounts.get(id)?.balance ?? 0n);
        return [id, { balance, pool: this.pots.pools([id], [at]).get(id), term: undefined }];
      }),
    );
  }

  async endOf(requestId: string): ReturnType<Store['endOf']> {
    const known = this.#known.get(requestId);
    return known === undefined ? undefined : ((known.ended ?? 'open') as Awaited<ReturnType<Store['endOf']>>);
  }

  async transact<T>(accountId: string, at: number, work: (entries: Entries) => Promise<T>): Promise<T> {
    const { balance, held } = this.accounts.get(accountId) ?? { balance: 0n, held: 0n };
    const rows = new MemoryEntryRows(this, accountId);
    const given = {
      accountId,
      at,
      balance: money(balance),
      held: money(held),
      leased: money(this.leases.leasedOf(accountId)),
    };
    try {
      const result = await work(new Entries(noTerms, 'main', rows, given));
      for (const { row, grant } of rows.posted) this.onEntry(row, grant);
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
    return row;
  }

  /** Takes the last row back, which nobody has seen. */
  unpost(row: Row): void {
    this.rows.pop();
    if (row.reference !== undefined) this.#references.delete(row.reference);
    this.#move(row, -1n);
  }

  entryOf(reference: string): Row | undefined {
    return this.#references.get(reference);
  }

  newGrantId(): string {
    this.#grantCount += 1;
    return `00000000-0000-4000-8000-${this.#grantCount.toString(16).padStart(12, '0')}`;
  }

  #draw(charged: readonly Row[], locked: ReadonlyMap<string, Balance>): void {
    const charges = charged.map((row) => {
      const heldAt = this.#known.get(row.request!)?.heldAt ?? row.at;
      return { seq: String(row.seq), accountId: row.account, cost: row.revenue, heldAt };
    });
    const ids = [...new Set(charges.map(({ accountId }) => accountId))];
    const times = [...new Set(charges.map(({ heldAt }) => heldAt))];
    const uncharged = new Map(Array.from(locked, ([id, { balance, held }]) => [id, balance + held]));
    this.pots.draw(placeDraws(charges, this.pots.pools(ids, times), uncharged));
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
  #note(record: PostingRecord): void {
    if (record.kind !== 'SETTLE' && record.kind !== 'VOID') return;
    if (record.kind === 'SETTLE' && !this.usage.has(record.id)) this.usage.set(record.id, record);
    for (const note of record.attempts) {
      const key = `${record.id} ${note.number}`;
      if (!this.attempts.has(key)) this.attempts.set(key, note);
    }
  }
}

/** The records of journal lines `CRC FIRST … [RECORD, …]` that make a row. */
function recordsOf(text: string): PostingRecord[] {
  const found: PostingRecord[] = [];
  for (const line of text.split('\n')) {
    if (line === '') continue;
    for (const record of JSON.parse(line.slice(line.indexOf('['))) as JournalRecord[]) {
      if (record.kind !== 'SENT' && record.kind !== 'PROGRESS') found.push(record);
    }
  }
  return found;
}

function postingOf(record: PostingRecord): Draft {
  const { kind, id: request, account, at } = record;
  const shared = { account, kind, request, grantId: undefined, reference: undefined, at };
  if (record.kind === 'HOLD' || record.kind === 'EXTEND') {
    const amount = BigInt(record.amount);
    const part = record.kind === 'EXTEND' ? record.part : 0;
    return { ...shared, part, amount: -amount, held: amount, revenue: 0n, funding: 0n, absorbed: 0n };
  }
  const held = BigInt(record.held);
  const cost = record.kind === 'SETTLE' ? BigInt(record.cost) : 0n;
  const absorbed = BigInt(record.absorbed ?? 0);
  return { ...shared, part: 0, amount: held - cost, held: -held, revenue: cost, funding: -absorbed, absorbed };
}

function checkUsage(record: PostingRecord): void {
  if (record.kind === 'SETTLE' && BigInt(record.cost) < 0n)
    throw new Error('violates check constraint "usage_cost_check"');
}
