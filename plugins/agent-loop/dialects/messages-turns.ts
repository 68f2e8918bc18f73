/** Blocks of MCP in the protocol of messages: of earlier runs as a model reads them, and those of this run. Pure. */
import { isObject, type JsonObject, listOf, tryParse } from '../../../core/json/json.ts';
import type { Offered } from '../offered.ts';
import type { ToolDone, ToolUse } from '../talk.ts';

/** The client sees `mcptoolu_1` for the vendor's `toolu_1`. */
const shownId = (id: string): string => (id.startsWith('toolu_') ? `mcp${id}` : `mcptoolu_${id}`);

export function useBlock({ id, name, ...use }: ToolUse, offered: Offered): JsonObject {
  const server_name = offered.find(name)?.wanted.label ?? '';
  return { type: 'mcp_tool_use', id: shownId(id), name, server_name, input: tryParse(use.arguments) ?? {} };
}

export function resultBlock({ id, output, isError }: ToolDone): JsonObject {
  return {
    type: 'mcp_tool_result',
    tool_use_id: shownId(id),
    is_error: isError,
    content: [{ type: 'text', text: output }],
  };
}

/** Turns with blocks of these servers are cut where a result stands: the model has it from the user, as that of any tool. */
export function readTurns(messages: readonly unknown[], offered: Offered): unknown[] {
  return messages.flatMap((message): unknown[] => {
    if (!isObject(message) || message['role'] !== 'assistant' || !Array.isArray(message['content'])) return [message];
    const { content } = message;
    const own = new Set(content.flatMap((block) => (isUse(block, offered) ? [block['id']] : [])));
    return own.size === 0 ? [message] : cutTurn(message, content, own);
  });
}

function isUse(block: unknown, offered: Offered): block is JsonObject {
  return isObject(block) && block['type'] === 'mcp_tool_use' && offered.hasLabel(block['server_name']);
}

function cutTurn(message: JsonObject, content: readonly unknown[], own: ReadonlySet<unknown>): JsonObject[] {
  const turns: JsonObject[] = [];
  let said: unknown[] = [];
  let heard: unknown[] = [];
  const end = () => {
    if (said.length > 0) turns.push({ ...message, content: said });
    if (heard.length > 0) turns.push({ role: 'user', content: heard });
    [said, heard] = [[], []];
  };
  for (const block of content) {
    if (isObject(block) && block['type'] === 'mcp_tool_result' && own.has(block['tool_use_id'])) {
      heard.push({ ...plainResult(block), tool_use_id: String(block['tool_use_id']) });
      continue;
    }
    const isOwn = isObject(block) && own.has(block['id']);
    // Calls that were made together are read together.
    if (heard.length > 0 && !isOwn) end();
    if (isOwn) said.push({ type: 'tool_use', id: block['id'], name: block['name'], input: block['input'] ?? {} });
    else said.push(block);
  }
  end();
  return turns;
}

const plainResult = ({ content, is_error }: JsonObject): JsonObject => ({
  ...{
    type: 'tool_result',
    content: typeof content === 'string' ? content : listOf(content),
    is_error: is_error === true,
  },
});
