/** Which accounts' money has moved since a movement, for what follows balances off the path of calls. */
import { sql } from 'drizzle-orm';
import type { MovedAccounts } from '../../common/domain/admin/notices.ts';
import type { Database } from '../../common/domain/database.ts';
import { rowsOf, tablesOf } from '../model/sql.ts';
import { balancesOf } from './sums.ts';

export function openMovedAccounts({ orm, schema }: Pick<Database, 'orm' | 'schema'>): MovedAccounts {
  const table = tablesOf(schema);
  const last = (name: string) => sql`(select seq from ${table(name)} where seq is not null order by seq desc limit 1)`;
  return {
    async latest() {
      const [row] = await rowsOf<{ seq: string }>(
        orm,
        sql`select greatest(${last('calls')}, ${last('ledger')}, 0)::text as seq`,
      );
      return BigInt(row!.seq);
    },

    async behind(after, rows) {
      const part = (name: string) => sql`(select account_id, seq from ${table(name)}
        where seq > ${String(after)}::text::bigint order by seq limit ${rows}::int)`;
      const found = await rowsOf<{ account: string; seq: string }>(
        orm,
        sql`select account_id as account, seq::text as seq from (${part('calls')} union all ${part('ledger')}) as moved
          order by moved.seq limit ${rows}::int`,
      );
      const last = found.at(-1);
      return {
        accountIds: [...new Set(found.map(({ account }) => account))],
        upTo: last === undefined ? after : BigInt(last.seq),
        isFull: found.length === rows,
      };
    },

    balances: (accountIds) => balancesOf(orm, schema, accountIds),
  };
}
