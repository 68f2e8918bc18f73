/** The stored record of an answer that a client may refer to: its content, or its location. Pure. */
import type { Pinned } from '../../common/domain/calls.ts';

interface Common {
  /** The answer's id as the client has it. */
  readonly id: string;
  /** '' where the gateway does not authenticate clients. */
  readonly accountId: string;
  /** Milliseconds of the wall clock. */
  readonly createdAt: number;
  readonly expiresAt: number;
  /** Ids of the answer's items. */
  readonly itemIds: readonly string[];
}

/** The gateway stores it: the answer was translated, so no upstream knows its id. */
export interface KeptResponse extends Common {
  readonly kind: 'kept';
  /** JSON text of a list: the whole input of the answer, including earlier answers. */
  readonly input: string;
  /** JSON text of the response object. */
  readonly response: string;
}

/** An upstream stores it; only this key has access. */
export interface RelayedResponse extends Common, Pinned {
  readonly kind: 'relayed';
  readonly protocol: string;
  /** Tokens of the conversation up to here; undefined where the upstream did not report them. */
  readonly tokens: number | undefined;
}

export type ResponseRecord = KeptResponse | RelayedResponse;

const longestId = 200;
const mostItems = 1_000;

/** Ids come from outside: stored only if they are plain and short (no space: the store joins them by spaces). */
export function isStorableId(id: unknown): id is string {
  return typeof id === 'string' && id.length <= longestId && /^[\x21-\x7e]+$/.test(id);
}

/** The storable ids among these, bounded. */
export function storableIds(ids: readonly unknown[]): string[] {
  return ids.filter(isStorableId).slice(0, mostItems);
}

/** The maximum memory of a record: characters may take two bytes. */
export function sizeOf(record: ResponseRecord): number {
  const texts = record.kind === 'kept' ? record.input.length + record.response.length : 0;
  const ids = record.itemIds.reduce((sum, id) => sum + id.length + 64, 0);
  return 512 + 2 * (texts + ids);
}
