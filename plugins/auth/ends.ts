/** What comes to an end, or has a ceiling: keys that expire, plans that end, keys with a spend cap. */
import { and, asc, eq, gt, inArray, isNotNull, isNull, lte, notLike, or, sql } from 'drizzle-orm';
import type { KeyCap } from '../common/domain/accounts.ts';
import type { AccountEnds } from '../common/domain/admin/notices.ts';
import { type Database, isUuid } from '../common/domain/database.ts';
import { money } from '../common/domain/money.ts';
import { noSecretMark } from './key.ts';
import { authTables } from './tables.ts';

/** Is before all others. */
const firstId = '00000000-0000-0000-0000-000000000000';

const behind = (after: string) => (isUuid(after) ? after : firstId);

export function openAccountEnds({ orm, schema }: Pick<Database, 'orm' | 'schema'>, now: () => number): AccountEnds {
  const { accounts, keys } = authTables(schema);
  const within = (withinMs: number) => ({ from: new Date(now()), until: new Date(now() + withinMs) });
  return {
    async cappedKeys(accountIds) {
      const ids = accountIds.filter(isUuid);
      if (ids.length === 0) return [];
      const { id: keyId, accountId, name, capAmount, capEvery } = keys;
      const rows = await orm
        .select({ keyId, accountId, name, capAmount, capEvery })
        .from(keys)
        .where(and(inArray(keys.accountId, ids), isNotNull(keys.capAmount), isNull(keys.revokedAt)));
      return rows.map(({ capAmount: amount, capEvery: every, ...key }) => ({
        ...key,
        cap: { amount: money(amount!), every: every as KeyCap['every'] },
      }));
    },

    async endingKeys(withinMs, after, most) {
      const { from, until } = within(withinMs);
      const { id: keyId, accountId, name, prefix, expiresAt } = keys;
      const rows = await orm
        .select({ keyId, accountId, name, prefix, expiresAt })
        .from(keys)
        .innerJoin(accounts, eq(accounts.id, keys.accountId))
        .where(
          and(
            ...[isNull(keys.revokedAt), gt(keys.expiresAt, from), lte(keys.expiresAt, until)],
            ...[eq(accounts.disabled, false), gt(keys.accountId, behind(after))],
          ),
        )
        .orderBy(asc(keys.accountId), asc(keys.expiresAt), asc(keys.id))
        .limit(most);
      return rows.map(({ expiresAt: endsAt, ...key }) => ({ ...key, endsAt: endsAt!.getTime() }));
    },

    async endingPlans(withinMs, after, most) {
      const { from, until } = within(withinMs);
      const rows = await orm
        .select({ accountId: sql<string>`${accounts.id}::text`, plan: accounts.plan, endsAt: accounts.planEndsAt })
        .from(accounts)
        .where(
          and(
            ...[gt(accounts.planEndsAt, from), lte(accounts.planEndsAt, until)],
            ...[eq(accounts.disabled, false), gt(accounts.id, behind(after))],
          ),
        )
        .orderBy(asc(accounts.id))
        .limit(most);
      return rows.map(({ endsAt, ...plan }) => ({ ...plan, endsAt: endsAt!.getTime() }));
    },

    oldKeys: oldKeysOf({ orm, schema }, now),
    standing: standingOf({ orm, schema }),
  };
}

function oldKeysOf({ orm, schema }: Pick<Database, 'orm' | 'schema'>, now: () => number): AccountEnds['oldKeys'] {
  const { accounts, keys } = authTables(schema);
  const since = sql`coalesce(${keys.rotatedAt}, ${keys.createdAt})`.mapWith(keys.createdAt);
  return async (leastMs, after, most) => {
    const { id: keyId, accountId, name, prefix, expiresAt } = keys;
    const until = new Date(now() - leastMs);
    const rows = await orm
      .select({ keyId, accountId, name, prefix, since })
      .from(keys)
      .innerJoin(accounts, eq(accounts.id, keys.accountId))
      .where(
        and(
          ...[isNull(keys.revokedAt), or(isNull(expiresAt), gt(expiresAt, new Date(now())))],
          ...[lte(keys.createdAt, until), or(isNull(keys.rotatedAt), lte(keys.rotatedAt, until))],
          ...[notLike(keys.hash, `${noSecretMark}%`), eq(accounts.disabled, false), gt(keys.accountId, behind(after))],
        ),
      )
      .orderBy(asc(keys.accountId), asc(keys.createdAt), asc(keys.id))
      .limit(most);
    return rows.map((row) => ({ ...row, since: row.since.getTime() }));
  };
}

function standingOf({ orm, schema }: Pick<Database, 'orm' | 'schema'>): AccountEnds['standing'] {
  const { accounts } = authTables(schema);
  return async (after, most, only) => {
    const { id, plan, planEndsAt, multiplier } = accounts;
    const rows = await orm
      .select({ accountId: sql<string>`${id}::text`, plan, planEndsAt, multiplier })
      .from(accounts)
      .where(and(only === undefined ? eq(accounts.disabled, false) : isNotNull(multiplier), gt(id, behind(after))))
      .orderBy(asc(id))
      .limit(most);
    return rows.map(({ planEndsAt, multiplier, ...account }) => ({
      ...account,
      planEndsAt: planEndsAt?.getTime(),
      multiplier: multiplier ?? undefined,
    }));
  };
}
