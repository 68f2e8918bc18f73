/** A request's input items: what of earlier answers it builds on, the same with that in its own input, the order to compact. Pure. */
import { invalid } from '../../checks.ts';
import { isObject, type JsonObject, listOf, textOf } from '../../json.ts';

/** What a request refers to instead of sending it. */
export interface References {
  readonly responseId: string | undefined;
  readonly itemIds: readonly string[];
}

/** undefined: the request brings all that it needs. Throws invalid_request for an id that is no text. */
export function referencesIn(json: JsonObject): References | undefined {
  const id = json['previous_response_id'] ?? undefined;
  if (id !== undefined && typeof id !== 'string')
    throw invalid('The field "previous_response_id" must be a string.', 'previous_response_id');
  const itemIds = listOf(json['input']).flatMap((item) => referenceOf(item) ?? []);
  return id === undefined && itemIds.length === 0 ? undefined : { responseId: id, itemIds };
}

/** The id that an item stands for; its type may be left out, then nothing else is in it. */
function referenceOf(item: unknown): string | undefined {
  if (!isObject(item)) return undefined;
  const type = item['type'] ?? undefined;
  const isReference =
    type === 'item_reference' || (type === undefined && item['role'] === undefined && item['content'] === undefined);
  return isReference ? textOf(item['id']) : undefined;
}

/** The input as a list of items; a text is one message of the user. */
export function inputItems(json: JsonObject): readonly unknown[] {
  const { input } = json;
  return typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : listOf(input);
}

/** `earlier` and then the request's own input, with the items that it refers to in their place. */
export function expandedInput(
  json: JsonObject,
  earlier: readonly JsonObject[],
  items: ReadonlyMap<string, JsonObject>,
): readonly unknown[] {
  const own = inputItems(json).map((item) => items.get(referenceOf(item) ?? '') ?? item);
  return [...sinceCompaction(earlier), ...own];
}

/**
 * Of a conversation that was compacted, what counts from then on: the compacted item and what follows it, and what people
 * (not models or tools) had said before.
 */
function sinceCompaction(items: readonly JsonObject[]): readonly JsonObject[] {
  const last = items.findLastIndex((item) => item['type'] === 'compaction');
  if (last <= 0) return items;
  const said = items.slice(0, last).filter((item) => isMessage(item) && item['role'] !== 'assistant');
  return [...said, ...items.slice(last)];
}

function isMessage(item: JsonObject): boolean {
  return (item['type'] ?? 'message') === 'message' && typeof item['role'] === 'string';
}

/** Items of these types carry an id of the gateway's own making, which no vendor knows. */
const ownIds = new Set([
  'message',
  'reasoning',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'compaction',
]);

/**
 * The same items for a vendor that has never seen them: without ids, and without reasoning of which it has nothing left
 * (it would look for that in its own store).
 */
export function foreignItems(items: readonly unknown[]): readonly unknown[] {
  return items.flatMap((item) => {
    if (!isObject(item) || !ownIds.has(textOf(item['type']) ?? 'message')) return [item];
    if (item['type'] === 'reasoning' && textOf(item['encrypted_content']) === undefined) return [];
    const { id: _id, status: _status, ...rest } = item;
    return [rest];
  });
}

/** The last item orders that the conversation before it be summarised. */
export function endsWithTrigger(json: JsonObject): boolean {
  const last = listOf(json['input']).at(-1);
  return isObject(last) && last['type'] === 'compaction_trigger';
}

/** The request without orders to compact, wherever they stand. */
export function withoutTriggers(json: JsonObject): JsonObject {
  const { input } = json;
  if (!Array.isArray(input)) return json;
  return { ...json, input: input.filter((item) => !isObject(item) || item['type'] !== 'compaction_trigger') };
}

/** Messages of the user, as they stand in the input. */
export function userMessages(json: JsonObject): readonly JsonObject[] {
  return inputItems(json).filter(
    (item): item is JsonObject => isObject(item) && isMessage(item) && item['role'] === 'user',
  );
}
