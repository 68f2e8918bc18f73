/** Blocks of MCP in the protocol of messages: of earlier runs as a model reads them, and those of this run. Pure. */
import { isObject, type JsonObject, listOf, tryParse } from '../../../core/json/json.ts';
import type { Offered } from '../offered.ts';
import type { ToolDone, ToolUse } from '../talk.ts';
import { isOwnResult, isOwnUse, readResult, searchResult, searchUse, withoutOwnCitations } from './messages-search.ts';

/** The client sees `mcptoolu_1` for the vendor's `toolu_1`. */
const shownId = (id: string): string => (id.startsWith('toolu_') ? `mcp${id}` : `mcptoolu_${id}`);

export function useBlock(call: ToolUse, offered: Offered): JsonObject {
  if (offered.isSearch(call.name)) return searchUse(call);
  const { id, name, ...use } = call;
  const server_name = offered.find(name)?.wanted.label ?? '';
  return { type: 'mcp_tool_use', id: shownId(id), name, server_name, input: tryParse(use.arguments) ?? {} };
}

export function resultBlock(done: ToolDone): JsonObject {
  if (done.found !== undefined) return searchResult(done);
  const { id, output, isError } = done;
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
  if (offered.search !== undefined && isOwnUse(block)) return true;
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
    const result = resultIn(block, own);
    const use = result === undefined ? useIn(block, own) : undefined;
    // Calls that were made together are read together.
    if (heard.length > 0 && result === undefined && use === undefined) end();
    if (result !== undefined) heard.push(result);
    else said.push(use ?? (isObject(block) ? withoutOwnCitations(block) : block));
  }
  end();
  return turns;
}

function useIn(block: unknown, own: ReadonlySet<unknown>): JsonObject | undefined {
  if (!isObject(block) || !own.has(block['id'])) return undefined;
  return { type: 'tool_use', id: block['id'], name: block['name'], input: block['input'] ?? {} };
}

function resultIn(block: unknown, own: ReadonlySet<unknown>): JsonObject | undefined {
  if (!isObject(block) || !own.has(block['tool_use_id'])) return undefined;
  if (!isOwnResult(block)) return block['type'] === 'mcp_tool_result' ? resultOf(block, plainResult(block)) : undefined;
  return resultOf(block, readResult(block));
}

const resultOf = (block: JsonObject, result: JsonObject): JsonObject => ({
  ...result,
  tool_use_id: String(block['tool_use_id']),
});

const plainResult = ({ content, is_error }: JsonObject): JsonObject => ({
  ...{
    type: 'tool_result',
    content: typeof content === 'string' ? content : listOf(content),
    is_error: is_error === true,
  },
});
