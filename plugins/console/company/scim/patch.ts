/** Changes by PATCH (RFC 7644, 3.5.2) as directories send them: Entra with capital letters and texts for booleans, Okta with objects. Pure. */
import { isObject, type JsonObject } from '../../../../core/json/json.ts';
import { wrong } from './shapes.ts';

export interface Operation {
  readonly op: 'add' | 'replace' | 'remove';
  /** Path of one attribute; undefined: `value` has several. */
  readonly path: string | undefined;
  readonly value: unknown;
}

const mostOperations = 1_000;

export function operationsOf(body: JsonObject): Operation[] {
  const list = body['Operations'];
  if (!Array.isArray(list) || list.length === 0 || list.length > mostOperations)
    throw wrong('Operations must be a list.', 'invalidSyntax');
  return list.map((one: unknown) => {
    const { op, path, value } = isObject(one) ? one : ({} as JsonObject);
    const name = String(op).toLowerCase();
    if (name !== 'add' && name !== 'replace' && name !== 'remove')
      throw wrong('op must be add, replace or remove.', 'invalidSyntax');
    if (path !== undefined && (typeof path !== 'string' || path.length > 300))
      throw wrong('path must be a text.', 'invalidPath');
    return { op: name, path, value };
  });
}

/** A user after one change: attributes that are not kept are as they were. */
export function changedUser(user: JsonObject, { op, path, value }: Operation): JsonObject {
  if (path !== undefined) return withValue(user, path, op === 'remove' ? undefined : value);
  if (!isObject(value)) throw wrong('Without a path, value must be an object.', 'invalidValue');
  return Object.entries(value).reduce((changed, [name, one]) => withValue(changed, name, one), user);
}

const plainPath = /^([a-z]+)$/i;
const partPath = /^(name)\.([a-z]+)$/i;
/** `emails[type eq "work"].value` */
const filteredPath = /^(emails)\[\s*(type|primary)\s+eq\s+"?([^"\]]*)"?\s*\](?:\.value)?$/i;

function withValue(user: JsonObject, given: string, value: unknown): JsonObject {
  const path = given.replace(/^urn:ietf:params:scim:schemas:core:2\.0:User:/i, '');
  const filtered = filteredPath.exec(path);
  if (filtered !== null) return { ...user, emails: withMail(user['emails'], filtered[3]!, value) };
  const part = partPath.exec(path);
  if (part !== null) {
    const name = isObject(user['name']) ? user['name'] : {};
    return { ...user, name: { ...name, [part[2]!]: value } };
  }
  const name = plainPath.exec(path)?.[1];
  // What is not kept here, such as an address or a title, is taken and forgotten.
  if (name === undefined) return user;
  const known = Object.keys(user).find((one) => one.toLowerCase() === name.toLowerCase()) ?? name;
  const isMerged = known === 'name' && isObject(value) && isObject(user['name']);
  return { ...user, [known]: isMerged ? { ...(user['name'] as JsonObject), ...value } : value };
}

function withMail(emails: unknown, type: string, value: unknown): unknown[] {
  const list: unknown[] = Array.isArray(emails) ? emails : [];
  const others = list.filter((one) => !(isObject(one) && String(one['type'] ?? one['primary']) === type));
  const address = isObject(value) ? value['value'] : value;
  return address === undefined || address === '' ? others : [...others, { type, value: address }];
}

/** Ids of a group's members after one change. */
export function changedMembers(members: ReadonlySet<string>, { op, path, value }: Operation): ReadonlySet<string> {
  const one = /^members\[\s*value\s+eq\s+"([^"]+)"\s*\]$/i.exec(path ?? '')?.[1];
  if (one !== undefined) {
    if (op === 'remove') return new Set([...members].filter((id) => id !== one));
    return new Set([...members, one]);
  }
  if (op === 'remove') {
    // All of them, where none is named.
    const gone = value === undefined ? members : new Set(idsIn(value));
    return new Set([...members].filter((id) => !gone.has(id)));
  }
  const given = idsIn(value);
  return new Set(op === 'replace' ? given : [...members, ...given]);
}

export const isOfMembers = ({ path }: Operation) => path !== undefined && /^members\b/i.test(path);

export function idsIn(value: unknown): string[] {
  return [value].flat().flatMap((one: unknown) => {
    const id = isObject(one) ? one['value'] : one;
    return typeof id === 'string' ? [id] : [];
  });
}
