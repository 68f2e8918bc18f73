/** Reads and writes one account's rows for entries outside of calls, inside one transaction. */

import { type SQL, sql } from 'drizzle-orm';
import { type Money, money } from '../../common/domain/money.ts';
import { type PlacedAllocation, saveAllocations } from '../grants/allocations.ts';
import type { WindowsOf } from '../grants/balances.ts';
import { type CreditRows, sqlCreditRows } from '../grants/credit-rows.ts';
import { encodeLimits, type PoolState, readPools } from '../grants/funds.ts';
import { type RefundRows, sqlRefundRows } from '../grants/refund-rows.ts';
import { type GrantRow, readNonExpiring } from '../grants/rows.ts';
import { sqlTermRows, type TermRows } from '../grants/term-rows.ts';
import { jsonOf, type Runner, rowsOf, tablesOf, time } from '../model/sql.ts';
import { type AuthorizationRows, sqlAuthorizationRows } from './authorization-rows.ts';

/** A ledger row that belongs to no call. */
export interface EntryRow {
  readonly kind: 'CREDIT' | 'DEBIT' | 'PURCHASE' | 'REFUND' | 'PAYOUT' | 'EXPIRE';
  readonly amount: bigint;
  readonly revenue?: bigint;
  readonly funding?: bigint;
  readonly grantId?: string;
  readonly reference?: string;
  /** When the money moved, in wall-clock milliseconds; absent: now. */
  readonly at?: number;
  readonly detail: object;
}

/** An existing entry or grant with the reference. */
export interface KnownEntry {
  readonly accountId: string;
  /** The row's kind; for a grant its own. */
  readonly kind: string;
  readonly amount: bigint;
}

export interface EntryRows {
  /** The grants with a remaining amount at wall-clock milliseconds `at`. */
  pool(at: number): Promise<PoolState | undefined>;
  /** Adds a grant. Undefined: its reference is known. */
  addGrant(amount: Money, grant: Grant, at: number): Promise<string | undefined>;
  grantOf(reference: string): Promise<KnownEntry | undefined>;
  openGrant(grantId: string, amount: Money, expiresAt: number): Promise<void>;
  emptyGrant(grantId: string): Promise<void>;
  /** Stores allocations and subtracts them from their grants. */
  allocate(allocations: readonly PlacedAllocation[]): Promise<void>;
  /** Adds a row; `balance` is the account's afterwards, without what authorizations set aside. Resolves with the row's number. */
  post(row: EntryRow, balance: Money, now: number): Promise<string>;
  entryOf(reference: string): Promise<KnownEntry | undefined>;
  /** Non-expiring grants, newest first. */
  nonExpiring(): Promise<GrantRow[]>;
  readonly terms: TermRows;
  readonly refunds: RefundRows;
  readonly authorizations: AuthorizationRows;
  readonly credit: CreditRows;
}

/** Entry rows in SQL. */
export class SqlEntryRows implements EntryRows {
  readonly #runner: Runner;
  readonly #schema: string;
  readonly #accountId: string;
  readonly terms: TermRows;
  readonly refunds: RefundRows;
  readonly authorizations: AuthorizationRows;
  readonly credit: CreditRows;

  constructor(runner: Runner, schema: string, accountId: string) {
    this.#runner = runner;
    this.#schema = schema;
    this.#accountId = accountId;
    this.terms = sqlTermRows(runner, schema, accountId);
    this.refunds = sqlRefundRows(runner, schema, accountId);
    this.authorizations = sqlAuthorizationRows(runner, schema, accountId);
    this.credit = sqlCreditRows(runner, schema, accountId);
  }

  async pool(at: number): Promise<PoolState | undefined> {
    return (await readPools(this.#runner, this.#schema, [this.#accountId], [at])).get(this.#accountId);
  }

  async addGrant(amount: Money, grant: Grant, at: number): Promise<string | undefined> {
    const { kind, reason, reference, expiresAt, windows } = grant;
    const [granted] = await rowsOf<{ id: string }>(
      this.#runner,
      sql`with named as (${this.#naming(reference, true)} on conflict do nothing returning 1)
          insert into ${this.#table('grants')}
            (account_id, kind, amount, reason, reference, created_at, expires_at, source, windows, anchor)
          select ${this.#accountId}, ${kind}, ${amount.toString()}::bigint, ${reason}, ${reference}, ${time(at)}::timestamptz,
            ${expiresAt === undefined ? null : time(expiresAt)}::timestamptz, ${windows?.source ?? null}::text,
            ${windows === undefined ? null : encodeLimits(windows.limits)}::text::json,
            ${windows === undefined ? null : time(windows.anchor)}::timestamptz
          from named returning id::text as id`,
    );
    return granted?.id;
  }

  async grantOf(reference: string): Promise<KnownEntry | undefined> {
    const [row] = await rowsOf<StoredEntry>(
      this.#runner,
      sql`select account_id, kind, amount::text as amount from ${this.#table('grants')}
          where reference = ${reference} and account_id = ${this.#accountNaming(reference, true)}`,
    );
    return row === undefined ? undefined : knownOf(row);
  }

  async openGrant(grantId: string, amount: Money, expiresAt: number): Promise<void> {
    await this.#runner.execute(
      sql`insert into ${this.#table('grant_balances')} (grant_id, account_id, remaining, expires_at)
          values (${grantId}::uuid, ${this.#accountId}, ${amount.toString()}::bigint, ${time(expiresAt)})`,
    );
  }

  async emptyGrant(grantId: string): Promise<void> {
    await this.#runner.execute(sql`update ${this.#table('grant_balances')} set remaining = 0
          where account_id = ${this.#accountId} and grant_id = ${grantId}::uuid`);
  }

  async allocate(allocations: readonly PlacedAllocation[]): Promise<void> {
    await saveAllocations(this.#runner, this.#schema, allocations);
  }

  async post(row: EntryRow, balance: Money, now: number): Promise<string> {
    const { kind, amount, revenue = 0n, funding = 0n, grantId, reference, detail, at = now } = row;
    const [posted] = await rowsOf<{ seq: string }>(
      this.#runner,
      sql`with ${reference === undefined ? sql`` : sql`named as (${this.#naming(reference, false)}),`} moved as (
            update ${this.#table('balances')} set balance = ${balance.toString()}::bigint,
              revenue = revenue + ${revenue.toString()}::bigint, funding = funding + ${funding.toString()}::bigint
            where account_id = ${this.#accountId} returning balance + held as total
          )
          insert into ${this.#table('ledger')}
            (account_id, kind, grant_id, reference, amount, revenue, funding, balance_after, detail, created_at)
          values (${this.#accountId}, ${kind}, ${grantId ?? null}::uuid, ${reference ?? null}::text,
            ${amount.toString()}::bigint, ${revenue.toString()}::bigint, ${funding.toString()}::bigint,
            (select total from moved), ${jsonOf(detail)}, ${time(at)})
          returning seq::text as seq`,
    );
    return posted!.seq;
  }

  async entryOf(reference: string): Promise<KnownEntry | undefined> {
    const [row] = await rowsOf<StoredEntry>(
      this.#runner,
      sql`select account_id, kind, amount::text as amount from ${this.#table('ledger')}
          where reference = ${reference} and account_id = ${this.#accountNaming(reference, false)}`,
    );
    return row === undefined ? undefined : knownOf(row);
  }

  nonExpiring(): Promise<GrantRow[]> {
    return readNonExpiring(this.#runner, this.#schema, this.#accountId);
  }

  #naming(reference: string, isGrant: boolean): SQL {
    return sql`insert into ${this.#table('movement_references')} (reference, is_grant, account_id)
      values (${reference}, ${isGrant}::boolean, ${this.#accountId})`;
  }

  #accountNaming(reference: string, isGrant: boolean): SQL {
    return sql`(select account_id from ${this.#table('movement_references')}
      where reference = ${reference} and is_grant = ${isGrant}::boolean)`;
  }

  #table(name: string) {
    return tablesOf(this.#schema)(name);
  }
}

interface StoredEntry {
  readonly account_id: string;
  readonly kind: string;
  readonly amount: string;
}

function knownOf({ account_id: accountId, kind, amount }: StoredEntry): KnownEntry {
  return { accountId, kind, amount: BigInt(amount) };
}

export interface Grant {
  readonly kind: string;
  readonly reason: string;
  /** Identifies the event that brought the money. */
  readonly reference: string;
  /** Wall-clock milliseconds; absent: it never expires. */
  readonly expiresAt?: number | undefined;
  readonly windows?: WindowsOf | undefined;
}

/** Leased money of an account. */
export interface LeasedMoney {
  readonly leased: Money;
  /** The part that live processes can return: their calls do not hold it. */
  readonly byLiving: Money;
  /** The part that calls hold. */
  readonly open: Money;
}

/** The leases of an account. Without the account's lock the answer may be outdated at once. */
export async function leasedOf(runner: Runner, schema: string, accountId: string): Promise<LeasedMoney> {
  const [row] = await rowsOf<{ leased: string; living: string; open: string }>(
    runner,
    sql`select coalesce(sum(greatest(amount, 0)), 0)::text as leased,
          coalesce(sum(greatest(amount - open, 0)) filter (where expires_at > clock_timestamp()), 0)::text as living,
          coalesce(sum(greatest(least(amount, open), 0)), 0)::text as open
        from ${tablesOf(schema)('leases')} where account_id = ${accountId}`,
  );
  const { leased, living, open } = row!;
  return { leased: money(BigInt(leased)), byLiving: money(BigInt(living)), open: money(BigInt(open)) };
}
