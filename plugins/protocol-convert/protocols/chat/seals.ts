/** Takes the gateway's own sealed texts out of a chat request that is relayed: no vendor could read them. Pure. */
import { isObject, type JsonObject, listOf } from '../../json.ts';
import { opaqueOf, thoughtSignature } from './keepsakes.ts';

/** How every sealed text begins. */
const sealPrefix = 'gw1.';

const isSealed = (text: string | undefined) => text?.startsWith(sealPrefix) ?? false;

export function withoutSeals(json: JsonObject): JsonObject {
  return {
    ...json,
    messages: listOf(json['messages']).map((message) => (isObject(message) ? unsealed(message) : message)),
  };
}

function unsealed(message: JsonObject): JsonObject {
  const kept: Record<string, unknown> = { ...withoutSignature(message) };
  for (const field of ['reasoning_details', 'thinking_blocks', 'content', 'images']) {
    const list = kept[field];
    if (!Array.isArray(list) || !list.some(holdsSeal)) continue;
    kept[field] = list.filter((entry) => !isObject(entry) || !isSealed(opaqueOf(entry))).map(plainEntry);
    if (listOf(kept[field]).length === 0 && field !== 'content') delete kept[field];
  }
  if (Array.isArray(kept['tool_calls'])) kept['tool_calls'] = kept['tool_calls'].map(plainEntry);
  return kept;
}

function holdsSeal(entry: unknown): boolean {
  return isObject(entry) && (isSealed(opaqueOf(entry)) || isSealed(thoughtSignature(entry)));
}

function plainEntry(entry: unknown): unknown {
  return isObject(entry) ? withoutSignature(entry) : entry;
}

function withoutSignature(holder: JsonObject): JsonObject {
  if (!isSealed(thoughtSignature(holder))) return holder;
  const { extra_content: _, ...rest } = holder;
  return rest;
}
