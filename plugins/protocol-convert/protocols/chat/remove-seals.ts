/** Removes the gateway's own sealed texts from a chat request that is relayed: no vendor can read them. Pure. */

import { isObject, type JsonObject, listOf } from '../../../../core/json/json.ts';
import { isSealed } from '../../encoding/sealed-text.ts';
import { opaqueOf, thoughtSignature } from './opaque-state.ts';

/** Prefix of every sealed text. */

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
