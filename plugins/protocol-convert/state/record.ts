/** What is kept of an answer that a client may come back to: all of it, or only where it is. Pure. */
import type { Pinned } from '../../../core/vocabulary.ts';

interface Common {
  /** The answer's id, as the client has it. */
  readonly id: string;
  /** '' where the gateway asks nobody who they are. */
  readonly accountId: string;
  /** Milliseconds of the wall clock. */
  readonly createdAt: number;
  readonly expiresAt: number;
  /** Ids of the answer's items. */
  readonly itemIds: readonly string[];
}

/** The gateway has it: the answer was translated, so no upstream knows its id. */
export interface KeptResponse extends Common {
  readonly kind: 'kept';
  /** JSON text of a list: all that the answer was given for, those of earlier answers included. */
  readonly input: string;
  /** JSON text of the response object. */
  readonly response: string;
}

/** An upstream has it, and only by this key. */
export interface RelayedResponse extends Common, Pinned {
  readonly kind: 'relayed';
  /** Tokens of the conversation up to here; undefined where the upstream did not tell. */
  readonly tokens: number | undefined;
}

export type ResponseRecord = KeptResponse | RelayedResponse;

const longestId = 200;
const mostItems = 1_000;

/** Ids are what others made up: kept only where they are plain and short (no space: the store joins them by spaces). */
export function isStorableId(id: unknown): id is string {
  return typeof id === 'string' && id.length <= longestId && /^[\x21-\x7e]+$/.test(id);
}

/** The ids among these that can be kept, bounded. */
export function storableIds(ids: readonly unknown[]): string[] {
  return ids.filter(isStorableId).slice(0, mostItems);
}

/** Memory that a record takes, at most: characters may take two bytes. */
export function sizeOf(record: ResponseRecord): number {
  const texts = record.kind === 'kept' ? record.input.length + record.response.length : 0;
  const ids = record.itemIds.reduce((sum, id) => sum + id.length + 64, 0);
  return 512 + 2 * (texts + ids);
}
