/**
 * One account's entries outside of calls: credits, debits and refunds, each in one transaction under the account's
 * lock.
 */

import { GatewayError } from '../../../core/contract/errors.ts';
import type { Orm } from '../../common/domain/database.ts';
import { formatUsd, type Money, money } from '../../common/domain/money.ts';
import { type PlacedAllocation, remainingIn } from '../grants/allocations.ts';
import { allocate, type GrantBalance } from '../grants/balances.ts';
import { creditKind } from '../grants/credit-rows.ts';
import type { PoolState } from '../grants/funds.ts';
import { momentOf } from '../grants/term-rows.ts';
import { lockBalances } from './batch.ts';
import { type EntryRow, type EntryRows, type Grant, leasedOf, SqlEntryRows } from './entry-rows.ts';

/** The largest single credit: it keeps balances far from the limits of a `bigint`. */
const largestAmount = 1_000_000_000_000_000_000n;

export interface Entry {
  readonly reason: string;
  /** Identifies the event; an entry is made once per reference. */
  readonly reference: string;
  readonly detail?: object;
}

/** The account, the time, and its funds when the transaction begins. */
export interface EntriesOf {
  readonly accountId: string;
  /** Wall-clock milliseconds of all entries. */
  readonly at: number;
  readonly balance: Money;
  /** Set aside by authorizations. */
  readonly held: Money;
  /** The leased part of the balance, which processes may spend at any time: it cannot be debited. */
  readonly leased: Money;
  /** As much of that as processes can return that live. */
  readonly byLiving: Money;
  /** As much of it as calls hold. */
  readonly open: Money;
}

/** A movement of an account's money outside of calls. */
export interface Movement {
  readonly reference: string;
  readonly account: string;
  readonly kind: string;
  /** nano-USD; below zero: taken from the account. */
  readonly amount: string;
  readonly reason: string;
  /** The request that a refund belongs to. */
  readonly of?: string | undefined;
  /** When a credit expires, in wall-clock milliseconds. */
  readonly expiresAt?: number | undefined;
  /** Wall-clock milliseconds. */
  readonly at: number;
}

const noPool: PoolState = { grants: [], spent: new Map() };

export class Entries {
  readonly runner: Orm;
  readonly schema: string;
  readonly accountId: string;
  /** Wall-clock milliseconds of all entries but expiries. */
  readonly at: number;
  /** False: running calls may need the balance; only entries that were made before are accepted. */
  mayTake = true;
  /** The ledger has every charge that expired grants must pay, so that their remainder may be booked as expired. */
  isComplete = false;
  /**
   * Called with the price before a renewal that the account can pay; throws if the price must first be protected
   * from calls.
   */
  onSale: (price: Money) => void = () => {};
  /** Movements that nothing but a person or another service can bring again. */
  readonly moved: Movement[] = [];
  /** The account's rows in this transaction. */
  readonly tables: EntryRows;
  #balance: Money;
  #rows = 0;
  readonly #held: Money;
  #leased: Money;
  readonly #byLiving: Money;
  #open: Money;

  /** `runner` runs statements inside the transaction of the account's `rows`. */
  constructor(runner: Orm, schema: string, rows: EntryRows, given: EntriesOf) {
    const { accountId, at, balance, held, leased, byLiving, open } = given;
    this.runner = runner;
    this.schema = schema;
    this.tables = rows;
    this.accountId = accountId;
    this.at = at;
    this.#balance = balance;
    this.#held = held;
    this.#leased = leased;
    this.#byLiving = byLiving;
    this.#open = open;
  }

  /** Runs `work` in one transaction with the account's lock; `now` is this node's clock. */
  static transact<T>(orm: Orm, schema: string, accountId: string, now: number, work: (entries: Entries) => Promise<T>) {
    return orm.transaction(async (transaction) => {
      const { balance, held } = (await lockBalances(transaction, schema, [accountId])).get(accountId)!;
      const leases = await leasedOf(transaction, schema, accountId);
      const at = await momentOf(transaction, schema, accountId, now);
      const rows = new SqlEntryRows(transaction, schema, accountId);
      return work(
        new Entries(transaction as unknown as Orm, schema, rows, { accountId, at, balance, held, ...leases }),
      );
    });
  }

  get balance(): Money {
    return this.#balance;
  }

  /** The leased part of the balance, which processes may spend at any time: it cannot be debited. */
  get leased(): Money {
    return this.#leased;
  }

  /** The part of `leased` that calls hold. */
  get open(): Money {
    return this.#open;
  }

  /** The part of `leased` that neither calls hold nor living processes can return: their processes do not answer. */
  get blocked(): Money {
    return money(this.#leased - this.#open - this.#byLiving);
  }

  /** Where nothing is leased, what this process's calls hold is as good as leased. */
  hold(open: Money): void {
    this.#leased = money(this.#leased + open);
    this.#open = money(this.#open + open);
  }

  /** Whether `amount` may be lacking only because processes that live have leased it. */
  mayBeReturned(amount: Money): boolean {
    return this.#byLiving > 0n && this.#balance - this.#leased + this.#byLiving >= amount;
  }

  /** Ledger rows made so far, and grants that were ended early. */
  get rows(): number {
    return this.#rows;
  }

  /** Set aside by authorizations. */
  get held(): Money {
    return this.#held;
  }

  async pool(): Promise<PoolState> {
    return (await this.tables.pool(this.at)) ?? noPool;
  }

  /** The non-expiring money, with authorizations; negative when overdrawn. */
  async wallet(): Promise<Money> {
    return money(this.#balance + this.#held - remainingIn((await this.pool()).grants));
  }

  /** Adds a grant. False: its reference was credited before; with another account or amount that is a conflict. */
  async credit(amount: Money, grant: Grant): Promise<boolean> {
    const grantId = await this.insertGrant(amount, grant);
    if (grantId === undefined) return false;
    const overdrawn = -(await this.wallet());
    const { kind, reason, reference } = grant;
    const detail = { kind, reason, reference };
    const seq = await this.post({ kind: 'CREDIT', amount, funding: -amount, grantId, detail });
    const moved = this.moved.pop();
    if (moved !== undefined) this.moved.push({ ...moved, expiresAt: grant.expiresAt });
    await this.#openGrant(grantId, amount, grant, seq, overdrawn);
    return true;
  }

  /** Adds only the grant's row; undefined when its reference is known. */
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

  /** An expiring grant first covers the overdraft, which the new money has paid. */
  async #openGrant(grantId: string, amount: Money, grant: Grant, seq: string, overdrawn: bigint): Promise<void> {
    const { expiresAt, windows } = grant;
    if (expiresAt === undefined) return;
    await this.tables.openGrant(grantId, amount, expiresAt);
    const repaid = overdrawn < amount ? overdrawn : amount;
    if (repaid <= 0n) return;
    const isCredit = grant.kind === creditKind;
    const grantBalance: GrantBalance = { grantId, remaining: amount, expiresAt, windows, isCredit };
    await this.tables.allocate([
      { grant: grantBalance, amount: money(repaid), accountId: this.accountId, seq, heldAt: this.at },
    ]);
  }

  /**
   * Debits money in the order in which calls spend it: earliest expiry first. 402 when the balance is too low.
   * False: the reference is known.
   */
  async debit(amount: Money, { reason, reference, detail }: Entry): Promise<boolean> {
    checkAmount(amount);
    if (await this.isKnown('DEBIT', -amount, reference)) return false;
    const { grants: grantBalances, spent } = await this.pool();
    const expired = remainingIn(grantBalances.filter(({ expiresAt }) => expiresAt <= this.at));
    if (!this.mayTake || this.#balance - this.#leased - expired < amount)
      throw notThere('The balance does not cover this debit.');
    const wallet = this.#balance + this.#held - remainingIn(grantBalances);
    const seq = await this.post({
      kind: 'DEBIT',
      amount: -amount,
      funding: amount,
      reference,
      detail: { reason, ...detail },
    });
    const allocations = allocate(grantBalances, spent, wallet, amount, this.at);
    const placed = allocations.map(
      (each): PlacedAllocation => ({
        ...each,
        accountId: this.accountId,
        seq,
        heldAt: this.at,
      }),
    );
    await this.tables.allocate(placed);
    return true;
  }

  /**
   * Sells a plan to the account, paid with non-expiring money only, because one plan's grant must not buy the next.
   * 402 when that is too little; false: the reference is known.
   */
  async purchase(price: Money, { reason, reference, detail }: Entry): Promise<boolean> {
    if (price < 0n || price > largestAmount) throw new RangeError(`${price} is no price`);
    if (await this.isKnown('PURCHASE', -price, reference)) return false;
    // Running calls may still need their holds.
    const free = (await this.wallet()) - this.#held - this.#leased;
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

  /** Debits the remainder of a grant that has expired; the row is dated at the grant's end. */
  async expire({ grantId, remaining, expiresAt }: GrantBalance): Promise<void> {
    const detail = { reason: 'what was left of a grant expired', grant: grantId };
    await this.post({ kind: 'EXPIRE', amount: -remaining, funding: remaining, grantId, detail, at: expiresAt });
    await this.tables.emptyGrant(grantId);
  }

  /** Ends an expiring grant before its time. */
  async endEarly(grantId: string, expiresAt: number): Promise<void> {
    this.#rows += 1;
    await this.tables.credit.end(grantId, expiresAt);
  }

  /** Adds a row and updates balance and totals. Resolves with the row's number. */
  post(row: EntryRow): Promise<string> {
    this.#balance = money(this.#balance + row.amount);
    this.#rows += 1;
    const moved = movementOf(row, this);
    if (moved !== undefined) this.moved.push(moved);
    return this.tables.post(row, this.#balance, this.at);
  }

  /** Whether an entry with this reference exists; with other content that is a conflict. */
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

function usedReference(): GatewayError {
  return new GatewayError('conflict', 'This reference was used before, with another account or amount.', {
    field: 'reference',
    code: 'reference_used',
    shouldRetry: false,
  });
}

/** Undefined for movements that come again by themselves: what plans and credit lines bring, what is paid of these, and expiries. */
function movementOf({ kind, amount, reference, detail }: EntryRow, { accountId, at }: Entries): Movement | undefined {
  const named = detail as Partial<Record<'kind' | 'reason' | 'reference' | 'of', string>>;
  const known = reference ?? named.reference;
  const isGiven = named.kind === creditKind || (kind === 'CREDIT' && named.kind === 'plan');
  if (known === undefined || kind === 'EXPIRE' || isGiven) return undefined;
  const { reason = '', of } = named;
  return {
    reference: known,
    account: accountId,
    kind,
    amount: amount.toString(),
    reason,
    ...(of === undefined ? {} : { of }),
    at,
  };
}
