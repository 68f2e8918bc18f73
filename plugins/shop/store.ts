/** SQL statements that create, use and revoke redeem codes. */
import { sql } from 'drizzle-orm';
import type { CodeGift, CodeView } from '../common/domain/admin/shop.ts';
import type { Database, Orm } from '../common/domain/database.ts';
import type { Money } from '../common/domain/money.ts';
import { column, columnsOf, countColumn, optional, rowsOf, tableOf, timeColumn, usdColumn } from '../common/kit/sql.ts';

export interface NewCodes {
  readonly batch: string;
  readonly gift: CodeGift;
  readonly maxUses: number;
  readonly oncePerAccount: boolean;
  readonly expiresAt: number | undefined;
  readonly createdAt: number;
  readonly codes: readonly { readonly hash: string; readonly prefix: string }[];
}

export type CodeStore = ReturnType<typeof openCodeStore>;

export function openCodeStore(database: Database) {
  const { orm } = database;
  const table = (name: string) => tableOf(database, name);
  const columns = codeColumns(database);
  return {
    async insert({ codes, gift, batch, maxUses, oncePerAccount, expiresAt, createdAt }: NewCodes): Promise<void> {
      const { amount, lastsMs, plan, days } = { ...noGift, ...gift };
      await orm.execute(
        sql`insert into ${table('codes')} (hash, prefix, batch, kind, amount, money_lasts_ms, plan, days, max_uses,
              once_per_account, expires_at, created_at)
            select hash, prefix, ${batch}, ${gift.kind}, ${amount?.toString() ?? null}::bigint, ${lastsMs ?? null}::bigint,
              ${plan ?? null}::text, ${days ?? null}::int, ${maxUses}::int, ${oncePerAccount}::boolean,
              ${timeOf(expiresAt)}::timestamptz, ${timeOf(createdAt)}::timestamptz
            from json_to_recordset(${JSON.stringify(codes)}::text::json) as given (hash text, prefix text)`,
      );
    },

    /** Locks the code until the transaction ends, so that its uses are counted one at a time. */
    async lock(transaction: Orm, hash: string): Promise<CodeView | undefined> {
      // Locked before it is counted: a statement sees only rows from before its beginning.
      await transaction.execute(sql`select from ${table('codes')} where hash = ${hash} for update`);
      const rows = await rowsOf<never>(
        transaction,
        sql`select ${columns.select} from ${table('codes')} as codes where hash = ${hash}`,
      );
      return rows.map(columns.read)[0];
    },

    async isRedeemedBy(transaction: Orm, codeId: string, accountId: string): Promise<boolean> {
      const rows = await rowsOf(
        transaction,
        sql`select from ${table('redemptions')} where code_id = ${codeId}::uuid and account_id = ${accountId} limit 1`,
      );
      return rows.length > 0;
    },

    async insertUse(transaction: Orm, codeId: string, number: number, accountId: string, at: number): Promise<void> {
      await transaction.execute(
        sql`insert into ${table('redemptions')} (code_id, number, account_id, redeemed_at)
            values (${codeId}::uuid, ${number}::int, ${accountId}, ${timeOf(at)}::timestamptz)`,
      );
    },

    /** Revokes the codes of this batch, id or hash that are not revoked yet. Resolves with their number. */
    async revoke(named: string, hash: string, at: number): Promise<number> {
      const rows = await rowsOf(
        orm,
        sql`update ${table('codes')} set revoked_at = ${timeOf(at)}::timestamptz
            where revoked_at is null and (batch = ${named} or id::text = ${named} or hash = ${hash}) returning 1`,
      );
      return rows.length;
    },
  };
}

/** The columns of a code; the table's alias is `codes`. */
export function codeColumns(database: Database) {
  const { select, read } = columnsOf({
    id: column<string>(sql`id::text`),
    prefix: column<string>('prefix'),
    batch: column<string>('batch'),
    kind: column<CodeGift['kind']>('kind'),
    amount: optional(usdColumn('amount')),
    lastsMs: optional(countColumn('money_lasts_ms')),
    plan: optional(column<string>('plan')),
    days: optional(column<number>('days')),
    maxUses: column<number>('max_uses'),
    uses: column<number>(
      sql`(select count(*)::int from ${tableOf(database, 'redemptions')} as redemptions where redemptions.code_id = codes.id)`,
    ),
    oncePerAccount: column<boolean>('once_per_account'),
    expiresAt: optional(timeColumn('expires_at')),
    revokedAt: optional(timeColumn('revoked_at')),
    createdAt: timeColumn('created_at'),
  });
  const codeOf = (row: Parameters<typeof read>[0]): CodeView => {
    const { kind, amount, lastsMs, plan, days, ...code } = read(row);
    if (kind === 'balance') return { ...code, gift: { kind, amount: amount!, lastsMs } };
    return { ...code, gift: kind === 'plan' ? { kind, plan: plan! } : { kind, plan: plan!, days: days! } };
  };
  return { select, read: codeOf };
}

const noGift: { amount?: Money; lastsMs?: number | undefined; plan?: string; days?: number } = {};

function timeOf(at: number | undefined): string | null {
  return at === undefined ? null : new Date(at).toISOString();
}
