/** One account's rows inside one transaction of the database in memory, which can be taken back. */
import type { Money } from '../../core/money.ts';
import type { Grant } from '../../plugins/billing/entries.ts';
import type { EntryRow, EntryRows, KnownEntry } from '../../plugins/billing/entry-rows.ts';
import type { PoolState } from '../../plugins/billing/funds.ts';
import type { MemoryLedger, Row, StoredGrant } from './memory-ledger.ts';

export class MemoryEntryRows implements EntryRows {
  readonly posted: { row: Row; grant: StoredGrant | undefined }[] = [];
  readonly undo: (() => void)[] = [];
  readonly #ledger: MemoryLedger;
  readonly #account: string;

  constructor(ledger: MemoryLedger, account: string) {
    this.#ledger = ledger;
    this.#account = account;
  }

  async pool(at: number): Promise<PoolState | undefined> {
    return this.#ledger.pots.pools([this.#account], [at]).get(this.#account);
  }

  async addGrant(amount: Money, grant: Grant): Promise<string | undefined> {
    const { grants, grantsById } = this.#ledger;
    if (grants.has(grant.reference)) return undefined;
    const id = this.#ledger.newGrantId();
    const stored = { ...grant, id, account: this.#account, amount };
    grants.set(grant.reference, stored);
    grantsById.set(id, stored);
    this.undo.push(() => {
      grants.delete(grant.reference);
      grantsById.delete(id);
    });
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
    this.posted.push({ row, grant: grantId === undefined ? undefined : this.#ledger.grantsById.get(grantId) });
    this.undo.push(() => this.#ledger.unpost(row));
    return String(row.seq);
  }

  async entryOf(reference: string): Promise<KnownEntry | undefined> {
    const row = this.#ledger.entryOf(reference);
    return row === undefined ? undefined : { accountId: row.account, kind: row.kind, amount: row.amount };
  }
}
