/** What an action sets, for the audit log: the members of two views that differ, as text. Pure. */
import type { AuditChange } from '../../people.ts';

const most = 500;

/** Members that `after` lacks stay as they are. */
export function changesBetween(before: object, after: object): AuditChange[] {
  return Object.entries(after).flatMap(([field, value]) => {
    const change = { field, before: textOf((before as Record<string, unknown>)[field]), after: textOf(value) };
    return value === undefined || change.before === change.after ? [] : [change];
  });
}

/** For what there was nothing of before. */
export const changesOf = (after: object): AuditChange[] => changesBetween({}, after);

function textOf(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
