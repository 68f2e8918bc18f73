/** One account's rows inside one transaction of the database in memory, which can be taken back. */
import type { Money } from '../../core/money.ts';
import type { DepositRows } from '../../plugins/billing/deposit-rows.ts';
import type { Grant } from '../../plugins/billing/entries.ts';
import type { EntryRow, EntryRows, KnownEntry } from '../../plugins/billing/entry-rows.ts';
import type { PoolState } from '../../plugins/billing/funds.ts';
import type { GrantRow } from '../../plugins/billing/grant-rows.ts';
import type { RefundRows } from '../../plugins/billing/refund-rows.ts';
import type { TermRows } from '../../plugins/billing/term-rows.ts';
import type { MemoryLedger, Row } from './memory-ledger.ts';
import { makesRow } from './memory-records.ts';
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
    return this.#ledger.pots.pools([this.#account], [at]).get(this.#account);
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

  async openPot(grantId: string, amount: Money, expiresAt: number): Promise<void> {
    const { windows } = this.#ledger.grantsById.get(grantId)!;
    this.undo.push(this.#ledger.pots.open(this.#account, { grantId, remaining: amount, expiresAt, windows }));
  }

  async emptyPot(grantId: string): Promise<void> {
    this.undo.push(this.#ledger.pots.empty(grantId));
  }

  async draw(draws: Parameters<EntryRows['draw']>[0]): Promise<void> {
    this.undo.push(this.#ledger.pots.draw(draws));
  }

  async post(given: EntryRow, balance: Money, at: number): Promise<string> {
    const { kind, amount, revenue = 0n, funding = 0n, grantId, reference } = given;
    const none = { request: undefined, part: 0, held: 0n, absorbed: 0n };
    const row = this.#ledger.post(
      { ...none, account: this.#account, kind, amount, revenue, funding, grantId, reference, at },
      balance,
    );
    this.#tell(row);
    this.undo.push(() => this.#ledger.unpost(row));
    return String(row.seq);
  }

  async entryOf(reference: string): Promise<KnownEntry | undefined> {
    const row = this.#ledger.entryOf(reference);
    return row === undefined ? undefined : { accountId: row.account, kind: row.kind, amount: row.amount };
  }

  async lasting(): Promise<GrantRow[]> {
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

  get refunds(): RefundRows {
    const { usage, refunds } = this.#ledger;
    return {
      chargeOf: async (requestId) => {
        const record = usage.get(requestId);
        if (record?.account !== this.#account) return undefined;
        const given = refunds.get(requestId) ?? [];
        return { cost: BigInt(record.cost), refunded: given.reduce((sum, { amount }) => sum + amount, 0n) };
      },
      add: async (grantId, requestId, amount) =>
        putIn(refunds, requestId, [...(refunds.get(requestId) ?? []), { grantId, amount }], this.undo),
    };
  }

  get deposits(): DepositRows {
    const { deposits } = this.#ledger;
    return {
      post: async (records) => {
        const { rows, undo } = this.#ledger.postRecords(records.filter(makesRow), this.#account);
        for (const row of rows) this.#tell(row);
        this.undo.push(undo);
      },
      add: async (requestId, { held, terms }) => {
        if (deposits.has(requestId)) throw new Error('duplicate key: deposits_pkey');
        putIn(deposits, requestId, { account: this.#account, held, terms }, this.undo);
      },
      find: async (requestId) => {
        const known = deposits.get(requestId);
        return known?.account === this.#account ? { held: known.held, terms: known.terms } : undefined;
      },
      remove: async (requestId) => dropFrom(deposits, requestId, this.undo),
    };
  }

  #tell(row: Row): void {
    const grant = row.grantId === undefined ? undefined : this.#ledger.grantsById.get(row.grantId);
    this.commits.push(() => this.#ledger.onEntry(row, grant));
  }
}
