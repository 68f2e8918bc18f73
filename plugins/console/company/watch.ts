/** Looks daily whether DNS still has the records of verified domains. Without one for a week, a domain brings in no one new. */
import { and, eq, isNotNull, isNull, lt, or, sql } from 'drizzle-orm';
import type { Clock, Log } from '../../../core/contract/host-tools.ts';
import type { NoticeSender } from '../../common/domain/admin/notices.ts';
import type { Orm } from '../../common/domain/database.ts';
import { recordOf, recordsOf } from './records.ts';
import type { CompanyTables } from './tables.ts';

const dayMs = 86_400_000;
/** A lost record is put back within it. */
export const lapseMs = 7 * dayMs;
/** So many are looked up in one turn. */
const mostInTurn = 50;

export const isLapsed = ({ missingSince }: { readonly missingSince: number | undefined }, now: number) =>
  missingSince !== undefined && now - missingSince >= lapseMs;

export function watchStatements(orm: Orm, { domains }: CompanyTables) {
  return {
    /** Verified ones that were not looked up since; no other process gets these again. */
    async takeUnchecked(before: Date, at: Date) {
      const { accountId, domain, token, missingSince, checkedAt, verifiedAt } = domains;
      const due = orm
        .select({ place: sql`ctid` })
        .from(domains)
        .where(and(isNotNull(verifiedAt), or(isNull(checkedAt), lt(checkedAt, before))))
        .limit(mostInTurn)
        .for('update', { skipLocked: true });
      return orm
        .update(domains)
        .set({ checkedAt: at })
        .where(sql`ctid in (${due})`)
        .returning({ accountId, domain, token, missingSince });
    },
    async noteMissing(accountId: string, domain: string, since: Date | null): Promise<void> {
      await orm
        .update(domains)
        .set({ missingSince: since })
        .where(and(eq(domains.accountId, accountId), eq(domains.domain, domain)));
    },
  };
}

interface Parts {
  readonly store: ReturnType<typeof watchStatements>;
  readonly clock: Clock;
  readonly log: Log;
  readonly servers: readonly string[];
  readonly notices: () => NoticeSender | undefined;
}

export async function checkDomains({ store, clock, log, servers, notices }: Parts): Promise<void> {
  const now = clock.now();
  for (const one of await store.takeUnchecked(new Date(now - dayMs), new Date(now))) {
    const { accountId, domain } = one;
    const texts = await recordsOf(servers, domain).catch((error: unknown) => {
      log.warn({ domain, error }, 'DNS gives no answer for the domain of a company: it is asked tomorrow');
      return undefined;
    });
    if (texts === undefined) continue;
    const isThere = texts.includes(recordOf(one).value);
    if (isThere && one.missingSince === null) continue;
    const since = isThere ? undefined : (one.missingSince ?? new Date(now));
    await store.noteMissing(accountId, domain, since ?? null);
    const period = (since ?? one.missingSince!).toISOString();
    const fields = { domain, ends_at: new Date(Date.parse(period) + lapseMs).toISOString() };
    const value = isThere ? 0n : 1n;
    await notices()?.observe(accountId, [{ kind: 'domain_record', subject: domain, period, value, of: 1n, fields }]);
  }
}
