/** Decodes Responses requests. Pure. Source: OpenAI API reference, openai-node types. */

import { badRequest, decimalOutside, refuseOutside } from '../fault.ts';
import { flatText, isObject, type JsonObject, listOf, objectOf, textOf, wholeOf } from '../json.ts';
import type { Call } from '../protocol.ts';
import { addText, effortOf, type ModelRequest, newModelRequest, takeDirectives } from '../script/model-request.ts';
import { unseal } from '../seal.ts';
import { cacheMark, decodeUserContent } from './user-content.ts';

export function decodeResponses(body: JsonObject, call: Call): ModelRequest {
  const model = textOf(body['model']);
  if (model === undefined || model === '') {
    throw badRequest("Missing required parameter: 'model'.", 'model', 'missing_required_parameter');
  }
  const previous = textOf(body['previous_response_id']);
  if (previous !== undefined) {
    throw badRequest(
      `Previous response with id '${previous}' not found.`,
      'previous_response_id',
      'previous_response_not_found',
    );
  }
  const input = body['input'];
  if (typeof input !== 'string' && !Array.isArray(input)) {
    throw badRequest("Missing required parameter: 'input'.", 'input', 'missing_required_parameter');
  }
  const modelRequest = newModelRequest('responses', model);
  decodeOptions(modelRequest, body);
  decodeTools(modelRequest, listOf(body['tools']), undefined);
  decodeToolChoice(modelRequest, body['tool_choice']);
  addText(modelRequest, 'developer', flatText(body['instructions']));
  const names = new Map<string, string>();
  if (typeof input === 'string') decodeMessage(modelRequest, { role: 'user', content: input });
  else for (const [index, item] of input.entries()) decodeItem(modelRequest, objectOf(item), index, names);
  modelRequest.compact ||= call.operation === 'compact';
  return takeDirectives(modelRequest);
}

function decodeOptions(modelRequest: ModelRequest, body: JsonObject): void {
  refuseOutside(body, { temperature: [0, 2], top_p: [0, 1] }, decimalOutside);
  modelRequest.stream = body['stream'] === true;
  modelRequest.maxTokens = wholeOf(body['max_output_tokens'], 1);
  modelRequest.parallel = body['parallel_tool_calls'] !== false;
  const reasoning = objectOf(body['reasoning']);
  const summary = textOf(reasoning['summary']) ?? textOf(reasoning['generate_summary']);
  if (summary !== undefined || typeof reasoning['effort'] === 'string')
    modelRequest.effort = effortOf(reasoning['effort']);
  modelRequest.thoughtsShown = summary !== undefined;
  modelRequest.cacheKey = textOf(body['prompt_cache_key']) ?? '';
  modelRequest.marksOnly = objectOf(body['prompt_cache_options'])['mode'] === 'explicit';
  const format = objectOf(objectOf(body['text'])['format']);
  if (format['type'] === 'json_object') modelRequest.form = { kind: 'object' };
  if (format['type'] === 'json_schema') modelRequest.form = { kind: 'schema', schema: format['schema'] };
}

/** Functions and custom tools, also those inside namespaces; tools that the vendor would run itself are not imitated. */
function decodeTools(modelRequest: ModelRequest, tools: readonly unknown[], namespace: string | undefined): void {
  if (tools.length > 0 && namespace === undefined) addText(modelRequest, 'tools', JSON.stringify(tools));
  for (const value of tools) {
    const tool = objectOf(value);
    const name = textOf(tool['name']);
    if (name === undefined) continue;
    const inside = namespace === undefined ? {} : { namespace };
    if (tool['type'] === 'namespace') decodeTools(modelRequest, listOf(tool['tools']), name);
    if (tool['type'] === 'custom') modelRequest.tools.push({ name, kind: 'custom', schema: undefined, ...inside });
    if (tool['type'] === 'function')
      modelRequest.tools.push({ name, kind: 'function', schema: tool['parameters'], ...inside });
  }
}

function decodeToolChoice(modelRequest: ModelRequest, choice: unknown): void {
  if (choice === 'none') modelRequest.tools.length = 0;
  if (choice === 'required') modelRequest.forced = [];
  if (!isObject(choice)) return;
  if (choice['type'] === 'allowed_tools') {
    const names = listOf(choice['tools']).map((tool) => objectOf(tool)['name']);
    const kept = modelRequest.tools.filter((tool) => names.includes(tool.name));
    modelRequest.tools.splice(0, modelRequest.tools.length, ...kept);
    if (choice['mode'] === 'required') modelRequest.forced = [];
    return;
  }
  const name = textOf(choice['name']);
  if (name !== undefined) modelRequest.forced = [name];
}

function decodeItem(modelRequest: ModelRequest, item: JsonObject, index: number, names: Map<string, string>): void {
  const type = textOf(item['type']) ?? 'message';
  if (type === 'message') decodeMessage(modelRequest, item);
  else if (type === 'reasoning') decodeReasoning(modelRequest, item, index);
  else if (type === 'compaction') addText(modelRequest, 'developer', opened(item['encrypted_content'], index));
  else if (type === 'compaction_trigger') modelRequest.compact = true;
  else if (type === 'additional_tools') decodeTools(modelRequest, listOf(item['tools']), undefined);
  else if (type.endsWith('_call')) decodeCall(modelRequest, item, type, names);
  else if (type.endsWith('_output')) decodeOutput(modelRequest, item, names);
}

function decodeCall(modelRequest: ModelRequest, item: JsonObject, type: string, names: Map<string, string>): void {
  const name = textOf(item['name']) ?? type;
  names.set(textOf(item['call_id']) ?? '', name);
  modelRequest.results = [];
  addText(modelRequest, 'assistant', name + (textOf(item['arguments']) ?? textOf(item['input']) ?? ''));
}

function decodeOutput(modelRequest: ModelRequest, item: JsonObject, names: Map<string, string>): void {
  const callId = textOf(item['call_id']) ?? '';
  if (!names.has(callId))
    throw badRequest(`No tool call found for function call output with call_id ${callId}.`, 'input');
  const text = flatText(item['output']);
  addText(modelRequest, 'tool', text);
  modelRequest.results.push({ name: names.get(callId) ?? 'tool', text });
}

function decodeReasoning(modelRequest: ModelRequest, item: JsonObject, index: number): void {
  const sealed = typeof item['encrypted_content'] === 'string';
  addText(modelRequest, 'assistant', sealed ? opened(item['encrypted_content'], index) : flatText(item['summary']));
}

function opened(sealed: unknown, index: number): string {
  const text = typeof sealed === 'string' ? unseal(sealed) : undefined;
  if (text !== undefined) return text;
  throw badRequest(
    'The encrypted content could not be verified. Reason: Encrypted content could not be decrypted or parsed.',
    `input[${index}].encrypted_content`,
    'invalid_encrypted_content',
  );
}

function decodeMessage(modelRequest: ModelRequest, item: JsonObject): void {
  const role = textOf(item['role']) ?? 'user';
  if (role === 'user') {
    decodeUserContent(modelRequest, item['content']);
    return;
  }
  if (role === 'assistant') modelRequest.results = [];
  addText(modelRequest, role, flatText(item['content']), cacheMark(item['content']));
}
