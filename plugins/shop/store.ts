/** SQL statements that create, use and revoke redeem codes. */
import { type SQL, sql } from 'drizzle-orm';
import type { CodeGift, CodeView } from '../common/domain/admin/shop.ts';
import type { Database, Orm } from '../common/domain/database.ts';
import { type Money, money } from '../common/domain/money.ts';
import { rowsOf } from '../common/kit/sql.ts';

export interface NewCodes {
  readonly batch: string;
  readonly gift: CodeGift;
  readonly maxUses: number;
  readonly oncePerAccount: boolean;
  readonly expiresAt: number | undefined;
  readonly createdAt: number;
  readonly codes: readonly { readonly hash: string; readonly prefix: string }[];
}

export interface CodeRow {
  readonly id: string;
  readonly prefix: string;
  readonly batch: string;
  readonly kind: CodeGift['kind'];
  readonly amount: string | null;
  readonly money_lasts_ms: string | null;
  readonly plan: string | null;
  readonly days: number | null;
  readonly max_uses: number;
  readonly uses: number;
  readonly once_per_account: boolean;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly created_at: string;
}

export type CodeStore = ReturnType<typeof openCodeStore>;

export function openCodeStore({ orm, schema }: Database) {
  const table = (name: string) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
  const columns = columnsOf(table);
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
      const rows = await rowsOf<CodeRow>(
        transaction,
        sql`select ${columns} from ${table('codes')} as codes where hash = ${hash}`,
      );
      return rows.map(codeOf)[0];
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

/** The columns of a `CodeRow`; the table's alias is `codes`. */
export function columnsOf(table: (name: string) => SQL): SQL {
  return sql`id::text as id, prefix, batch, kind, amount::text as amount, money_lasts_ms::text as money_lasts_ms,
    plan, days, max_uses, once_per_account, ${milliseconds('expires_at')}, ${milliseconds('revoked_at')},
    ${milliseconds('created_at')},
    (select count(*)::int from ${table('redemptions')} as redemptions where redemptions.code_id = codes.id) as uses`;
}

const noGift: { amount?: Money; lastsMs?: number | undefined; plan?: string; days?: number } = {};

export function milliseconds(name: string, time: SQL = sql`${sql.identifier(name)}`): SQL {
  return sql`round(extract(epoch from ${time}) * 1000)::bigint::text as ${sql.identifier(name)}`;
}

function timeOf(at: number | undefined): string | null {
  return at === undefined ? null : new Date(at).toISOString();
}

export function codeOf(row: CodeRow): CodeView {
  return {
    id: row.id,
    prefix: row.prefix,
    batch: row.batch,
    gift: giftOf(row),
    maxUses: row.max_uses,
    uses: row.uses,
    oncePerAccount: row.once_per_account,
    expiresAt: numberOf(row.expires_at),
    revokedAt: numberOf(row.revoked_at),
    createdAt: numberOf(row.created_at)!,
  };
}

function giftOf({ kind, amount, money_lasts_ms: lastsMs, plan, days }: CodeRow): CodeGift {
  if (kind === 'balance') return { kind, amount: money(BigInt(amount!)), lastsMs: numberOf(lastsMs) };
  return kind === 'plan' ? { kind, plan: plan! } : { kind, plan: plan!, days: days! };
}

export function numberOf(digits: string | null): number | undefined {
  return digits === null ? undefined : Number.parseInt(digits, 10);
}
