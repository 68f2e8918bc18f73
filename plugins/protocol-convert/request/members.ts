/** Reads single members of a request and checks their type; null counts as absent. Pure. */

import { isObject, type JsonObject } from '../../../core/json/json.ts';
import { invalid } from './checks.ts';

/** The same object without the members that are undefined. */
type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** The same object without its undefined members. */
export function present<T extends object>(members: T): Present<T> {
  const kept: Partial<T> = {};
  for (const key of Object.keys(members) as (keyof T)[]) if (members[key] !== undefined) kept[key] = members[key];
  return kept as Present<T>;
}

/** Throws invalid_request unless the member is a number from `least` to `most`. */
export function numberMember(json: JsonObject, field: string, least: number, most: number): number | undefined {
  const value = json[field] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value === 'number' && value >= least && value <= most) return value;
  throw invalid(`The field "${field}" must be a number from ${least} to ${most}.`, field);
}

/** Throws invalid_request unless the member is a whole number. */
export function integerMember(json: JsonObject, field: string): number | undefined {
  const value = json[field] ?? undefined;
  if (value === undefined || Number.isSafeInteger(value)) return value as number | undefined;
  throw invalid(`The field "${field}" must be a whole number.`, field);
}

/** Throws invalid_request unless the member is true or false. */
export function booleanMember(json: JsonObject, field: string, name = field): boolean | undefined {
  const value = json[field] ?? undefined;
  if (value === undefined || typeof value === 'boolean') return value;
  throw invalid(`The field "${name}" must be true or false.`, name);
}

/** Throws invalid_request unless the member is a string; an empty one counts as absent. */
export function textMember(json: JsonObject, field: string, name = field): string | undefined {
  const value = json[field] ?? undefined;
  if (value === undefined || value === '') return undefined;
  if (typeof value === 'string') return value;
  throw invalid(`The field "${name}" must be a string.`, name);
}

/** Throws invalid_request unless the member is an object. */
export function objectMember(json: JsonObject, field: string, name = field): JsonObject | undefined {
  const value = json[field] ?? undefined;
  if (value === undefined || isObject(value)) return value;
  throw invalid(`The field "${name}" must be an object.`, name);
}

/** Throws invalid_request unless the member is a list; absent: empty. */
export function listMember(json: JsonObject, field: string, name = field): readonly unknown[] {
  const value = json[field] ?? [];
  if (Array.isArray(value)) return value;
  throw invalid(`The field "${name}" must be a list.`, name);
}
