/** The specification's flat request (4.6) in the official shape. Pure. */
import { isObject, type JsonObject, listOf, objectOf } from '../../json.ts';
import { rename, toCamel } from './names.ts';

/** Members of the flat request that officially live in `generationConfig`. */
const generationFields = new Set([
  'candidateCount',
  'temperature',
  'topP',
  'topK',
  'maxOutputTokens',
  'stopSequences',
  'responseModalities',
]);

/** Members with an underscore that only the specification's clients (and hand-written requests) send. */
const snakeNames = new Set([
  'system_instruction',
  'tool_config',
  'candidate_count',
  'top_p',
  'top_k',
  'max_output_tokens',
  'stop_sequences',
  'safety_settings',
  'response_modalities',
  'generation_config',
  'cached_content',
  'function_declarations',
  'function_calling_config',
  'inline_data',
  'file_data',
  'function_call',
  'function_response',
]);

/** The gateway's own members: they are no part of the official body. */
const ownFields = new Set(['stream', 'model']);

/** Whether the request shows the specification's case anywhere where a member of the protocol stands. */
export function isSnake(json: JsonObject): boolean {
  const system = json['system_instruction'] ?? json['systemInstruction'];
  return (
    hasSnake(json) ||
    listOf(json['tools']).some(hasSnake) ||
    hasSnake(json['toolConfig']) ||
    [...listOf(json['contents']), system].some((content) => listOf(objectOf(content)?.['parts']).some(hasSnake))
  );
}

function hasSnake(value: unknown): boolean {
  return isObject(value) && Object.keys(value).some((name) => snakeNames.has(name));
}

/** Whether members stand at the top that officially live in `generationConfig`. */
export function isFlat(json: JsonObject): boolean {
  return Object.keys(json).some((name) => generationFields.has(toCamel(name)));
}

/** The official body: camelCase, generation settings in `generationConfig` (a flat one wins), without the gateway's own members. */
export function officialRequest(json: JsonObject): JsonObject {
  const official: Record<string, unknown> = {};
  const generation: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(rename(json, toCamel) as JsonObject)) {
    if (ownFields.has(name)) continue;
    if (generationFields.has(name)) generation[name] = value;
    else official[name] = value;
  }
  if (Object.keys(generation).length > 0)
    official['generationConfig'] = { ...objectOf(official['generationConfig']), ...generation };
  return official;
}
