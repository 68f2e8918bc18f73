/** The changes that a relayed body may suffer, as splices: alias, dialect, and the usage option of chat streams. Pure. */

import type { JsonObject } from '../../../core/json/json.ts';
import type { RequestBody } from '../../../core/json/request-body.ts';
import {
  applyEdits,
  type Changes,
  type Edit,
  editsFor,
  findMember,
  isObjectAt,
  scanObject,
} from '../../../core/json/splice.ts';
import type { Target } from '../domain/upstreams.ts';

/** Top-level members of a request that differ: some are set to a value, some are left out. */
export interface MemberChanges {
  readonly set?: JsonObject | undefined;
  readonly remove?: readonly string[] | undefined;
  /** Parameters of the client that the request omits, by the client's names. */
  readonly dropped?: readonly string[] | undefined;
}

/** `members` over what else changes. */
export interface BodyChanges {
  readonly changes?: Changes;
  readonly edits?: readonly Edit[];
  readonly members?: MemberChanges | undefined;
}

/** The body for this target, and which of its members the provider's dialect has cost it. Same bytes when nothing changes. */
export function editBody(
  body: RequestBody,
  target: Target,
  more: BodyChanges = {},
): { body: Uint8Array; dropped: readonly string[] } {
  const unwanted = target.upstream.dropFields[target.protocol] ?? [];
  const { model } = body.json;
  const alias = model === undefined || model === target.model ? undefined : { model: JSON.stringify(target.model) };
  const { changes, members } = more;
  if (unwanted.length === 0 && alias === undefined && !changes && !more.edits && !members)
    return { body: body.bytes, dropped: unwanted };
  const dropped = unwanted.filter((name) => findMember(body.scan, name) !== undefined);
  const own = settingsOf(body, members);
  const edits = editsFor(body.scan, {
    replace: { ...changes?.replace, ...alias, ...own.replace },
    remove: new Set([...dropped, ...(changes?.remove ?? []), ...(members?.remove ?? [])]),
    insert: { ...changes?.insert, ...own.insert },
  });
  return {
    body: applyEdits(body.bytes, [...edits, ...(more.edits ?? [])]),
    dropped: members?.dropped === undefined ? dropped : [...dropped, ...members.dropped],
  };
}

/** A member that is there gets its value in its place. */
function settingsOf({ scan }: RequestBody, { set = {} }: MemberChanges = {}) {
  const replace: Record<string, string> = {};
  const insert: Record<string, string> = {};
  for (const [name, value] of Object.entries(set))
    (findMember(scan, name) === undefined ? insert : replace)[name] = JSON.stringify(value);
  return { replace, insert };
}

/** The same of a body that is encoded again. */
export function changedBody(body: JsonObject, { set = {}, remove = [] }: MemberChanges): JsonObject {
  const kept = Object.entries(body).filter(([name]) => !remove.includes(name));
  return { ...Object.fromEntries(kept), ...set };
}

/** Changes inside a member that is an object; none when it is absent or something else. */
export function nestedEdits(body: RequestBody, key: string, changes: Changes): Edit[] {
  const member = findMember(body.scan, key);
  return member === undefined || !isObjectAt(body.bytes, member)
    ? []
    : editsFor(scanObject(body.bytes, member.valueStart), changes);
}
