/** One account's entries beside its calls: money in, out and back, each in one transaction under the account's lock. */
import { GatewayError } from '../../core/errors.ts';
import { formatUsd, type Money, money } from '../../core/money.ts';
import type { Orm } from '../../core/vocabulary.ts';
import { lockBalances } from './batch.ts';
import { type PlacedDraw, remainingIn } from './draws.ts';
import { type EntryRow, type EntryRows, SqlEntryRows } from './entry-rows.ts';
import type { PoolState } from './funds.ts';
import { leasedOf } from './leases/store.ts';
import { draw, type Pot, type WindowsOf } from './pots.ts';
import { momentOf } from './term-rows.ts';

/** No account is credited more than this at once: balances stay far from the end of a `bigint`. */
const largestAmount = 1_000_000_000_000_000_000n;

export interface Grant {
  readonly kind: string;
  readonly reason: string;
  /** Names the event that the money came by. */
  readonly reference: string;
  /** Wall-clock milliseconds; absent: it never expires. */
  readonly expiresAt?: number | undefined;
  readonly windows?: WindowsOf | undefined;
}

export interface Entry {
  readonly reason: string;
  /** Names the event; an entry is made once for each reference. */
  readonly reference: string;
  readonly detail?: object;
}

/** Whose entries, when, and what the account has as its transaction begins. */
export interface EntriesOf {
  readonly accountId: string;
  /** Wall-clock milliseconds of all entries. */
  readonly at: number;
  readonly balance: Money;
  /** Set aside for running calls, as far as the database knows. */
  readonly held: Money;
  /** What processes may spend of the balance without asking: it cannot be taken. */
  readonly leased: Money;
}

const noPool: PoolState = { pots: [], spent: new Map() };

export class Entries {
  readonly runner: Orm;
  readonly schema: string;
  readonly accountId: string;
  /** Wall-clock milliseconds of all entries. */
  readonly at: number;
  /** false: running calls may need what is there; only entries that were made before are not refused. */
  mayTake = true;
  /** The ledger lacks no charge that what has expired must pay: so the rest of that may be taken off. */
  isComplete = false;
  /** Told of what a sale is about to take, which the account has; throws where calls must be kept from that first. */
  onSale: (price: Money) => void = () => {};
  /** The account's rows, as this transaction reads and writes them. */
  readonly tables: EntryRows;
  #balance: Money;
  #rows = 0;
  readonly #held: Money;
  /** What processes may spend of the balance without asking: it cannot be taken. */
  readonly leased: Money;

  /** `runner` runs statements inside the transaction whose rows of this account are `rows`. */
  constructor(runner: Orm, schema: string, rows: EntryRows, { accountId, at, balance, held, leased }: EntriesOf) {
    this.runner = runner;
    this.schema = schema;
    this.tables = rows;
    this.accountId = accountId;
    this.at = at;
    this.#balance = balance;
    this.#held = held;
    this.leased = leased;
  }

  /** Runs `work` in one transaction that holds the account's lock; `now` is what this node's clock says. */
  static transact<T>(orm: Orm, schema: string, accountId: string, now: number, work: (entries: Entries) => Promise<T>) {
    return orm.transaction(async (transaction) => {
      const { balance, held } = (await lockBalances(transaction, schema, [accountId])).get(accountId)!;
      const { leased } = await leasedOf(transaction, schema, accountId);
      const at = await momentOf(transaction, schema, accountId, now);
      const rows = new SqlEntryRows(transaction, schema, accountId);
      return work(new Entries(transaction as unknown as Orm, schema, rows, { accountId, at, balance, held, leased }));
    });
  }

  get balance(): Money {
    return this.#balance;
  }

  /** Ledger rows made so far. */
  get rows(): number {
    return this.#rows;
  }

  /** Set aside for running calls, as far as the database knows. */
  get held(): Money {
    return this.#held;
  }

  async pool(): Promise<PoolState> {
    return (await this.tables.pool(this.at)) ?? noPool;
  }

  /** The money that does not expire, as if no call were running; below zero by what was overdrawn. */
  async wallet(): Promise<Money> {
    return money(this.#balance + this.#held - remainingIn((await this.pool()).pots));
  }

  /** Adds a grant. false: its reference was credited before; with another account or amount that is a conflict. */
  async credit(amount: Money, grant: Grant): Promise<boolean> {
    const grantId = await this.insertGrant(amount, grant);
    if (grantId === undefined) return false;
    const overdrawn = -(await this.wallet());
    const { kind, reason, reference } = grant;
    const detail = { kind, reason, reference };
    const seq = await this.post({ kind: 'CREDIT', amount, funding: -amount, grantId, detail });
    await this.#openPot(grantId, amount, grant, seq, overdrawn);
    return true;
  }

  /** The grant's row alone; undefined when its reference is known. */
  async insertGrant(amount: Money, grant: Grant): Promise<string | undefined> {
    const { reference, expiresAt } = grant;
    checkAmount(amount);
    if (expiresAt !== undefined && expiresAt <= this.at) {
      throw new GatewayError('invalid_request', 'A grant cannot expire before it is given.', { field: 'expires' });
    }
    const grantId = await this.tables.addGrant(amount, grant, this.at);
    if (grantId === undefined) await this.#checkSameGrant(amount, reference);
    return grantId;
  }

  /** A grant that expires first makes good what was overdrawn: money that came in has paid that. */
  async #openPot(grantId: string, amount: Money, grant: Grant, seq: string, overdrawn: bigint): Promise<void> {
    const { expiresAt, windows } = grant;
    if (expiresAt === undefined) return;
    await this.tables.openPot(grantId, amount, expiresAt);
    const repaid = overdrawn < amount ? overdrawn : amount;
    if (repaid <= 0n) return;
    const pot: Pot = { grantId, remaining: amount, expiresAt, windows };
    await this.tables.draw([{ pot, amount: money(repaid), seq, heldAt: this.at }]);
  }

  /** Takes money as a call would: from what expires first. 402 when that much is not there. false: the reference is known. */
  async debit(amount: Money, { reason, reference, detail }: Entry): Promise<boolean> {
    checkAmount(amount);
    if (await this.isKnown('DEBIT', -amount, reference)) return false;
    const { pots, spent } = await this.pool();
    const expired = remainingIn(pots.filter(({ expiresAt }) => expiresAt <= this.at));
    if (!this.mayTake || this.#balance - this.leased - expired < amount)
      throw notThere('The balance does not cover this debit.');
    const wallet = this.#balance + this.#held - remainingIn(pots);
    const seq = await this.post({
      kind: 'DEBIT',
      amount: -amount,
      funding: amount,
      reference,
      detail: { reason, ...detail },
    });
    const draws = draw(pots, spent, wallet, amount, this.at);
    const placed = draws.map((each): PlacedDraw => ({ ...each, seq, heldAt: this.at }));
    await this.tables.draw(placed);
    return true;
  }

  /**
   * Sells something to the account: paid with money that does not expire alone, for what a plan brings must not buy the
   * next one. 402 when that does not cover it; false: the reference is known.
   */
  async purchase(price: Money, { reason, reference, detail }: Entry): Promise<boolean> {
    if (price < 0n || price > largestAmount) throw new RangeError(`${price} is no price`);
    if (await this.isKnown('PURCHASE', -price, reference)) return false;
    // Running calls may still need what is set aside for them.
    const free = (await this.wallet()) - this.#held - this.leased;
    if (price > 0n && (!this.mayTake || free < price)) {
      const usd = formatUsd(free > 0n ? free : 0n);
      throw notThere(`This costs ${formatUsd(price)} USD; of the balance, ${usd} USD can be used for purchases.`);
    }
    this.onSale(price);
    await this.post({
      kind: 'PURCHASE',
      amount: -price,
      revenue: price,
      reference,
      detail: { reason, ...detail },
    });
    return true;
  }

  /** Takes what is left of a grant. */
  async lapse({ grantId, remaining }: Pot): Promise<void> {
    const detail = { reason: 'what was left of a grant expired', grant: grantId };
    await this.post({ kind: 'LAPSE', amount: -remaining, funding: remaining, grantId, detail });
    await this.tables.emptyPot(grantId);
  }

  /** Writes a row and moves balance and totals with it. Resolves with the row's number. */
  post(row: EntryRow): Promise<string> {
    this.#balance = money(this.#balance + row.amount);
    this.#rows += 1;
    return this.tables.post(row, this.#balance, this.at);
  }

  /** Whether an entry of this reference was made; as another one, that is a conflict. */
  async isKnown(kind: EntryRow['kind'], amount: bigint, reference: string): Promise<boolean> {
    const known = await this.tables.entryOf(reference);
    if (known === undefined) return false;
    if (known.accountId === this.accountId && known.kind === kind && known.amount === amount) return true;
    throw usedReference();
  }

  async knowsGrant(reference: string): Promise<boolean> {
    return (await this.tables.grantOf(reference)) !== undefined;
  }

  async #checkSameGrant(amount: Money, reference: string): Promise<void> {
    const known = await this.tables.grantOf(reference);
    if (known?.accountId !== this.accountId || known.amount !== amount) throw usedReference();
  }
}

export function checkAmount(amount: Money): void {
  if (amount > 0n && amount <= largestAmount) return;
  throw new GatewayError('invalid_request', 'The amount must be above 0 and at most 1,000,000,000 USD.', {
    field: 'amount',
  });
}

export function notThere(message: string): GatewayError {
  return new GatewayError('insufficient_balance', message, { code: 'insufficient_balance', shouldRetry: false });
}

export function usedReference(): GatewayError {
  return new GatewayError('conflict', 'This reference was used before, with another account or amount.', {
    field: 'reference',
    code: 'reference_used',
    shouldRetry: false,
  });
}
