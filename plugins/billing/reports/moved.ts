/** Which accounts' money has moved since a movement, for what follows balances off the path of calls. */
import { sql } from 'drizzle-orm';
import type { MovedAccounts } from '../../common/domain/admin/notices.ts';
import type { Database } from '../../common/domain/database.ts';
import { rowsOf, tablesOf } from '../model/sql.ts';
import { balancesOf } from './sums.ts';

const quarterMs = 900_000;

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

    async used(accountIds, models, since) {
      if (accountIds.length === 0 || models.length === 0) return new Map();
      const list = (texts: readonly string[]) =>
        sql.join(
          texts.map((text) => sql`${text}`),
          sql`, `,
        );
      // A sum is named by the quarter in which it begins; part 0 has each account.
      const from = sql`${new Date(since - quarterMs).toISOString()}::timestamptz`;
      const rows = await rowsOf<{ account: string; model: string }>(
        orm,
        sql`select distinct groups.account_id as account, groups.model from ${table('call_sums_groups')} as groups
          where groups.account_id in (${list(accountIds)}) and groups.model in (${list(models)})
            and exists (select from ${table('call_sums')} as sums where sums.part = 0 and sums.group_id = groups.id
              and sums.at > ${from} and sums.account_id = groups.account_id)`,
      );
      const byAccount = Map.groupBy(rows, ({ account }) => account);
      return new Map([...byAccount].map(([account, used]) => [account, new Set(used.map(({ model }) => model))]));
    },

    balances: (accountIds) => balancesOf(orm, schema, accountIds),
  };
}
