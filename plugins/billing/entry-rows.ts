/** One account's rows inside one transaction, as its entries beside the calls read and write them. */
import { sql } from 'drizzle-orm';
import type { Money } from '../../core/money.ts';
import { type DepositRows, sqlDepositRows } from './deposit-rows.ts';
import { type PlacedDraw, saveDraws } from './draws.ts';
import type { Grant } from './entries.ts';
import { encodeLimits, type PoolState, readPools } from './funds.ts';
import { type GrantRow, readLasting } from './grant-rows.ts';
import { type RefundRows, sqlRefundRows } from './refund-rows.ts';
import { jsonOf, type Runner, rowsOf, tablesOf, time } from './sql.ts';
import { sqlTermRows, type TermRows } from './term-rows.ts';

/** A ledger row of no call. */
export interface EntryRow {
  readonly kind: 'CREDIT' | 'DEBIT' | 'PURCHASE' | 'REFUND' | 'PAYOUT' | 'LAPSE';
  readonly amount: bigint;
  readonly revenue?: bigint;
  readonly funding?: bigint;
  readonly grantId?: string;
  readonly reference?: string;
  readonly detail: object;
}

/** An entry or grant that has its reference already. */
export interface KnownEntry {
  readonly accountId: string;
  /** A row's kind; of a grant its own. */
  readonly kind: string;
  readonly amount: bigint;
}

export interface EntryRows {
  /** The grants of which something is left, as they stand at wall-clock milliseconds `at`. */
  pool(at: number): Promise<PoolState | undefined>;
  /** Adds a grant. undefined: its reference is known. */
  addGrant(amount: Money, grant: Grant, at: number): Promise<string | undefined>;
  grantOf(reference: string): Promise<KnownEntry | undefined>;
  openPot(grantId: string, amount: Money, expiresAt: number): Promise<void>;
  emptyPot(grantId: string): Promise<void>;
  /** Writes draws down and takes them out of their pots. */
  draw(draws: readonly PlacedDraw[]): Promise<void>;
  /** Writes a row; `balance` is the account's afterwards. Moves balance and totals with it. Resolves with its number. */
  post(row: EntryRow, balance: Money, at: number): Promise<string>;
  entryOf(reference: string): Promise<KnownEntry | undefined>;
  /** The grants that do not expire, newest first. */
  lasting(): Promise<GrantRow[]>;
  readonly terms: TermRows;
  readonly refunds: RefundRows;
  readonly deposits: DepositRows;
}

/** The rows in a database that speaks SQL. */
export class SqlEntryRows implements EntryRows {
  readonly #runner: Runner;
  readonly #schema: string;
  readonly #accountId: string;
  readonly terms: TermRows;
  readonly refunds: RefundRows;
  readonly deposits: DepositRows;

  constructor(runner: Runner, schema: string, accountId: string) {
    this.#runner = runner;
    this.#schema = schema;
    this.#accountId = accountId;
    this.terms = sqlTermRows(runner, schema, accountId);
    this.refunds = sqlRefundRows(runner, schema, accountId);
    this.deposits = sqlDepositRows(runner, schema, accountId);
  }

  async pool(at: number): Promise<PoolState | undefined> {
    return (await readPools(this.#runner, this.#schema, [this.#accountId], [at])).get(this.#accountId);
  }

  async addGrant(amount: Money, grant: Grant, at: number): Promise<string | undefined> {
    const { kind, reason, reference, expiresAt, windows } = grant;
    const [granted] = await rowsOf<{ id: string }>(
      this.#runner,
      sql`insert into ${this.#table('grants')}
            (account_id, kind, amount, reason, reference, created_at, expires_at, source, windows, anchor)
          values (${this.#accountId}, ${kind}, ${amount.toString()}::bigint, ${reason}, ${reference}, ${time(at)},
            ${expiresAt === undefined ? null : time(expiresAt)}::timestamptz, ${windows?.source ?? null}::text,
            ${windows === undefined ? null : encodeLimits(windows.limits)}::text::json,
            ${windows === undefined ? null : time(windows.anchor)}::timestamptz)
          on conflict (reference) do nothing returning id::text as id`,
    );
    return granted?.id;
  }

  async grantOf(reference: string): Promise<KnownEntry | undefined> {
    const [row] = await rowsOf<StoredEntry>(
      this.#runner,
      sql`select account_id, kind, amount::text as amount from ${this.#table('grants')} where reference = ${reference}`,
    );
    return row === undefined ? undefined : knownOf(row);
  }

  async openPot(grantId: string, amount: Money, expiresAt: number): Promise<void> {
    await this.#runner.execute(
      sql`insert into ${this.#table('pots')} (grant_id, account_id, remaining, expires_at)
          values (${grantId}::uuid, ${this.#accountId}, ${amount.toString()}::bigint, ${time(expiresAt)})`,
    );
  }

  async emptyPot(grantId: string): Promise<void> {
    await this.#runner.execute(sql`update ${this.#table('pots')} set remaining = 0 where grant_id = ${grantId}::uuid`);
  }

  async draw(draws: readonly PlacedDraw[]): Promise<void> {
    await saveDraws(this.#runner, this.#schema, draws);
  }

  async post(row: EntryRow, balance: Money, at: number): Promise<string> {
    const { kind, amount, revenue = 0n, funding = 0n, grantId, reference, detail } = row;
    const [posted] = await rowsOf<{ seq: string }>(
      this.#runner,
      sql`with moved as (
            update ${this.#table('balances')} set balance = ${balance.toString()}::bigint where account_id = ${this.#accountId}
          ), summed as (
            update ${this.#table('totals')} set available = available + ${amount.toString()}::bigint,
              revenue = revenue + ${revenue.toString()}::bigint, funding = funding + ${funding.toString()}::bigint
          )
          insert into ${this.#table('ledger')}
            (account_id, kind, grant_id, reference, amount, revenue, funding, balance_after, detail, created_at)
          values (${this.#accountId}, ${kind}, ${grantId ?? null}::uuid, ${reference ?? null}::text,
            ${amount.toString()}::bigint, ${revenue.toString()}::bigint, ${funding.toString()}::bigint,
            ${balance.toString()}::bigint, ${jsonOf(detail)}, ${time(at)})
          returning seq::text as seq`,
    );
    return posted!.seq;
  }

  async entryOf(reference: string): Promise<KnownEntry | undefined> {
    const [row] = await rowsOf<StoredEntry>(
      this.#runner,
      sql`select account_id, kind, amount::text as amount from ${this.#table('ledger')} where reference = ${reference}`,
    );
    return row === undefined ? undefined : knownOf(row);
  }

  lasting(): Promise<GrantRow[]> {
    return readLasting(this.#runner, this.#schema, this.#accountId);
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
