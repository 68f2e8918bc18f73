/** Records every change of a lease beside the ledger's rows: processes may never have leased more than an account has. */
import { sql } from 'drizzle-orm';
import type { Fleet } from './fleet.ts';
import type { Customer } from './testbed.ts';

export interface LeaseTrace {
  /** After how many changes processes could spend more than the account had. */
  uncovered(): Promise<number>;
  /** What was done around the first of them, oldest first, and where the journals stand. */
  report(customers: readonly Customer[]): Promise<string>;
}

/** Entries shown before it and behind it. */
const shownBefore = 40;
const shownBehind = 15;

interface Entry {
  readonly at: string;
  /** Number of the transaction. */
  readonly transaction: string;
  readonly text: string;
  readonly isUncovered: boolean;
}

/** From now on: what each transaction did to leases, with its number, which ledger rows bear as their `xmin`. */
export async function traceLeases({ rows, table }: Fleet): Promise<LeaseTrace> {
  await rows(sql`create table ${table('lease_trace')} (
    place bigserial, at timestamptz default clock_timestamp(), transaction xid default pg_current_xact_id()::xid,
    account_id text, node text, before bigint, after bigint, leased bigint, balance bigint)`);
  await rows(sql`create function ${table('trace_lease')}() returns trigger language plpgsql as $body$
    begin
      execute format('insert into %1$I.lease_trace (account_id, node, before, after, leased, balance) values ($1, $2, $3, $4,
          (select coalesce(sum(amount), 0) from %1$I.leases where account_id = $1),
          (select balance from %1$I.balances where account_id = $1))', tg_table_schema)
        using coalesce(new.account_id, old.account_id), coalesce(new.node, old.node), old.amount, new.amount;
      return null;
    end $body$`);
  await rows(sql`create trigger trace_lease after insert or update or delete on ${table('leases')}
    for each row execute function ${table('trace_lease')}()`);
  const entriesOf = ({ accountId }: Customer) =>
    rows<Entry>(sql`
      with changes as (select * from ${table('lease_trace')} where account_id = ${accountId})
      select to_char(at, 'MI:SS.MS') as at, transaction::text as transaction,
        format('lease of %s: %s to %s, in all %s of %s', node, before, after, leased, balance) as text,
        leased > greatest(balance, 0) as "isUncovered", place, at as done_at
      from changes
      union all
      select to_char(created_at, 'MI:SS.MS'), ledger.xmin::text,
        format('%s %s: %s, balance %s', kind, left(request_id::text, 13), amount, balance_after),
        false, seq,
        coalesce((select max(at) from changes where changes.transaction = ledger.xmin), created_at)
      from ${table('movements')} as ledger where account_id = ${accountId}
      order by done_at, place`);
  return {
    uncovered: async () => {
      const [row] = await rows<{ count: number }>(
        sql`select count(*)::int as count from ${table('lease_trace')} where leased > greatest(balance, 0)`,
      );
      return row!.count;
    },
    report: async (customers) => {
      const lines: string[] = [];
      for (const customer of customers) {
        const entries = await entriesOf(customer);
        const found = entries.findIndex(({ isUncovered }) => isUncovered);
        if (found < 0) continue;
        lines.push(`account ${customer.accountId}`);
        const shown = entries.slice(Math.max(0, found - shownBefore), found + shownBehind);
        lines.push(...shown.map(({ at, transaction, text }) => `  ${transaction} ${at} ${text}`));
      }
      const cursors = await rows<{ text: string }>(
        sql`select format('journal %s: epoch %s, applied to %s', journal, epoch, applied) as text from ${table('journal_cursor')}`,
      );
      return [...lines, ...cursors.map(({ text }) => text)].join('\n');
    },
  };
}
