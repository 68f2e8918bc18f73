/** Parts of long lists: how many rows are asked for, and where the next part begins. Pure. */
import type { Page, PageAsk } from './desk.ts';
import { GatewayError } from './errors.ts';

const maxLimit = 500;

/** The number of rows of a page, plus one: whether there are more is seen by it. Throws invalid_request. */
export function rowsToRead({ limit }: PageAsk): number {
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= maxLimit) return limit + 1;
  throw new GatewayError('invalid_request', `A page has 1 to ${maxLimit} rows.`, { field: 'limit' });
}

/** What the page before ended with; undefined for the first page. Throws invalid_request of the field `after`. */
export function cursorOf<Names extends string>(
  { after }: PageAsk,
  ...names: readonly Names[]
): { readonly [K in Names]: string } | undefined {
  if (after === undefined) return undefined;
  try {
    const values: unknown = JSON.parse(Buffer.from(after, 'base64url').toString('utf8'));
    if (Array.isArray(values) && values.length === names.length && values.every((value) => typeof value === 'string'))
      return Object.fromEntries(names.map((name, index) => [name, values[index]])) as { [K in Names]: string };
  } catch {
    // Falls through to the one message.
  }
  throw unreadable();
}

export const unreadable = () =>
  new GatewayError('invalid_request', 'This is not where a page begins.', { field: 'after' });

/** `read` are the rows of one page and perhaps one more; `last` names what a row is found by. */
export function pageOf<Row, View>(
  read: readonly Row[],
  { limit }: PageAsk,
  view: (row: Row) => View,
  last: (row: Row) => readonly string[],
): Page<View> {
  const rows = read.slice(0, limit);
  const next = read.length > limit ? Buffer.from(JSON.stringify(last(rows.at(-1)!))).toString('base64url') : undefined;
  return { rows: rows.map(view), next };
}
