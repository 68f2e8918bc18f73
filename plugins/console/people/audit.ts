/** The audit log: rows that are added, and of which only the outcome is ever changed. */
import { and, type Column, desc, eq, gte, inArray, like, lt, or, sql } from 'drizzle-orm';
import type { Clock } from '../../../core/contract/host-tools.ts';
import type { Orm } from '../../common/domain/database.ts';
import type { Audit, AuditChange } from '../people.ts';
import { cursorOf, readCursor } from './cursor.ts';
import type { ConsoleTables } from './tables.ts';

const holds = (column: Column, text: string | undefined) =>
  text === undefined ? undefined : like(column, `%${text.replace(/[\\%_]/g, '\\$&')}%`);

export function openAudit(
  orm: Orm,
  { audit }: ConsoleTables,
  { clock, newId }: { readonly clock: Clock; readonly newId: () => string },
): Audit {
  return {
    async begin({ actor, action, subject, reason, address, changes = [], accountId }) {
      const id = newId();
      const row = { id, at: new Date(clock.now()), actor: actor.label, role: actor.role, action, address };
      await orm.insert(audit).values({
        ...row,
        subject: subject.slice(0, 500),
        reason: reason?.slice(0, 1_000) ?? null,
        result: 'begun',
        actorKind: actor.kind,
        actorId: actor.id,
        accountId: accountId ?? null,
        changes: changes.length === 0 ? null : JSON.stringify(changes),
      });
      const end = async (result: string) => {
        await orm.update(audit).set({ result }).where(eq(audit.id, id));
      };
      return Object.assign(end, { id });
    },

    async list({ accountId, people, actor, action, subject, from, until }, { limit, after }) {
      const cursor = readCursor(after);
      const rows = await orm
        .select()
        .from(audit)
        .where(
          and(
            accountId === undefined ? undefined : eq(audit.accountId, accountId),
            people && or(eq(audit.role, 'client'), inArray(audit.actorId, [...people])),
            ...[holds(audit.actor, actor), holds(audit.action, action), holds(audit.subject, subject)],
            from === undefined ? undefined : gte(audit.at, new Date(from)),
            until === undefined ? undefined : lt(audit.at, new Date(until)),
            cursor === undefined
              ? undefined
              : sql`(${audit.at}, ${audit.id}) < (${cursor.at.toISOString()}::timestamptz, ${cursor.id})`,
          ),
        )
        .orderBy(desc(audit.at), desc(audit.id))
        .limit(limit + 1);
      const shown = rows
        .slice(0, limit)
        .map(({ at, reason, actorKind, actorId, changes, accountId: _account, ...row }) => ({
          ...row,
          at: at.getTime(),
          reason: reason ?? undefined,
          actorKind: actorKind ?? undefined,
          actorId: actorId ?? undefined,
          changes: changes === null ? [] : (JSON.parse(changes) as AuditChange[]),
        }));
      const last = shown.at(-1);
      return { rows: shown, next: rows.length > limit ? cursorOf(last!.at, last!.id) : undefined };
    },
  };
}
