/** Every statement on redeem codes and their uses. */
import { type SQL, sql } from 'drizzle-orm';
import type { CodeGift, CodeView, ShopDesk } from '../../core/desk.ts';
import { type Money, money } from '../../core/money.ts';
import type { Database, Orm } from '../../core/vocabulary.ts';

export interface NewCodes {
  readonly batch: string;
  readonly gift: CodeGift;
  readonly maxUses: number;
  readonly oncePerAccount: boolean;
  readonly expiresAt: number | undefined;
  readonly createdAt: number;
  readonly codes: readonly { readonly hash: string; readonly prefix: string }[];
}

interface CodeRow {
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

/** Codes that one listing tells at most. */
export const listed = 100_000;
const listedBatches = 1_000;

export type CodeStore = ReturnType<typeof openCodeStore>;

export function openCodeStore({ orm, schema }: Database) {
  const table = (name: string) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
  const columns = sql`id::text as id, prefix, batch, kind, amount::text as amount, money_lasts_ms::text as money_lasts_ms,
    plan, days, max_uses, once_per_account, ${milliseconds('expires_at')}, ${milliseconds('revoked_at')},
    ${milliseconds('created_at')},
    (select count(*)::int from ${table('redemptions')} as redemptions where redemptions.code_id = codes.id) as uses`;
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

    /** The code, locked until the transaction ends: its uses are counted by one at a time. */
    async lock(transaction: Orm, hash: string): Promise<CodeView | undefined> {
      // Locked before it is counted: a statement sees only what was there when it began.
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

    /** All codes or those of one batch, oldest first. */
    async list(batch: string | undefined): Promise<CodeView[]> {
      const chosen = batch === undefined ? sql`true` : sql`batch = ${batch}`;
      const rows = await rowsOf<CodeRow>(
        orm,
        sql`select ${columns} from ${table('codes')} as codes where ${chosen} order by codes.created_at, batch, prefix, id limit ${listed}::int`,
      );
      return rows.map(codeOf);
    },

    /** Newest first; `after`: id of the code behind which the rows begin. */
    async page(batch: string | undefined, limit: number, after: string | undefined): Promise<CodeView[]> {
      const all = table('codes');
      const chosen = batch === undefined ? sql`true` : sql`batch = ${batch}`;
      const behind =
        after === undefined
          ? sql``
          : sql`and (created_at, id) < (select created_at, id from ${all} where id = ${after}::uuid)`;
      const rows = await rowsOf<CodeRow>(
        orm,
        sql`select ${columns} from (select * from ${all} as each where ${chosen} ${behind}
              order by each.created_at desc, each.id desc limit ${limit}::int) as codes
            order by codes.created_at desc, codes.id desc`,
      );
      return rows.map(codeOf);
    },

    /** Newest first. */
    async batches(): ReturnType<ShopDesk['batches']> {
      const rows = await rowsOf<{ batch: string; codes: number; uses: number; created_at: string }>(
        orm,
        sql`select batch, count(*)::int as codes, coalesce(sum(used.uses), 0)::int as uses, ${milliseconds('created_at', sql`min(created_at)`)}
            from ${table('codes')} as codes
            left join (select code_id, count(*) as uses from ${table('redemptions')} group by code_id) as used
              on used.code_id = codes.id
            group by batch order by min(codes.created_at) desc, batch limit ${listedBatches}::int`,
      );
      return rows.map(({ batch, codes, uses, created_at: createdAt }) => {
        return { batch, codes, uses, createdAt: numberOf(createdAt)! };
      });
    },

    /** Revokes the codes of this batch, id or hash that are not revoked yet. Resolves with how many there were. */
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

const noGift: { amount?: Money; lastsMs?: number | undefined; plan?: string; days?: number } = {};

async function rowsOf<Row>(runner: Pick<Orm, 'execute'>, statement: SQL): Promise<Row[]> {
  const result: unknown = await runner.execute(statement);
  return (Array.isArray(result) ? result : (result as { rows: Row[] }).rows) as Row[];
}

function milliseconds(name: string, time: SQL = sql`${sql.identifier(name)}`): SQL {
  return sql`round(extract(epoch from ${time}) * 1000)::bigint::text as ${sql.identifier(name)}`;
}

function timeOf(at: number | undefined): string | null {
  return at === undefined ? null : new Date(at).toISOString();
}

function codeOf(row: CodeRow): CodeView {
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

function numberOf(digits: string | null): number | undefined {
  return digits === null ? undefined : Number.parseInt(digits, 10);
}
