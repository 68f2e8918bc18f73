/** Reads metadata at addresses again each day, so that a new certificate of a provider counts before the old one goes. */
import { and, lt, sql } from 'drizzle-orm';
import type { Clock, Log } from '../../../../core/contract/host-tools.ts';
import type { Orm } from '../../../common/domain/database.ts';
import type { CompanyTables } from '../tables.ts';
import type { ProviderSettings } from '../types.ts';

const dayMs = 86_400_000;
/** So many are read in one turn. */
const mostInTurn = 20;

export function refreshStatements(orm: Orm, { providers }: CompanyTables) {
  return {
    /** Those with metadata at an address that were not read since; no other process gets these again. */
    async takeStale(before: Date, at: Date) {
      const due = orm
        .select({ place: sql`ctid` })
        .from(providers)
        .where(and(lt(providers.updatedAt, before), sql`${providers.settings} like '%"metadataUrl":"http%'`))
        .limit(mostInTurn)
        .for('update', { skipLocked: true });
      return orm
        .update(providers)
        .set({ updatedAt: at })
        .where(sql`ctid in (${due})`)
        .returning({ id: providers.id, settings: providers.settings });
    },
    /** Unless its owner has changed it meanwhile. */
    async changeSettings(id: string, before: string, after: string): Promise<void> {
      await orm
        .update(providers)
        .set({ settings: after })
        .where(and(sql`${providers.id} = ${id}`, sql`${providers.settings} = ${before}`));
    },
  };
}

interface Parts {
  readonly store: ReturnType<typeof refreshStatements>;
  readonly clock: Clock;
  readonly log: Log;
  readonly reading: Omit<import('./setting.ts').Reading, 'now'>;
}

export async function refreshMetadata({ store, clock, log, reading }: Parts): Promise<void> {
  const now = clock.now();
  const stale = await store.takeStale(new Date(now - dayMs), new Date(now));
  if (stale.length === 0) return;
  const { settingsAgain } = await import('./setting.ts');
  for (const { id, settings } of stale) {
    const before = JSON.parse(settings) as ProviderSettings;
    if (before.saml === undefined) continue;
    try {
      const saml = await settingsAgain({ ...reading, now }, before.saml);
      if (saml !== undefined) await store.changeSettings(id, settings, JSON.stringify({ ...before, saml }));
    } catch (error) {
      log.warn(
        { provider: id, error },
        'the metadata of a SAML provider could not be read: what it said before counts',
      );
    }
  }
}
