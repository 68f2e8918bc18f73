/** Responses requests with members of the chat protocol, as some editors send them to the chat address. Pure. */

import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import { invalid } from '../../../request/checks.ts';

/** A body with `input` and without `messages`. */
export function isResponsesRequest(json: JsonObject): boolean {
  return (json['messages'] ?? undefined) === undefined && (json['input'] ?? undefined) !== undefined;
}

/** Members of the chat protocol alone, without meaning in this one once they were checked. */
const chatMembers = [
  'messages',
  'n',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'reasoning_effort',
  'response_format',
  'verbosity',
] as const;

/** The same request in this protocol's own members, which take precedence. Throws invalid_request for several answers. */
export function asResponsesRequest(json: JsonObject): JsonObject {
  if (typeof json['n'] === 'number' && json['n'] > 1)
    throw invalid('The field "n" must be 1 for a request with "input".', 'n');
  const own = Object.fromEntries(
    Object.entries(json).filter(([name]) => !chatMembers.some((member) => member === name)),
  );
  const bound = json['max_output_tokens'] ?? json['max_completion_tokens'] ?? json['max_tokens'];
  const effort = json['reasoning_effort'] ?? undefined;
  const text = { ...textOptions(json), ...objectOf(json['text']) };
  return {
    ...own,
    ...(bound === undefined ? {} : { max_output_tokens: bound }),
    ...(effort === undefined ? {} : { reasoning: { effort, ...objectOf(json['reasoning']) } }),
    ...(Object.keys(text).length === 0 ? {} : { text }),
    ...(Array.isArray(json['tools']) ? { tools: json['tools'].map(flatTool) } : {}),
    ...(isObject(json['tool_choice']) ? { tool_choice: flatChoice(json['tool_choice']) } : {}),
    ...(Array.isArray(json['input']) ? { input: json['input'].flatMap(itemsOf) } : {}),
  };
}

function textOptions(json: JsonObject): JsonObject {
  const format = objectOf(json['response_format']);
  const schema = objectOf(format?.['json_schema']);
  const verbosity = json['verbosity'] ?? undefined;
  return {
    ...(format === undefined ? {} : { format: schema === undefined ? format : { type: 'json_schema', ...schema } }),
    ...(verbosity === undefined ? {} : { verbosity }),
  };
}

/** `{type, function: {name, …}}` and `{type, custom: {name, format: {type, grammar}}}` become flat. */
function flatTool(tool: unknown): unknown {
  if (!isObject(tool)) return tool;
  const nested = objectOf(tool['function']) ?? objectOf(tool['custom']);
  if (nested === undefined) return tool;
  const grammar = objectOf(objectOf(nested['format'])?.['grammar']);
  return {
    type: tool['type'],
    ...nested,
    ...(grammar === undefined ? {} : { format: { type: 'grammar', ...grammar } }),
  };
}

function flatChoice(choice: JsonObject): JsonObject {
  const allowed = objectOf(choice['allowed_tools']);
  if (allowed !== undefined)
    return { type: 'allowed_tools', mode: allowed['mode'], tools: listOf(allowed['tools']).map(flatTool) };
  const nested = objectOf(choice['function']) ?? objectOf(choice['custom']);
  return nested === undefined ? choice : { type: choice['type'], ...nested };
}

/** A chat message among the items: a tool's result, or an assistant turn with its calls. */
function itemsOf(item: unknown): unknown[] {
  if (!isObject(item) || textOf(item['role']) === undefined) return [item];
  if (item['role'] === 'tool')
    return [{ type: 'function_call_output', call_id: item['tool_call_id'], output: partsOf(item['content']) ?? '' }];
  const { tool_calls: calls, ...message } = item;
  const content = partsOf(item['content']);
  const isEmpty = content === undefined || content === null || content === '';
  return [...(isEmpty && Array.isArray(calls) ? [] : [{ ...message, content }]), ...listOf(calls).flatMap(callOf)];
}

function callOf(call: unknown): unknown[] {
  const { id, function: named, custom } = objectOf(call) ?? {};
  if (isObject(custom)) return [{ type: 'custom_tool_call', call_id: id, ...custom }];
  return isObject(named) ? [{ type: 'function_call', call_id: id, ...named }] : [];
}

function partsOf(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  return content.map((part) => {
    const file = isObject(part) && part['type'] === 'file' ? objectOf(part['file']) : undefined;
    if (file !== undefined) return { type: 'input_file', ...file };
    if (!isObject(part) || part['type'] !== 'image_url') return part;
    const image = objectOf(part['image_url']);
    return { type: 'input_image', image_url: image?.['url'] ?? part['image_url'], detail: image?.['detail'] ?? 'auto' };
  });
}
