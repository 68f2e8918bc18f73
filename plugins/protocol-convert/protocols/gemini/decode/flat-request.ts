/** Converts the specification's flat request (4.6) into the official shape. Pure. */
import { type JsonObject, objectOf } from '../../../../../core/json/json.ts';
import { rename, toCamel } from '../names.ts';

/** Members of the flat request that belong to `generationConfig` in the official shape. */
const generationFields = new Set([
  'candidateCount',
  'temperature',
  'topP',
  'topK',
  'maxOutputTokens',
  'stopSequences',
  'responseModalities',
]);

/** The gateway's own members, which the official body does not have. */
const ownFields = new Set(['stream', 'model']);

/**
 * Whether only the specification's shape fits: the request has a top-level `stream`, or generation settings at the top level
 * and no `generationConfig`. The case of member names proves nothing: the vendor accepts both, mixed, and answers in
 * camelCase.
 */
export function isSpecRequest(json: JsonObject): boolean {
  if (isGiven(json['stream'])) return true;
  if (isGiven(json['generationConfig']) || isGiven(json['generation_config'])) return false;
  return Object.keys(json).some((name) => generationFields.has(toCamel(name)) && isGiven(json[name]));
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** The official body: camelCase, generation settings in `generationConfig` (a flat one wins), without the gateway's own members. */
export function officialRequest(json: JsonObject): JsonObject {
  const official: Record<string, unknown> = {};
  const generation: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(rename(json, toCamel) as JsonObject)) {
    if (ownFields.has(name)) continue;
    if (generationFields.has(name)) generation[name] = value;
    else official[name] = value;
  }
  if (Object.keys(generation).length > 0)
    official['generationConfig'] = { ...objectOf(official['generationConfig']), ...generation };
  return official;
}
