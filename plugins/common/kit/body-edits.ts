/** The changes that a relayed body may suffer, as splices: alias, dialect, and the usage option of chat streams. Pure. */

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

/** The body for this target, and which of its members the provider's dialect has cost it. Same bytes when nothing changes. */
export function editBody(
  body: RequestBody,
  target: Target,
  more: { changes?: Changes; edits?: readonly Edit[] } = {},
): { body: Uint8Array; dropped: readonly string[] } {
  const unwanted = target.upstream.dropFields[target.protocol] ?? [];
  const alias = aliasOf(body, target);
  if (unwanted.length === 0 && alias === undefined && more.changes === undefined && more.edits === undefined)
    return { body: body.bytes, dropped: unwanted };
  const dropped = unwanted.filter((name) => findMember(body.scan, name) !== undefined);
  const edits = editsFor(body.scan, {
    replace: { ...more.changes?.replace, ...alias },
    remove: new Set([...dropped, ...(more.changes?.remove ?? [])]),
    insert: more.changes?.insert ?? {},
  });
  return { body: applyEdits(body.bytes, [...edits, ...(more.edits ?? [])]), dropped };
}

function aliasOf({ json }: RequestBody, target: Target): Record<string, string> | undefined {
  const { model } = json;
  return model === undefined || model === target.model ? undefined : { model: JSON.stringify(target.model) };
}

/** Changes inside a member that is an object; none when it is absent or something else. */
export function nestedEdits(body: RequestBody, key: string, changes: Changes): Edit[] {
  const member = findMember(body.scan, key);
  return member === undefined || !isObjectAt(body.bytes, member)
    ? []
    : editsFor(scanObject(body.bytes, member.valueStart), changes);
}
