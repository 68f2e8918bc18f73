/** Request members that the Responses API repeats in its answers, including every member that its schema requires. Pure. */
import { isObject, type JsonObject, listOf, objectOf } from '../json.ts';

/** A function is strict unless the request says otherwise. */
export function echoedTool(tool: unknown): unknown {
  if (!isObject(tool)) return tool;
  if (tool['type'] === 'namespace') return { ...tool, tools: listOf(tool['tools']).map(echoedTool) };
  if (tool['type'] !== 'function') return tool;
  return {
    ...tool,
    description: tool['description'] ?? null,
    parameters: tool['parameters'] ?? null,
    strict: tool['strict'] ?? true,
  };
}

export function echoedText(text: JsonObject): object {
  const format = objectOf(text['format']);
  return { format: echoedFormat(format), verbosity: text['verbosity'] ?? 'medium' };
}

function echoedFormat(format: JsonObject): object {
  if (format['type'] === undefined) return { type: 'text' };
  if (format['type'] !== 'json_schema') return format;
  return { ...format, description: format['description'] ?? null, strict: format['strict'] ?? false };
}

export function echoedChoice(choice: unknown): unknown {
  if (!isObject(choice)) return choice ?? 'auto';
  return choice['type'] === 'allowed_tools' ? { ...choice, mode: choice['mode'] ?? 'auto' } : choice;
}
