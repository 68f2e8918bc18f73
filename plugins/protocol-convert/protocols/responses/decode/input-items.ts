/** A request's input items: references to earlier answers, their replacement by the items, the compaction order. Pure. */

import { GatewayError } from '../../../../../core/contract/errors.ts';
import { isObject, type JsonObject, listOf, textOf } from '../../../../../core/json/json.ts';
import { invalid } from '../../../request/checks.ts';

/** References to stored items or answers in a request. */
export interface References {
  readonly responseId: string | undefined;
  /** What `conversation` names; it may be the gateway's or a vendor's. */
  readonly conversationId: string | undefined;
  readonly itemIds: readonly string[];
}

/** undefined: the request is complete in itself. Throws invalid_request for an id that is not a string, and for two at once. */
export function referencesIn(json: JsonObject): References | undefined {
  const id = json['previous_response_id'] ?? undefined;
  if (id !== undefined && typeof id !== 'string')
    throw invalid('The field "previous_response_id" must be a string.', 'previous_response_id');
  const itemIds = listOf(json['input']).flatMap((item) => referenceOf(item) ?? []);
  const conversationId = conversationIn(json);
  if (id !== undefined && conversationId !== undefined) {
    const message = 'Only one of the fields "previous_response_id" and "conversation" may be there.';
    throw new GatewayError('invalid_request', message, {
      field: 'conversation',
      code: 'mutually_exclusive_parameters',
    });
  }
  return id === undefined && conversationId === undefined && itemIds.length === 0
    ? undefined
    : { responseId: id, conversationId, itemIds };
}

function conversationIn({ conversation }: JsonObject): string | undefined {
  if (conversation === undefined || conversation === null) return undefined;
  const id = isObject(conversation) ? conversation['id'] : conversation;
  if (typeof id === 'string') return id;
  throw invalid('The field "conversation" must be an id, or an object with an id.', 'conversation');
}

/** The id in an item reference; its type may be omitted, and then the item has no other member. */
function referenceOf(item: unknown): string | undefined {
  if (!isObject(item)) return undefined;
  const type = item['type'] ?? undefined;
  const isReference =
    type === 'item_reference' || (type === undefined && item['role'] === undefined && item['content'] === undefined);
  return isReference ? textOf(item['id']) : undefined;
}

/** The input as a list of items; a string is one message of the user. */
export function inputItems(json: JsonObject): readonly unknown[] {
  const { input } = json;
  return typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : listOf(input);
}

/** `earlier` followed by the request's own input, with item references replaced by the items. */
export function expandedInput(
  json: JsonObject,
  earlier: readonly JsonObject[],
  items: ReadonlyMap<string, JsonObject>,
): readonly unknown[] {
  const own = inputItems(json).map((item) => items.get(referenceOf(item) ?? '') ?? item);
  return [...sinceCompaction(earlier), ...own];
}

/**
 * The effective part of a compacted conversation: the compaction item and what follows it, and earlier messages from people
 * (not from models or tools).
 */
function sinceCompaction(items: readonly JsonObject[]): readonly JsonObject[] {
  const last = items.findLastIndex((item) => item['type'] === 'compaction');
  if (last <= 0) return items;
  const userMessages = items.slice(0, last).filter((item) => isMessage(item) && item['role'] !== 'assistant');
  return [...userMessages, ...items.slice(last)];
}

function isMessage(item: JsonObject): boolean {
  return (item['type'] ?? 'message') === 'message' && typeof item['role'] === 'string';
}

/** Item types with an id from the gateway, which no vendor knows. */
const ownIds = new Set([
  'message',
  'reasoning',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'tool_search_call',
  'tool_search_output',
  'compaction',
]);

/**
 * The same items for a vendor that has never received them: without ids, and without reasoning that has no content of its own
 * (the vendor would look for it in its store).
 */
export function foreignItems(items: readonly unknown[]): readonly unknown[] {
  return items.flatMap((item) => {
    if (!isObject(item) || !ownIds.has(textOf(item['type']) ?? 'message')) return [item];
    if (item['type'] === 'reasoning' && textOf(item['encrypted_content']) === undefined) return [];
    const { id: _id, status: _status, ...rest } = item;
    return [rest];
  });
}

/** The last item orders a summary of the conversation before it. */
export function endsWithTrigger(json: JsonObject): boolean {
  const last = listOf(json['input']).at(-1);
  return isObject(last) && last['type'] === 'compaction_trigger';
}

/** The request without compaction orders, at any position. */
export function withoutTriggers(json: JsonObject): JsonObject {
  const { input } = json;
  if (!Array.isArray(input)) return json;
  return { ...json, input: input.filter((item) => !isObject(item) || item['type'] !== 'compaction_trigger') };
}

/** Messages of the user, as in the input. */
export function userMessages(json: JsonObject): readonly JsonObject[] {
  return inputItems(json).filter(
    (item): item is JsonObject => isObject(item) && isMessage(item) && item['role'] === 'user',
  );
}
