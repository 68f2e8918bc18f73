/** One account's rows inside one transaction of the database in memory, which can be taken back. */

import { type CreditRows, creditKind } from '../../plugins/billing/grants/credit-rows.ts';
import type { PoolState } from '../../plugins/billing/grants/funds.ts';
import type { RefundRows } from '../../plugins/billing/grants/refund-rows.ts';
import type { GrantRow } from '../../plugins/billing/grants/rows.ts';
import type { TermRows } from '../../plugins/billing/grants/term-rows.ts';
import type { AuthorizationRows } from '../../plugins/billing/ledger/authorization-rows.ts';
import type { EntryRow, EntryRows, Grant, KnownEntry } from '../../plugins/billing/ledger/entry-rows.ts';
import type { Money } from '../../plugins/common/domain/money.ts';
import { creditRowsOf } from './memory-credit.ts';
import type { Entry, MemoryLedger } from './memory-ledger.ts';
import { costIn } from './memory-records.ts';
import { dropFrom, putIn, type Transaction, type Undo } from './memory-undo.ts';

export class MemoryEntryRows implements EntryRows, Transaction {
  readonly undo: Undo = [];
  readonly commits: (() => void)[] = [];
  readonly terms: TermRows;
  readonly #ledger: MemoryLedger;
  readonly #account: string;

  constructor(ledger: MemoryLedger, account: string) {
    this.#ledger = ledger;
    this.#account = account;
    this.terms = ledger.terms.rowsOf(account, this.undo);
  }

  async pool(at: number): Promise<PoolState | undefined> {
    return this.#ledger.grantBalances.pools([this.#account], [at]).get(this.#account);
  }

  async addGrant(amount: Money, grant: Grant, at: number): Promise<string | undefined> {
    const { grants, grantsById } = this.#ledger;
    if (grants.has(grant.reference)) return undefined;
    const id = this.#ledger.newGrantId();
    const stored = { ...grant, id, account: this.#account, amount, at };
    putIn(grants, grant.reference, stored, this.undo);
    putIn(grantsById, id, stored, this.undo);
    return id;
  }

  async grantOf(reference: string): Promise<KnownEntry | undefined> {
    const grant = this.#ledger.grants.get(reference);
    return grant === undefined ? undefined : { accountId: grant.account, kind: grant.kind, amount: grant.amount };
  }

  async openGrant(grantId: string, amount: Money, expiresAt: number): Promise<void> {
    const { windows, kind } = this.#ledger.grantsById.get(grantId)!;
    const opened = { grantId, remaining: amount, expiresAt, windows, isCredit: kind === creditKind };
    this.undo.push(this.#ledger.grantBalances.open(this.#account, opened));
  }

  async emptyGrant(grantId: string): Promise<void> {
    this.undo.push(this.#ledger.grantBalances.empty(grantId));
  }

  async allocate(draws: Parameters<EntryRows['allocate']>[0]): Promise<void> {
    this.undo.push(this.#ledger.grantBalances.draw(draws));
  }

  async post(given: EntryRow, balance: Money, at: number): Promise<string> {
    const { kind, amount, revenue = 0n, funding = 0n, grantId, reference } = given;
    const none = { request: undefined };
    const row = this.#ledger.post(
      { ...none, account: this.#account, kind, amount, revenue, funding, grantId, reference, at: given.at ?? at },
      balance,
    );
    this.#report({ ...row, postedAt: at });
    this.undo.push(() => this.#ledger.unpost(row));
    return String(row.seq);
  }

  async entryOf(reference: string): Promise<KnownEntry | undefined> {
    const row = this.#ledger.entryOf(reference);
    return row === undefined ? undefined : { accountId: row.account, kind: row.kind, amount: row.amount };
  }

  async nonExpiring(): Promise<GrantRow[]> {
    return this.#ledger.lastingOf(this.#account).map(({ id, kind, reason, reference, amount, at }) => ({
      id,
      kind,
      reason,
      reference,
      amount: String(amount),
      paid_out: String(this.#ledger.paidOutOf(id)),
      created_at: String(at),
      expires_at: null,
    }));
  }

  get credit(): CreditRows {
    return creditRowsOf(this.#ledger, this.#account, this.undo);
  }

  get refunds(): RefundRows {
    const { calls, archived, refunds } = this.#ledger;
    return {
      chargeOf: async (requestId) => {
        const record = calls.get(requestId) ?? archived.get(requestId);
        if (record?.kind !== 'SETTLE' || record.account !== this.#account) return undefined;
        const given = refunds.get(requestId) ?? [];
        return { cost: BigInt(record.cost), refunded: given.reduce((sum, { amount }) => sum + amount, 0n) };
      },
      add: async (grantId, requestId, amount) =>
        putIn(refunds, requestId, [...(refunds.get(requestId) ?? []), { grantId, amount }], this.undo),
    };
  }

  get authorizations(): AuthorizationRows {
    const { deposits } = this.#ledger;
    return {
      post: async (record) => {
        const isNew = !this.#ledger.hasEnded(record.id);
        const { undo } = this.#ledger.postEnd(record, this.#account);
        this.undo.push(undo);
        const amount = (isNew ? BigInt(record.held) : 0n) - costIn(record);
        this.#report(this.#depositEntry(record.kind, record.id, amount, record.at));
      },
      add: async (requestId, { held, terms }, at) => {
        if (deposits.has(requestId)) throw new Error('duplicate key: deposits_pkey');
        putIn(deposits, requestId, { account: this.#account, held, terms }, this.undo);
        this.#setAside(held);
        this.#report(this.#depositEntry('HOLD', requestId, -held, at));
      },
      find: async (requestId) => {
        const known = deposits.get(requestId);
        return known?.account === this.#account ? { held: known.held, terms: known.terms } : undefined;
      },
      remove: async (requestId, held) => {
        dropFrom(deposits, requestId, this.undo);
        this.#setAside(-held);
      },
    };
  }

  #setAside(amount: bigint): void {
    this.#ledger.setAside(this.#account, amount);
    this.undo.push(() => this.#ledger.setAside(this.#account, -amount));
  }

  #depositEntry(kind: Entry['kind'], request: string, amount: bigint, at: number): Entry {
    return { account: this.#account, kind, request, amount, at, grantId: undefined, reference: undefined };
  }

  #report(entry: Entry): void {
    const grant = entry.grantId === undefined ? undefined : this.#ledger.grantsById.get(entry.grantId);
    this.commits.push(() => this.#ledger.onEntry(entry, grant));
  }
}
