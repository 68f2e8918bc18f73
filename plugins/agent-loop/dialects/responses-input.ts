/** Items of earlier runs as a model reads them: calls of functions with their results, and what the client has approved. Pure. */
import { isObject, type JsonObject, listOf, textOf } from '../../../core/json/json.ts';
import type { Offered } from '../offered.ts';
import type { ToolUse } from '../talk.ts';
import { invalid } from '../wanted.ts';

interface ReadInput {
  readonly items: unknown[];
  readonly approved: readonly ToolUse[];
}

const refused = 'The user has not approved this call.';

/** A text is one message. Approved calls have no result yet. */
export function readInput(input: unknown, offered: Offered): ReadInput {
  if (typeof input === 'string') return { items: [{ type: 'message', role: 'user', content: input }], approved: [] };
  const items = listOf(input);
  const verdicts = verdictsOf(items);
  const approved: ToolUse[] = [];
  const read = items.flatMap((item): unknown[] => {
    if (!isObject(item) || !isOfRun(item, offered)) return [item];
    if (item['type'] === 'mcp_approval_response' || item['type'] === 'mcp_list_tools') return [];
    const use = useOf(item);
    if (item['type'] === 'mcp_call') return [callOf(use), resultOf(use.id, textOf(item['output']) ?? errorOf(item))];
    if (verdicts.get(String(item['id'])) !== true) return [callOf(use), resultOf(use.id, refused)];
    approved.push({ ...use, approvedBy: String(item['id']) });
    return [callOf(use)];
  });
  return { items: withResultsLast(read, approved), approved };
}

function isOfRun({ type, server_label: label }: JsonObject, offered: Offered): boolean {
  if (type === 'mcp_approval_response') return true;
  const isItem = type === 'mcp_list_tools' || type === 'mcp_call' || type === 'mcp_approval_request';
  return isItem && offered.hasLabel(label);
}

/** By the id of the request for approval. Throws invalid_request for an answer to none. */
function verdictsOf(items: readonly unknown[]): Map<string, boolean> {
  const asked = new Set(
    items.flatMap((item) => (isObject(item) && item['type'] === 'mcp_approval_request' ? [item['id']] : [])),
  );
  const verdicts = new Map<string, boolean>();
  items.forEach((item, index) => {
    if (!isObject(item) || item['type'] !== 'mcp_approval_response') return;
    const { approval_request_id: id, approve } = item;
    if (typeof id !== 'string' || !asked.has(id))
      throw invalid(
        'There is no such request for approval in this conversation.',
        `input[${index}].approval_request_id`,
      );
    if (typeof approve !== 'boolean') throw invalid('This is true or false.', `input[${index}].approve`);
    verdicts.set(id, approve);
  });
  return verdicts;
}

/** A message that came after the approved calls is read after their results. */
function withResultsLast(items: readonly unknown[], approved: readonly ToolUse[]): unknown[] {
  if (approved.length === 0) return [...items];
  const ids = new Set(approved.map(({ id }) => id));
  const last = items.findLastIndex((item) => isObject(item) && ids.has(String(item['call_id'])));
  const messages = items.slice(last + 1);
  return messages.length === 0 ? [...items] : [...items.slice(0, last + 1), ...messages];
}

function useOf(item: JsonObject): ToolUse {
  const id = String(item['id']).replace(/^mcpr?_/, '');
  return { id, name: String(item['name']), arguments: textOf(item['arguments']) ?? '{}' };
}

const callOf = ({ id, name, ...use }: ToolUse): JsonObject => ({
  ...{ type: 'function_call', call_id: id, name, arguments: use.arguments },
});

const resultOf = (id: string, output: string): JsonObject => ({ type: 'function_call_output', call_id: id, output });

function errorOf({ error }: JsonObject): string {
  return typeof error === 'string' ? error : isObject(error) ? JSON.stringify(error) : '';
}
