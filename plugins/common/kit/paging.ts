/** Pages of long lists by cursors; queries read one row more than the page has. Pure. */

import { GatewayError } from '../../../core/contract/errors.ts';
import type { Page, PageRequest } from '../domain/admin/pages.ts';

const mostRows = 500;

/** How many rows to read for a page. Throws an invalid_request of the field `limit`. */
export function rowsFor({ limit }: PageRequest): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= mostRows) return limit + 1;
  throw new GatewayError('invalid_request', `"limit" is a whole number from 1 to ${mostRows}.`, { field: 'limit' });
}

/** The page of rows that were read; `cursorOf` names the row behind which the next page begins. */
export function pageOf<Row, View>(
  rows: readonly Row[],
  { limit }: PageRequest,
  cursorOf: (row: Row) => string,
  viewOf: (row: Row) => View,
): Page<View> {
  const shown = rows.slice(0, limit);
  return { rows: shown.map(viewOf), next: rows.length > limit ? cursorOf(shown.at(-1)!) : undefined };
}

/** The cursor of a page, of this form; undefined: the page is the first. Throws an invalid_request of the field `after`. */
export function cursorIn({ after }: PageRequest, form: RegExp): string | undefined {
  if (after === undefined || form.test(after)) return after;
  throw noSuchPage();
}

/** A cursor of several values, for rows that one value does not identify. */
export function cursorFor(values: readonly string[]): string {
  return Buffer.from(JSON.stringify(values)).toString('base64url');
}

/** The values of such a cursor by name; undefined: the page is the first. Throws an invalid_request of the field `after`. */
export function valuesIn<Names extends string>(
  { after }: PageRequest,
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
  throw noSuchPage();
}

export const noSuchPage = () =>
  new GatewayError('invalid_request', '"after" names no page of this list.', { field: 'after' });

/** For rows with UUIDs as ids. */
export const uuidForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const firstMs = 0;
const lastMs = Date.UTC(9999, 11, 31);

/** Wall-clock milliseconds as a database reads them; a moment beyond all rows becomes the end of time. */
export function instantText(at: number): string {
  if (Number.isNaN(at)) throw new GatewayError('invalid_request', 'A time is not a number of milliseconds.');
  return new Date(Math.min(Math.max(Math.round(at), firstMs), lastMs)).toISOString();
}
