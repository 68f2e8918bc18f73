/** `metadata` that clients attach to objects which the gateway keeps, by OpenAI's rule. Pure. */
import { isObject, type JsonObject } from '../../../../core/json/json.ts';
import { invalid } from '../../../../core/json/request-body.ts';

const mostMembers = 16;

/** undefined: absent or null. Throws invalid_request. */
export function metadataIn({ metadata }: JsonObject): Readonly<Record<string, string>> | undefined {
  if (metadata === undefined || metadata === null) return undefined;
  const entries = isObject(metadata) ? Object.entries(metadata) : [];
  const fits = ([name, value]: [string, unknown]) =>
    name.length <= 64 && typeof value === 'string' && value.length <= 512;
  if (!isObject(metadata) || entries.length > mostMembers || !entries.every(fits))
    throw invalid(
      `The field "metadata" has at most ${mostMembers} texts of 512 characters, with names of 64.`,
      'metadata',
    );
  return Object.fromEntries(entries) as Record<string, string>;
}
