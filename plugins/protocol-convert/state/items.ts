/** Input items as they are kept and listed: each with a type, an id, and its content in parts. Pure. */
import { isObject, type JsonObject, textOf } from '../json.ts';

const prefixes: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fco',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
  compaction: 'cmp',
};

/** `exchangeId` makes ids for items that came without. Orders to compact were carried out and are left out. */
export function keptItems(items: readonly unknown[], exchangeId: string): JsonObject[] {
  return items.flatMap((item, index) => {
    if (!isObject(item) || item['type'] === 'compaction_trigger') return [];
    const type = textOf(item['type']) ?? 'message';
    const id = textOf(item['id']) ?? `${prefixes[type] ?? 'item'}_${exchangeId}_in${index}`;
    const kept = { ...item, id, type };
    return [type === 'message' ? { status: 'completed', ...kept, content: contentParts(item) } : kept];
  });
}

function contentParts({ role, content }: JsonObject): unknown {
  if (typeof content !== 'string') return content ?? [];
  return role === 'assistant'
    ? [{ type: 'output_text', text: content, annotations: [] }]
    : [{ type: 'input_text', text: content }];
}
