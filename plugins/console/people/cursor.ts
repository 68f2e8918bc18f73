/** Places in lists that are ordered by time and id. Pure. */
import { GatewayError } from '../../../core/contract/errors.ts';

export interface Cursor {
  readonly at: Date;
  readonly id: string;
}

export function cursorOf(at: number, id: string): string {
  return `${at.toString(36)}.${id}`;
}

/** Throws invalid_request where it is none. */
export function readCursor(text: string | undefined): Cursor | undefined {
  if (text === undefined) return undefined;
  const [, digits, id] = /^([0-9a-z]{1,10})\.([\w-]{1,100})$/.exec(text) ?? [];
  const at = new Date(Number.parseInt(digits ?? 'none', 36));
  if (id === undefined || Number.isNaN(at.getTime()))
    throw new GatewayError('invalid_request', '"after" is not the next of a page.', { field: 'after' });
  return { at, id };
}
