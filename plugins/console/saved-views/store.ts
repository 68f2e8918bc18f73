/** Saved views: filters of pages under a name, for the person who saved them. */
import { and, asc, eq, sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import type { Orm } from '../../common/domain/database.ts';
import type { ConsoleTables } from '../people/tables.ts';
import type { View, Views } from '../people.ts';

/** For one person, of all pages. */
const mostViews = 50;

export function openViews(orm: Orm, { views }: ConsoleTables, { now }: Pick<Clock, 'now'>): Views {
  const of = (personId: string) => eq(views.personId, personId);
  return {
    list: async (personId, page) =>
      orm
        .select({ name: views.name, query: views.query })
        .from(views)
        .where(and(of(personId), eq(views.page, page)))
        .orderBy(asc(views.name)),

    async save(personId, page, { name, query }: View) {
      const row = { personId, page, name, query, savedAt: new Date(now()) };
      const saved = await orm.transaction(async (tx) => {
        // One at a time for each person, so that the bound holds.
        await tx.execute(sql`select pg_advisory_xact_lock(hashtext(${`views of ${personId}`}))`);
        const others = await tx.$count(views, and(of(personId), sql`not (page = ${page} and name = ${name})`));
        if (others >= mostViews) return false;
        const { query: filters, savedAt } = row;
        const target = [views.personId, views.page, views.name];
        await tx
          .insert(views)
          .values(row)
          .onConflictDoUpdate({ target, set: { query: filters, savedAt } });
        return true;
      });
      if (!saved)
        throw new GatewayError('conflict', `There are ${mostViews} saved views already: delete one first.`, {
          field: 'name',
        });
    },

    async remove(personId, page, name) {
      await orm.delete(views).where(and(of(personId), eq(views.page, page), eq(views.name, name)));
    },
  };
}
