/** Responses requests → what they ask. Pure. Source: OpenAI API reference, openai-node types. */
import { type Ask, addText, effortOf, newAsk, takeDirectives } from './ask.ts';
import { badRequest } from './fault.ts';
import { flatText, isObject, type JsonObject, listOf, objectOf, textOf, wholeOf } from './json.ts';
import type { Call } from './protocol.ts';
import { unseal } from './seal.ts';
import { cacheMark, readUserContent } from './user-content.ts';

export function readResponses(body: JsonObject, call: Call): Ask {
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
  const ask = newAsk('responses', model);
  readOptions(ask, body);
  readTools(ask, listOf(body['tools']), undefined);
  readToolChoice(ask, body['tool_choice']);
  addText(ask, 'developer', flatText(body['instructions']));
  const names = new Map<string, string>();
  if (typeof input === 'string') readMessage(ask, { role: 'user', content: input });
  else for (const [index, item] of input.entries()) readItem(ask, objectOf(item), index, names);
  ask.compact ||= call.operation === 'compact';
  return takeDirectives(ask);
}

function readOptions(ask: Ask, body: JsonObject): void {
  ask.stream = body['stream'] === true;
  ask.maxTokens = wholeOf(body['max_output_tokens'], 1);
  ask.parallel = body['parallel_tool_calls'] !== false;
  const reasoning = objectOf(body['reasoning']);
  const summary = textOf(reasoning['summary']) ?? textOf(reasoning['generate_summary']);
  if (summary !== undefined || typeof reasoning['effort'] === 'string') ask.effort = effortOf(reasoning['effort']);
  ask.thoughtsShown = summary !== undefined;
  ask.cacheKey = textOf(body['prompt_cache_key']) ?? '';
  ask.marksOnly = objectOf(body['prompt_cache_options'])['mode'] === 'explicit';
  const format = objectOf(objectOf(body['text'])['format']);
  if (format['type'] === 'json_object') ask.form = { kind: 'object' };
  if (format['type'] === 'json_schema') ask.form = { kind: 'schema', schema: format['schema'] };
}

/** Functions and custom tools, also those inside namespaces; tools that the vendor would run itself are not imitated. */
function readTools(ask: Ask, tools: readonly unknown[], namespace: string | undefined): void {
  if (tools.length > 0 && namespace === undefined) addText(ask, 'tools', JSON.stringify(tools));
  for (const value of tools) {
    const tool = objectOf(value);
    const name = textOf(tool['name']);
    if (name === undefined) continue;
    const inside = namespace === undefined ? {} : { namespace };
    if (tool['type'] === 'namespace') readTools(ask, listOf(tool['tools']), name);
    if (tool['type'] === 'custom') ask.tools.push({ name, kind: 'custom', schema: undefined, ...inside });
    if (tool['type'] === 'function') ask.tools.push({ name, kind: 'function', schema: tool['parameters'], ...inside });
  }
}

function readToolChoice(ask: Ask, choice: unknown): void {
  if (choice === 'none') ask.tools.length = 0;
  if (choice === 'required') ask.forced = [];
  if (!isObject(choice)) return;
  if (choice['type'] === 'allowed_tools') {
    const names = listOf(choice['tools']).map((tool) => objectOf(tool)['name']);
    const kept = ask.tools.filter((tool) => names.includes(tool.name));
    ask.tools.splice(0, ask.tools.length, ...kept);
    if (choice['mode'] === 'required') ask.forced = [];
    return;
  }
  const name = textOf(choice['name']);
  if (name !== undefined) ask.forced = [name];
}

function readItem(ask: Ask, item: JsonObject, index: number, names: Map<string, string>): void {
  const type = textOf(item['type']) ?? 'message';
  if (type === 'message') readMessage(ask, item);
  else if (type === 'reasoning') readReasoning(ask, item, index);
  else if (type === 'compaction') addText(ask, 'developer', opened(item['encrypted_content'], index));
  else if (type === 'compaction_trigger') ask.compact = true;
  else if (type === 'additional_tools') readTools(ask, listOf(item['tools']), undefined);
  else if (type.endsWith('_call')) readCall(ask, item, type, names);
  else if (type.endsWith('_output')) readOutput(ask, item, names);
}

function readCall(ask: Ask, item: JsonObject, type: string, names: Map<string, string>): void {
  const name = textOf(item['name']) ?? type;
  names.set(textOf(item['call_id']) ?? '', name);
  ask.results = [];
  addText(ask, 'assistant', name + (textOf(item['arguments']) ?? textOf(item['input']) ?? ''));
}

function readOutput(ask: Ask, item: JsonObject, names: Map<string, string>): void {
  const text = flatText(item['output']);
  addText(ask, 'tool', text);
  ask.results.push({ name: names.get(textOf(item['call_id']) ?? '') ?? 'tool', text });
}

function readReasoning(ask: Ask, item: JsonObject, index: number): void {
  const sealed = typeof item['encrypted_content'] === 'string';
  addText(ask, 'assistant', sealed ? opened(item['encrypted_content'], index) : flatText(item['summary']));
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

function readMessage(ask: Ask, item: JsonObject): void {
  const role = textOf(item['role']) ?? 'user';
  if (role === 'user') {
    readUserContent(ask, item['content']);
    return;
  }
  if (role === 'assistant') ask.results = [];
  addText(ask, role, flatText(item['content']), cacheMark(item['content']));
}
