/** One account's entries beside its calls: money in, out and back, each in one transaction under the account's lock. */
import { sql } from 'drizzle-orm';
import { GatewayError } from '../../core/errors.ts';
import { formatUsd, type Money, money } from '../../core/money.ts';
import type { Orm } from '../../core/vocabulary.ts';
import { lockBalances } from './batch.ts';
import { type PlacedDraw, remainingIn, saveDraws } from './draws.ts';
import { encodeLimits, type PoolState, readPools } from './funds.ts';
import { draw, type Pot, type WindowsOf } from './pots.ts';
import { jsonOf, rowsOf, tablesOf } from './sql.ts';

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

interface Row {
  readonly kind: 'CREDIT' | 'DEBIT' | 'PURCHASE' | 'REFUND' | 'PAYOUT' | 'LAPSE';
  readonly amount: bigint;
  readonly revenue?: bigint;
  readonly funding?: bigint;
  readonly grantId?: string;
  readonly reference?: string;
  readonly detail: object;
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
  #balance: Money;
  #rows = 0;
  readonly #held: Money;

  private constructor(runner: Orm, schema: string, accountId: string, at: number, balance: Money, held: Money) {
    this.runner = runner;
    this.schema = schema;
    this.accountId = accountId;
    this.at = at;
    this.#balance = balance;
    this.#held = held;
  }

  /** Runs `work` in one transaction that holds the account's lock. */
  static transact<T>(orm: Orm, schema: string, accountId: string, at: number, work: (entries: Entries) => Promise<T>) {
    return orm.transaction(async (transaction) => {
      const { balance, held } = (await lockBalances(transaction, schema, [accountId])).get(accountId)!;
      return work(new Entries(transaction as unknown as Orm, schema, accountId, at, balance, held));
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
    return (await readPools(this.runner, this.schema, [this.accountId], [this.at])).get(this.accountId) ?? noPool;
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
    const { kind, reason, reference, expiresAt, windows } = grant;
    checkAmount(amount);
    if (expiresAt !== undefined && expiresAt <= this.at) {
      throw new GatewayError('invalid_request', 'A grant cannot expire before it is given.', { field: 'expires' });
    }
    const [granted] = await rowsOf<{ id: string }>(
      this.runner,
      sql`insert into ${this.#table('grants')}
            (account_id, kind, amount, reason, reference, created_at, expires_at, source, windows, anchor)
          values (${this.accountId}, ${kind}, ${amount.toString()}::bigint, ${reason}, ${reference}, ${time(this.at)},
            ${expiresAt === undefined ? null : time(expiresAt)}::timestamptz, ${windows?.source ?? null}::text,
            ${windows === undefined ? null : encodeLimits(windows.limits)}::text::json,
            ${windows === undefined ? null : time(windows.anchor)}::timestamptz)
          on conflict (reference) do nothing returning id::text as id`,
    );
    if (granted === undefined) await this.#checkSameGrant(amount, reference);
    return granted?.id;
  }

  /** A grant that expires first makes good what was overdrawn: money that came in has paid that. */
  async #openPot(grantId: string, amount: Money, grant: Grant, seq: string, overdrawn: bigint): Promise<void> {
    const { expiresAt, windows } = grant;
    if (expiresAt === undefined) return;
    await this.runner.execute(
      sql`insert into ${this.#table('pots')} (grant_id, account_id, remaining, expires_at)
          values (${grantId}::uuid, ${this.accountId}, ${amount.toString()}::bigint, ${time(expiresAt)})`,
    );
    const repaid = overdrawn < amount ? overdrawn : amount;
    if (repaid <= 0n) return;
    const pot: Pot = { grantId, remaining: amount, expiresAt, windows };
    await saveDraws(this.runner, this.schema, [{ pot, amount: money(repaid), seq, heldAt: this.at }]);
  }

  /** Takes money as a call would: from what expires first. 402 when that much is not there. false: the reference is known. */
  async debit(amount: Money, { reason, reference, detail }: Entry): Promise<boolean> {
    checkAmount(amount);
    if (await this.isKnown('DEBIT', -amount, reference)) return false;
    const { pots, spent } = await this.pool();
    const expired = remainingIn(pots.filter(({ expiresAt }) => expiresAt <= this.at));
    if (!this.mayTake || this.#balance - expired < amount) throw notThere('The balance does not cover this debit.');
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
    await saveDraws(this.runner, this.schema, placed);
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
    const free = (await this.wallet()) - this.#held;
    if (price > 0n && (!this.mayTake || free < price)) {
      const usd = formatUsd(free > 0n ? free : 0n);
      throw notThere(`This costs ${formatUsd(price)} USD; of the balance, ${usd} USD can be used for purchases.`);
    }
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
    await this.runner.execute(sql`update ${this.#table('pots')} set remaining = 0 where grant_id = ${grantId}::uuid`);
  }

  /** Writes a row and moves balance and totals with it. Resolves with the row's number. */
  async post({ kind, amount, revenue = 0n, funding = 0n, grantId, reference, detail }: Row): Promise<string> {
    this.#balance = money(this.#balance + amount);
    this.#rows += 1;
    const [row] = await rowsOf<{ seq: string }>(
      this.runner,
      sql`with moved as (
            update ${this.#table('balances')} set balance = ${this.#balance.toString()}::bigint where account_id = ${this.accountId}
          ), summed as (
            update ${this.#table('totals')} set available = available + ${amount.toString()}::bigint,
              revenue = revenue + ${revenue.toString()}::bigint, funding = funding + ${funding.toString()}::bigint
          )
          insert into ${this.#table('ledger')}
            (account_id, kind, grant_id, reference, amount, revenue, funding, balance_after, detail, created_at)
          values (${this.accountId}, ${kind}, ${grantId ?? null}::uuid, ${reference ?? null}::text,
            ${amount.toString()}::bigint, ${revenue.toString()}::bigint, ${funding.toString()}::bigint,
            ${this.#balance.toString()}::bigint, ${jsonOf(detail)}, ${time(this.at)})
          returning seq::text as seq`,
    );
    return row!.seq;
  }

  /** Whether an entry of this reference was made; as another one, that is a conflict. */
  async isKnown(kind: Row['kind'], amount: bigint, reference: string): Promise<boolean> {
    const [known] = await rowsOf<{ account_id: string; kind: string; amount: string }>(
      this.runner,
      sql`select account_id, kind, amount::text as amount from ${this.#table('ledger')} where reference = ${reference}`,
    );
    if (known === undefined) return false;
    if (known.account_id === this.accountId && known.kind === kind && known.amount === amount.toString()) return true;
    throw usedReference();
  }

  async knowsGrant(reference: string): Promise<boolean> {
    const found = await rowsOf(this.runner, sql`select from ${this.#table('grants')} where reference = ${reference}`);
    return found.length > 0;
  }

  async #checkSameGrant(amount: Money, reference: string): Promise<void> {
    const [known] = await rowsOf<{ account_id: string; amount: string }>(
      this.runner,
      sql`select account_id, amount::text as amount from ${this.#table('grants')} where reference = ${reference}`,
    );
    if (known?.account_id !== this.accountId || known.amount !== amount.toString()) throw usedReference();
  }

  #table(name: string) {
    return tablesOf(this.schema)(name);
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

export function time(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
