/** Chat Completions requests → what they ask. Pure. Source: OpenAI API reference, openai-node types. */
import { type Ask, addText, effortOf, newAsk, takeDirectives } from './ask.ts';
import { badRequest } from './fault.ts';
import { flatText, isObject, type JsonObject, listOf, objectOf, textOf, wholeOf } from './json.ts';
import { cacheMark, readUserContent } from './user-content.ts';

const mostChoices = 128;

export function readChat(body: JsonObject): Ask {
  const model = textOf(body['model']);
  if (model === undefined || model === '') throw badRequest('you must provide a model parameter', 'model');
  const messages = body['messages'];
  if (!Array.isArray(messages) || messages.length === 0) {
    throw badRequest("Missing required parameter: 'messages'.", 'messages', 'missing_required_parameter');
  }
  const ask = newAsk('chat', model);
  readOptions(ask, body);
  readTools(ask, body);
  const names = new Map<string, string>();
  for (const [index, message] of messages.entries()) readMessage(ask, message, index, names);
  return takeDirectives(ask);
}

function readOptions(ask: Ask, body: JsonObject): void {
  ask.stream = body['stream'] === true;
  ask.maxTokens = wholeOf(body['max_completion_tokens'], 1) ?? wholeOf(body['max_tokens'], 1);
  ask.choices = wholeOf(body['n'], 1) ?? 1;
  if (ask.choices > mostChoices) {
    throw badRequest(`Invalid 'n': expected at most ${mostChoices}.`, 'n', 'integer_above_max_value');
  }
  const stop = body['stop'];
  ask.stops = typeof stop === 'string' ? [stop] : listOf(stop).filter((one) => typeof one === 'string');
  if (typeof body['reasoning_effort'] === 'string') ask.effort = effortOf(body['reasoning_effort']);
  ask.cacheKey = textOf(body['prompt_cache_key']) ?? '';
  ask.marksOnly = objectOf(body['prompt_cache_options'])['mode'] === 'explicit';
  const format = objectOf(body['response_format']);
  if (format['type'] === 'json_object') ask.form = { kind: 'object' };
  if (format['type'] === 'json_schema')
    ask.form = { kind: 'schema', schema: objectOf(format['json_schema'])['schema'] };
}

function readTools(ask: Ask, body: JsonObject): void {
  const offered = listOf(body['tools']);
  if (offered.length > 0) addText(ask, 'tools', JSON.stringify(offered));
  for (const tool of offered) {
    const one = objectOf(tool);
    const own = objectOf(one[one['type'] === 'custom' ? 'custom' : 'function']);
    const name = textOf(own['name']);
    if (name === undefined) throw badRequest("Missing required parameter: 'tools[].function.name'.", 'tools');
    ask.tools.push({ name, kind: one['type'] === 'custom' ? 'custom' : 'function', schema: own['parameters'] });
  }
  ask.parallel = body['parallel_tool_calls'] !== false;
  readToolChoice(ask, body['tool_choice']);
}

function readToolChoice(ask: Ask, choice: unknown): void {
  if (choice === 'none') ask.tools.length = 0;
  if (choice === 'required') ask.forced = [];
  if (!isObject(choice)) return;
  const allowed = objectOf(choice['allowed_tools']);
  if (choice['type'] === 'allowed_tools') {
    const names = listOf(allowed['tools']).map((tool) => nameOfChoice(objectOf(tool)));
    const kept = ask.tools.filter((tool) => names.includes(tool.name));
    ask.tools.splice(0, ask.tools.length, ...kept);
    if (allowed['mode'] === 'required') ask.forced = [];
    return;
  }
  const name = nameOfChoice(choice);
  if (name !== undefined) ask.forced = [name];
}

function nameOfChoice(choice: JsonObject): string | undefined {
  return textOf(objectOf(choice['function'])['name']) ?? textOf(objectOf(choice['custom'])['name']);
}

function readMessage(ask: Ask, value: unknown, index: number, names: Map<string, string>): void {
  const message = objectOf(value);
  const content = message['content'];
  const role = textOf(message['role']) ?? '';
  switch (role) {
    case 'user':
      readUserContent(ask, content);
      break;
    case 'system':
    case 'developer':
      addText(ask, role, flatText(content), cacheMark(content));
      break;
    case 'tool':
    case 'function': {
      const text = flatText(content);
      addText(ask, role, text);
      const name = names.get(textOf(message['tool_call_id']) ?? '') ?? textOf(message['name']) ?? 'tool';
      ask.results.push({ name, text });
      break;
    }
    case 'assistant':
      readAssistant(ask, message, names);
      break;
    default:
      throw badRequest(`Invalid value: '${role}'. ${knownRoles}`, `messages[${index}].role`, 'invalid_value');
  }
}

const knownRoles = "Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.";

function readAssistant(ask: Ask, message: JsonObject, names: Map<string, string>): void {
  ask.results = [];
  addText(ask, 'assistant', flatText(message['content']));
  for (const value of listOf(message['tool_calls'])) {
    const call = objectOf(value);
    const own = objectOf(call['function'] ?? call['custom']);
    const name = textOf(own['name']) ?? '';
    names.set(textOf(call['id']) ?? '', name);
    addText(ask, 'assistant', name + (textOf(own['arguments']) ?? textOf(own['input']) ?? ''));
  }
}
