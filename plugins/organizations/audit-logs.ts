/** What was done in the account, in the shape of OpenAI's audit logs; actions keep the names of this gateway. */
import type { AdministratorKey, MemberAct } from '../common/domain/organizations/members.ts';
import type { Members } from './members.ts';
import { limitIn, secondsOf, wrong } from './shapes.ts';

/** `after` is what `last_id` of the page before says. */
export async function auditLogs({ contacts }: Members, { accountId }: AdministratorKey, query: URLSearchParams) {
  const span = { from: secondsIn(query, 'effective_at[gte]'), until: secondsIn(query, 'effective_at[lt]') };
  const page = { limit: limitIn(query), after: query.get('after') ?? undefined };
  const { rows, next } = await contacts.log(accountId, span, page);
  const data = rows.map(shown);
  return {
    ...{ object: 'list', data, first_id: data[0]?.id ?? null, last_id: next ?? data.at(-1)?.id ?? null },
    has_more: next !== undefined,
  };
}

function secondsIn(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  if (!/^\d{1,11}$/.test(text)) throw wrong(name, `"${name}" is a time in seconds.`);
  return Number.parseInt(text, 10) * 1000;
}

function shown({ id, at, actor, actorId, actorKind, action, subject, result, changes }: MemberAct) {
  const user = { id: actorId ?? null, email: actor };
  const who =
    actorKind === 'token'
      ? { type: 'api_key', api_key: { id: actorId ?? null, type: 'service_account' } }
      : { type: 'session', session: { user } };
  return {
    ...{ object: 'organization.audit_log', id, type: action, effective_at: secondsOf(at), actor: who },
    [action]: {
      id: subject,
      result,
      changes_requested: Object.fromEntries(changes.map(({ field, after }) => [field, after])),
    },
  };
}
