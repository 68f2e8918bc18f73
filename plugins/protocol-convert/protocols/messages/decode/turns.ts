/** Decodes the system prompt and the messages of a messages request into turns. Pure. */

import { isObject, type JsonObject, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { DecodeContext } from '../../../../common/canonical/codec.ts';
import type { Part, TextPart, Turn } from '../../../../common/canonical/prompt.ts';
import { invalid, requireFilled } from '../../../request/checks.ts';
import { decodeContent, requiredText } from './blocks.ts';

/** Tool additions and removals within the conversation, in order. */
export type ToolChange =
  | { readonly change: 'add' | 'remove'; readonly name: string }
  | { readonly change: 'define'; readonly definition: JsonObject; readonly field: string };

export interface Conversation {
  readonly turns: readonly Turn[];
  readonly toolChanges: readonly ToolChange[];
  /** The effort in the last system message that sets one. */
  readonly effort: string | undefined;
}

/**
 * Some clients begin their system prompt with a line for the vendor's billing. It is not part of the prompt, and it changes
 * with each request, so that no prompt cache would ever match.
 */
const billingHeader = /^x-[a-z]+-billing-header:/;

/** The turns in order, the system prompt first. Throws invalid_request that names the field. */
export function decodeConversation(json: JsonObject, context: DecodeContext): Conversation {
  const turns: Turn[] = decodeSystem(json['system'], context);
  const toolChanges: ToolChange[] = [];
  let effort: string | undefined;
  const messages = messagesOf(json);
  const lastUser = messages.findLastIndex((message) => message['role'] === 'user');
  for (const [index, message] of messages.entries()) {
    const field = `messages[${index}]`;
    if (message['role'] === 'system') {
      effort = textOf(objectOf(message['output_config'])?.['effort']) ?? effort;
      const parts = decodeSystemMessage(message, field, context, toolChanges);
      const isOver = message['clear_at'] === 'next_user_message' && index < lastUser;
      if (parts.length > 0 && !isOver) turns.push({ role: 'system', parts });
    } else turns.push(decodeMessage(message, field, context));
  }
  markLast(turns, json['cache_control']);
  return { turns, toolChanges, effort };
}

function messagesOf(json: JsonObject): JsonObject[] {
  return requireFilled(json, 'messages').map((message, index) => {
    if (isObject(message)) return message;
    throw invalid(`The field "messages[${index}]" must be an object.`, `messages[${index}]`);
  });
}

function decodeSystem(system: unknown, context: DecodeContext): Turn[] {
  if (system === undefined || system === null) return [];
  const parts = decodeContent(system, 'system', context).flatMap((part) => {
    if (part.kind !== 'text') throw invalid('The field "system" may hold texts alone.', 'system');
    const text = withoutBillingHeader(part.text);
    return text === '' && part.text !== '' ? [] : [{ ...part, text }];
  });
  return parts.length === 0 ? [] : [{ role: 'system', parts }];
}

function withoutBillingHeader(text: string): string {
  if (!billingHeader.test(text)) return text;
  const end = text.indexOf('\n');
  return end === -1 ? '' : text.slice(end + 1).trimStart();
}

/** Texts of a system message; its tool changes go to `toolChanges`. It may contain only settings. */
function decodeSystemMessage(
  message: JsonObject,
  field: string,
  context: DecodeContext,
  toolChanges: ToolChange[],
): TextPart[] {
  const content = message['content'] ?? [];
  if (!Array.isArray(content)) return textsOf(decodeContent(content, `${field}.content`, context), field);
  const parts: TextPart[] = [];
  for (const [index, block] of content.entries()) {
    const place = `${field}.content[${index}]`;
    const type = objectOf(block)?.['type'];
    if (type === 'tool_addition' || type === 'tool_removal') {
      const change = toolChangeOf(objectOf((block as JsonObject)['tool']), type, place);
      if (change === undefined) context.dropped.dropField(type);
      else toolChanges.push(change);
    } else parts.push(...textsOf(decodeContent([block], place, context), field));
  }
  return parts;
}

/** MCP servers that the vendor calls itself have no counterpart: undefined. */
function toolChangeOf(tool: JsonObject | undefined, type: string, field: string): ToolChange | undefined {
  const definition = objectOf(tool?.['definition']);
  if (definition !== undefined) return { change: 'define', definition, field: `${field}.tool.definition` };
  if (tool?.['type'] !== 'tool_reference') return undefined;
  const change = type === 'tool_addition' ? 'add' : 'remove';
  return { change, name: requiredText(tool, 'name', `${field}.tool`) };
}

function textsOf(parts: readonly Part[], field: string): TextPart[] {
  return parts.map((part) => {
    if (part.kind === 'text') return part;
    throw invalid(`The field "${field}.content" may hold texts alone.`, `${field}.content`);
  });
}

function decodeMessage(message: JsonObject, field: string, context: DecodeContext): Turn {
  const { role } = message;
  if (role !== 'user' && role !== 'assistant')
    throw invalid(`The field "${field}.role" must be user, assistant or system.`, `${field}.role`);
  const parts = decodeContent(message['content'], `${field}.content`, context);
  for (const { kind } of parts) {
    const isMisplaced = role === 'user' ? kind === 'tool-call' || kind === 'reasoning' : kind === 'tool-result';
    if (isMisplaced)
      throw invalid(`The field "${field}.content" holds a block that no ${role} may say.`, `${field}.content`);
  }
  return { role, parts };
}

/** A cache mark on the request itself applies to its last block. */
function markLast(turns: Turn[], control: unknown): void {
  const turn = turns.at(-1);
  const part = turn?.parts.at(-1);
  if (!isObject(control) || turn === undefined || part === undefined) return;
  if (part.kind === 'refusal' || part.kind === 'reasoning' || part.kind === 'search') return;
  const cache = control['ttl'] === '1h' ? 'long' : 'short';
  turns[turns.length - 1] = { ...turn, parts: [...turn.parts.slice(0, -1), { ...part, cache }] };
}
