/** The log of an account as its members read it: what they have done, and what the gateway's own people have, who are not named. */
import type { Page, PageRequest, Span } from '../../common/domain/admin/pages.ts';
import type { ConsoleServices } from '../api/routing/router.ts';
import type { AuditRow } from '../people.ts';
import { memberAdmin } from '../services.ts';

interface LogFilter {
  readonly from?: Span['from'] | undefined;
  readonly until?: Span['until'] | undefined;
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
}

/** An operator who is a member of the account is one among its members. */
export async function accountLog(
  { audit, settings, find }: Pick<ConsoleServices, 'audit' | 'settings' | 'find'>,
  accountId: string,
  filter: LogFilter,
  page: PageRequest,
): Promise<Page<AuditRow>> {
  const members = (await find(memberAdmin)?.list(accountId)) ?? [];
  const people = new Set(members.map(({ person }) => person));
  // A filter by address finds nothing of operators, so that it shows no one which addresses are theirs.
  const known = filter.actor === undefined ? {} : { people: [...people] };
  const { rows, next } = await audit.list({ accountId, ...filter, ...known }, page);
  const shown = (found: AuditRow): AuditRow => {
    // Each row is of this account.
    const row = { ...found, changes: found.changes.filter(({ field }) => field !== 'accountId') };
    return row.role === 'client' || people.has(row.actorId ?? '')
      ? row
      : { ...row, actor: settings.name, actorId: undefined, actorKind: undefined };
  };
  return { rows: rows.map(shown), next };
}
