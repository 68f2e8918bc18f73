/** Money that comes in, once for each reference, and balances and rows as the database tells them. */
import { sql } from 'drizzle-orm';
import { GatewayError } from '../../core/errors.ts';
import { type Money, money } from '../../core/money.ts';
import type { Orm } from '../../core/vocabulary.ts';
import { lockBalances } from './batch.ts';
import { jsonOf, type Runner, rowsOf, tablesOf } from './sql.ts';

/** No account is credited more than this at once: balances stay far from the end of a `bigint`. */
const largestGrant = 1_000_000_000_000_000_000n;

export interface Grant {
  readonly kind: string;
  readonly reason: string;
  /** Names the event that the money came by. */
  readonly reference: string;
}

/**
 * Adds a grant to an account in one transaction. A reference that was credited before changes nothing; with another
 * account or amount it is a conflict. Resolves with the balance afterwards.
 */
export function creditAccount(
  orm: Orm,
  schema: string,
  accountId: string,
  amount: Money,
  grant: Grant,
  at: number,
): Promise<Money> {
  if (amount <= 0n || amount > largestGrant) {
    throw new GatewayError('invalid_request', 'The amount must be above 0 and at most 1,000,000,000 USD.', {
      field: 'amount',
    });
  }
  const table = tablesOf(schema);
  return orm.transaction(async (transaction) => {
    const before = (await lockBalances(transaction, schema, [accountId])).get(accountId)!;
    const time = new Date(at).toISOString();
    const [granted] = await rowsOf<{ id: string }>(
      transaction,
      sql`insert into ${table('grants')} (account_id, kind, amount, reason, reference, created_at)
          values (${accountId}, ${grant.kind}, ${amount.toString()}::bigint, ${grant.reason}, ${grant.reference}, ${time})
          on conflict (reference) do nothing returning id::text as id`,
    );
    if (granted === undefined) {
      await checkSameGrant(transaction, schema, accountId, amount, grant.reference);
      return before;
    }
    const detail = jsonOf({ kind: grant.kind, reason: grant.reason, reference: grant.reference });
    const after = before + amount;
    await transaction.execute(
      sql`insert into ${table('ledger')}
            (account_id, kind, grant_id, amount, funding, balance_after, detail, created_at)
          values (${accountId}, 'CREDIT', ${granted.id}::uuid, ${amount.toString()}::bigint,
            ${(-amount).toString()}::bigint, ${after.toString()}::bigint, ${detail}, ${time})`,
    );
    await transaction.execute(
      sql`update ${table('balances')} set balance = ${after.toString()}::bigint where account_id = ${accountId}`,
    );
    await transaction.execute(
      sql`update ${table('totals')} set available = available + ${amount.toString()}::bigint,
            funding = funding - ${amount.toString()}::bigint`,
    );
    return money(after);
  });
}

async function checkSameGrant(
  runner: Runner,
  schema: string,
  accountId: string,
  amount: Money,
  reference: string,
): Promise<void> {
  const [known] = await rowsOf<{ account_id: string; amount: string }>(
    runner,
    sql`select account_id, amount::text as amount from ${tablesOf(schema)('grants')} where reference = ${reference}`,
  );
  if (known?.account_id === accountId && known.amount === amount.toString()) return;
  throw new GatewayError('conflict', 'This reference was credited before, with another account or amount.', {
    field: 'reference',
    code: 'reference_used',
    shouldRetry: false,
  });
}

/** The accounts' balances; 0 for an account that never had any. */
export async function readBalances(
  runner: Runner,
  schema: string,
  accountIds: readonly string[],
): Promise<Map<string, Money>> {
  const rows = await rowsOf<{ account_id: string; balance: string }>(
    runner,
    sql`select account_id, balance::text as balance from ${tablesOf(schema)('balances')}
        where account_id in (select value from json_array_elements_text(${jsonOf(accountIds)}))`,
  );
  const balances = new Map(accountIds.map((accountId) => [accountId, money(0n)]));
  for (const row of rows) balances.set(row.account_id, money(BigInt(row.balance)));
  return balances;
}

export interface StoredRow {
  readonly seq: string;
  readonly kind: string;
  readonly request_id: string | null;
  readonly amount: string;
  readonly balance_after: string;
  readonly detail: Record<string, unknown>;
  readonly created_at: string;
}

/** The account's last ledger rows, newest first. */
export function readLedger(runner: Runner, schema: string, accountId: string, limit: number): Promise<StoredRow[]> {
  return rowsOf<StoredRow>(
    runner,
    sql`select seq::text as seq, kind, request_id::text as request_id, amount::text as amount,
          balance_after::text as balance_after, detail,
          to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as created_at
        from ${tablesOf(schema)('ledger')} where account_id = ${accountId} order by ledger.seq desc limit ${limit}::int`,
  );
}
