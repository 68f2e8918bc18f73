/** Input items in the form that is stored and listed: each with a type, an id, and its content in parts. Pure. */
import { table } from '../../../core/contract/table.ts';
import { isObject, type JsonObject, textOf } from '../../../core/json/json.ts';

const prefixes: Readonly<Record<string, string>> = table({
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fco',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
  compaction: 'cmp',
  tool_search_call: 'tsc',
  tool_search_output: 'tso',
});

/** Items that the protocol lists with a status. */
const withStatus = new Set([
  'message',
  'function_call',
  'function_call_output',
  'tool_search_call',
  'tool_search_output',
]);

/** `exchangeId` makes ids for items without one. Compaction instructions were carried out and are left out. */
export function keptItems(items: readonly unknown[], exchangeId: string): JsonObject[] {
  return items.flatMap((item, index) => {
    if (!isObject(item) || item['type'] === 'compaction_trigger') return [];
    const type = textOf(item['type']) ?? 'message';
    const id = textOf(item['id']) ?? `${prefixes[type] ?? 'item'}_${exchangeId}_in${index}`;
    const status = withStatus.has(type) ? { status: item['status'] ?? 'completed' } : {};
    return [{ ...item, id, type, ...status, ...contentOf(type, item) }];
  });
}

function contentOf(type: string, item: JsonObject): JsonObject {
  if (type === 'message') return { content: messageParts(item) };
  return Array.isArray(item['output']) ? { output: item['output'].map(keptPart) } : {};
}

function messageParts({ role, content }: JsonObject): unknown {
  if (typeof content !== 'string') return Array.isArray(content) ? content.map(keptPart) : [];
  return role === 'assistant'
    ? [{ type: 'output_text', text: content, annotations: [] }]
    : [{ type: 'input_text', text: content }];
}

/** Images and texts with the members that the protocol always lists. */
function keptPart(part: unknown): unknown {
  if (!isObject(part)) return part;
  if (part['type'] === 'input_image') return { ...part, detail: part['detail'] ?? 'auto' };
  return part['type'] === 'output_text' ? { ...part, annotations: part['annotations'] ?? [] } : part;
}
