/** Reads and checks members of a client's body; errors name the member, and null counts as absent. Pure. */
import type { JsonObject } from '../../../../core/json/json.ts';
import { invalid } from '../../../../core/json/request-body.ts';

/** A required, non-empty string. */
export function requiredText(json: JsonObject, field: string): string {
  const value = json[field];
  if (value === undefined || value === null || value === '') throw invalid(`The field "${field}" is missing.`, field);
  if (typeof value !== 'string') throw invalid(`The field "${field}" must be a string.`, field);
  return value;
}

export function optionalText(json: JsonObject, field: string): string | undefined {
  const value = json[field] ?? undefined;
  if (value !== undefined && typeof value !== 'string') throw invalid(`The field "${field}" must be a string.`, field);
  return value === '' ? undefined : value;
}

/** One of a list of values. */
export function optionalEnum<Word extends string>(
  json: JsonObject,
  field: string,
  words: readonly Word[],
): Word | undefined {
  const value = json[field] ?? undefined;
  if (value === undefined) return undefined;
  const found = words.find((word) => word === value);
  if (found !== undefined) return found;
  throw invalid(`The field "${field}" must be one of ${words.join(', ')}.`, field);
}

export function optionalFlag(json: JsonObject, field: string): boolean | undefined {
  const value = json[field] ?? undefined;
  if (value === undefined || typeof value === 'boolean') return value;
  throw invalid(`The field "${field}" must be true or false.`, field);
}

/** A whole number within both bounds. */
export function optionalWhole(json: JsonObject, field: string, least: number, most: number): number | undefined {
  const value = json[field] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  throw invalid(`The field "${field}" must be a whole number from ${least} to ${most}.`, field);
}

export function optionalList(json: JsonObject, field: string): readonly unknown[] {
  const value = json[field] ?? undefined;
  if (value !== undefined && !Array.isArray(value)) throw invalid(`The field "${field}" must be a list.`, field);
  return value ?? [];
}

const longestAddress = 8_192;

/** The callback's address; whether the guard allows it is checked elsewhere. */
export function optionalAddress(json: JsonObject, field: string): string | undefined {
  const value = optionalText(json, field);
  if (value !== undefined && !isWebAddress(value))
    throw invalid(`The field "${field}" must be an http or https URL.`, field);
  return value;
}

export function isWebAddress(text: string): boolean {
  if (text.length > longestAddress || !/^https?:\/\//i.test(text)) return false;
  const url = URL.parse(text);
  return url !== null && url.hostname !== '';
}

/** Members that no reader has used, under the client's names. */
export function restOf(json: JsonObject, read: ReadonlySet<string>): JsonObject {
  const entries = Object.entries(json).filter(
    ([name, value]) => !read.has(name) && value !== null && value !== undefined,
  );
  return Object.fromEntries(entries);
}
