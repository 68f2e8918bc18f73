/**
 * Members of the client's request that the response object repeats, including every member that the protocol requires. Pure.
 */
import { isObject, type JsonObject, listOf, objectOf } from '../../../../../core/json/json.ts';

/** Settings of a request by their own names; if the client set none, the protocol's default. */
// biome-ignore lint/complexity/noExcessiveCognitiveComplexity: one line for each member with its default, and no line depends on another.
export function requestEcho(request: JsonObject): JsonObject {
  const text = objectOf(request['text']) ?? {};
  const reasoning = objectOf(request['reasoning']) ?? {};
  return {
    background: false,
    ...conversationEcho(request['conversation']),
    frequency_penalty: request['frequency_penalty'] ?? 0,
    instructions: request['instructions'] ?? null,
    max_output_tokens: request['max_output_tokens'] ?? null,
    max_tool_calls: request['max_tool_calls'] ?? null,
    parallel_tool_calls: request['parallel_tool_calls'] ?? true,
    presence_penalty: request['presence_penalty'] ?? 0,
    previous_response_id: request['previous_response_id'] ?? null,
    prompt_cache_key: request['prompt_cache_key'] ?? null,
    reasoning: { effort: reasoning['effort'] ?? null, summary: reasoning['summary'] ?? null },
    safety_identifier: request['safety_identifier'] ?? null,
    store: request['store'] ?? true,
    temperature: request['temperature'] ?? 1,
    text: { format: formatEcho(objectOf(text['format'])), verbosity: text['verbosity'] ?? 'medium' },
    tool_choice: choiceEcho(request['tool_choice']),
    tools: listOf(request['tools']).map(toolEcho),
    top_logprobs: request['top_logprobs'] ?? 0,
    top_p: request['top_p'] ?? 1,
    truncation: request['truncation'] ?? 'disabled',
    user: request['user'] ?? null,
    metadata: isObject(request['metadata']) ? request['metadata'] : {},
  };
}

function conversationEcho(conversation: unknown): JsonObject {
  if (conversation === undefined || conversation === null) return {};
  return { conversation: isObject(conversation) ? { id: conversation['id'] } : { id: conversation } };
}

/** `strict` is false by default: translated requests do not add what the client did not request. */
function toolEcho(tool: unknown): unknown {
  if (!isObject(tool)) return tool;
  if (tool['type'] === 'namespace') return { ...tool, tools: listOf(tool['tools']).map(toolEcho) };
  if (tool['type'] !== 'function') return tool;
  return {
    ...tool,
    description: tool['description'] ?? null,
    parameters: tool['parameters'] ?? null,
    strict: tool['strict'] ?? false,
  };
}

function formatEcho(format: JsonObject | undefined): JsonObject {
  if (format?.['type'] === undefined) return { type: 'text' };
  if (format['type'] !== 'json_schema') return format;
  return {
    ...format,
    name: format['name'] ?? 'response',
    description: format['description'] ?? null,
    schema: format['schema'] ?? null,
    strict: format['strict'] ?? false,
  };
}

function choiceEcho(choice: unknown): unknown {
  if (!isObject(choice)) return choice ?? 'auto';
  return choice['type'] === 'allowed_tools' ? { ...choice, mode: choice['mode'] ?? 'auto' } : choice;
}
