/** The ledger as people read it, newest first: what moved money, unless they ask for other kinds. */
import { type SQL, sql } from 'drizzle-orm';
import type { LedgerRow, MoneyDesk } from '../../../core/desk.ts';
import { GatewayError } from '../../../core/errors.ts';
import { money } from '../../../core/money.ts';
import { cursorIn, instantText, pageOf, rowsFor } from '../../../core/paging.ts';
import { millisecondsOf } from '../funds.ts';
import { jsonOf, type Runner, rowsOf, tablesOf } from '../sql.ts';

/** Rows of no call: few beside those of calls, and with indices of their own. */
const entryKinds = ['CREDIT', 'DEBIT', 'PURCHASE', 'REFUND', 'PAYOUT', 'LAPSE'];
/** The ends of calls that cost something. Setting aside and giving back (HOLD, EXTEND, VOID) is shown to who asks for it. */
const shownKinds = [...entryKinds, 'SETTLE', 'EXPIRE'];
const knownKinds: ReadonlySet<string> = new Set([...shownKinds, 'HOLD', 'EXTEND', 'VOID']);

const seqForm = /^[1-9]\d{0,17}$/;

interface Row {
  readonly seq: string;
  readonly account_id: string;
  readonly kind: string;
  readonly request_id: string | null;
  readonly reference: string | null;
  readonly reason: string | null;
  readonly amount: string;
  readonly held: string;
  readonly balance_after: string;
  readonly at: string;
}

export async function ledgerPage(
  runner: Runner,
  schema: string,
  accountId: string | undefined,
  filter: Parameters<MoneyDesk['ledger']>[1],
  page: Parameters<MoneyDesk['ledger']>[2],
): ReturnType<MoneyDesk['ledger']> {
  const limit = rowsFor(page);
  const after = cursorIn(page, seqForm);
  const conditions = [kindsIn(filter.kinds ?? shownKinds)];
  if (accountId !== undefined) conditions.push(sql`account_id = ${accountId}`);
  if (filter.from !== undefined) conditions.push(sql`created_at >= ${instantText(filter.from)}::timestamptz`);
  if (filter.until !== undefined) conditions.push(sql`created_at < ${instantText(filter.until)}::timestamptz`);
  if (after !== undefined) conditions.push(sql`ledger.seq < ${after}::bigint`);
  const rows = await rowsOf<Row>(
    runner,
    sql`select seq::text as seq, account_id, kind, request_id::text as request_id,
          coalesce(reference, detail->>'reference') as reference, detail->>'reason' as reason, amount::text as amount,
          held::text as held, balance_after::text as balance_after, ${millisecondsOf(sql`created_at`)} as at
        from ${tablesOf(schema)('ledger')} as ledger where ${sql.join(conditions, sql` and `)}
        order by ledger.seq desc limit ${limit}::int`,
  );
  return pageOf(rows, page, ({ seq }) => seq, viewOf);
}

function kindsIn(kinds: readonly string[]): SQL {
  if (kinds.length === 0 || kinds.some((kind) => !knownKinds.has(kind))) {
    throw new GatewayError('invalid_request', `"kinds" are among ${[...knownKinds].join(', ')}.`, { field: 'kinds' });
  }
  const chosen = sql`kind in (select value from json_array_elements_text(${jsonOf(kinds)}))`;
  return kinds.every((kind) => entryKinds.includes(kind)) ? sql`request_id is null and ${chosen}` : chosen;
}

function viewOf(row: Row): LedgerRow {
  return {
    seq: row.seq,
    accountId: row.account_id,
    kind: row.kind,
    requestId: row.request_id ?? undefined,
    reference: row.reference ?? undefined,
    reason: row.reason ?? undefined,
    amount: money(BigInt(row.amount)),
    held: money(BigInt(row.held)),
    balanceAfter: money(BigInt(row.balance_after)),
    at: Number.parseInt(row.at, 10),
  };
}
