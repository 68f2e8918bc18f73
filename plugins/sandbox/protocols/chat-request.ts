/** Decodes Chat Completions requests. Pure. Source: OpenAI API reference, openai-node types. */

import { badRequest, decimalOutside, refuseOutside } from '../fault.ts';
import { flatText, isObject, type JsonObject, listOf, objectOf, textOf, wholeOf } from '../json.ts';
import { addText, effortOf, type ModelRequest, newModelRequest, takeDirectives } from '../script/model-request.ts';
import { cacheMark, decodeUserContent } from './user-content.ts';

const mostChoices = 128;
const bounds = { temperature: [0, 2], top_p: [0, 1], presence_penalty: [-2, 2], frequency_penalty: [-2, 2] } as const;

export function decodeChat(body: JsonObject): ModelRequest {
  const model = textOf(body['model']);
  if (model === undefined || model === '') throw badRequest('you must provide a model parameter', 'model');
  const messages = body['messages'];
  if (!Array.isArray(messages) || messages.length === 0) {
    throw badRequest("Missing required parameter: 'messages'.", 'messages', 'missing_required_parameter');
  }
  const modelRequest = newModelRequest('chat', model);
  decodeOptions(modelRequest, body);
  decodeTools(modelRequest, body);
  const names = new Map<string, string>();
  for (const [index, message] of messages.entries()) decodeMessage(modelRequest, message, index, names);
  return takeDirectives(modelRequest);
}

function decodeOptions(modelRequest: ModelRequest, body: JsonObject): void {
  refuseOutside(body, bounds, decimalOutside);
  modelRequest.stream = body['stream'] === true;
  modelRequest.maxTokens = wholeOf(body['max_completion_tokens'], 1) ?? wholeOf(body['max_tokens'], 1);
  modelRequest.choices = wholeOf(body['n'], 1) ?? 1;
  if (modelRequest.choices > mostChoices) {
    throw badRequest(`Invalid 'n': expected at most ${mostChoices}.`, 'n', 'integer_above_max_value');
  }
  const stop = body['stop'];
  modelRequest.stops = typeof stop === 'string' ? [stop] : listOf(stop).filter((one) => typeof one === 'string');
  if (typeof body['reasoning_effort'] === 'string') modelRequest.effort = effortOf(body['reasoning_effort']);
  modelRequest.cacheKey = textOf(body['prompt_cache_key']) ?? '';
  modelRequest.marksOnly = objectOf(body['prompt_cache_options'])['mode'] === 'explicit';
  const format = objectOf(body['response_format']);
  if (format['type'] === 'json_object') modelRequest.form = { kind: 'object' };
  if (format['type'] === 'json_schema')
    modelRequest.form = { kind: 'schema', schema: objectOf(format['json_schema'])['schema'] };
}

function decodeTools(modelRequest: ModelRequest, body: JsonObject): void {
  const offered = listOf(body['tools']);
  if (offered.length > 0) addText(modelRequest, 'tools', JSON.stringify(offered));
  for (const tool of offered) {
    const one = objectOf(tool);
    const own = objectOf(one[one['type'] === 'custom' ? 'custom' : 'function']);
    const name = textOf(own['name']);
    if (name === undefined) throw badRequest("Missing required parameter: 'tools[].function.name'.", 'tools');
    modelRequest.tools.push({
      name,
      kind: one['type'] === 'custom' ? 'custom' : 'function',
      schema: own['parameters'],
    });
  }
  modelRequest.parallel = body['parallel_tool_calls'] !== false;
  decodeToolChoice(modelRequest, body['tool_choice']);
}

function decodeToolChoice(modelRequest: ModelRequest, choice: unknown): void {
  if (choice === 'none') modelRequest.tools.length = 0;
  if (choice === 'required') modelRequest.forced = [];
  if (!isObject(choice)) return;
  const allowed = objectOf(choice['allowed_tools']);
  if (choice['type'] === 'allowed_tools') {
    const names = listOf(allowed['tools']).map((tool) => nameOfChoice(objectOf(tool)));
    const kept = modelRequest.tools.filter((tool) => names.includes(tool.name));
    modelRequest.tools.splice(0, modelRequest.tools.length, ...kept);
    if (allowed['mode'] === 'required') modelRequest.forced = [];
    return;
  }
  const name = nameOfChoice(choice);
  if (name !== undefined) modelRequest.forced = [name];
}

function nameOfChoice(choice: JsonObject): string | undefined {
  return textOf(objectOf(choice['function'])['name']) ?? textOf(objectOf(choice['custom'])['name']);
}

function decodeMessage(modelRequest: ModelRequest, value: unknown, index: number, names: Map<string, string>): void {
  const message = objectOf(value);
  const content = message['content'];
  const role = textOf(message['role']) ?? '';
  switch (role) {
    case 'user':
      decodeUserContent(modelRequest, content);
      break;
    case 'system':
    case 'developer':
      addText(modelRequest, role, flatText(content), cacheMark(content));
      break;
    case 'tool':
    case 'function': {
      const text = flatText(content);
      addText(modelRequest, role, text);
      const name = names.get(textOf(message['tool_call_id']) ?? '') ?? textOf(message['name']) ?? 'tool';
      modelRequest.results.push({ name, text });
      break;
    }
    case 'assistant':
      decodeAssistant(modelRequest, message, names);
      break;
    default:
      throw badRequest(`Invalid value: '${role}'. ${knownRoles}`, `messages[${index}].role`, 'invalid_value');
  }
}

const knownRoles = "Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.";

function decodeAssistant(modelRequest: ModelRequest, message: JsonObject, names: Map<string, string>): void {
  modelRequest.results = [];
  addText(modelRequest, 'assistant', flatText(message['content']));
  for (const value of listOf(message['tool_calls'])) {
    const call = objectOf(value);
    const own = objectOf(call['function'] ?? call['custom']);
    const name = textOf(own['name']) ?? '';
    names.set(textOf(call['id']) ?? '', name);
    addText(modelRequest, 'assistant', name + (textOf(own['arguments']) ?? textOf(own['input']) ?? ''));
  }
}
