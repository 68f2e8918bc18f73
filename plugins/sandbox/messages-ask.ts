/** Messages requests → what they ask. Pure. Source: Anthropic API reference for versions 2023-06-01 and 2026-10-21. */
import {
  type Ask,
  addMedium,
  addText,
  type CacheSpan,
  effortOf,
  type Medium,
  newAsk,
  takeDirectives,
  userSpoke,
} from './ask.ts';
import { badRequest } from './fault.ts';
import { flatText, isObject, type JsonObject, listOf, objectOf, textOf, wholeOf } from './json.ts';
import type { Call } from './protocol.ts';
import { unseal } from './seal.ts';

const partMedia: Record<string, Medium | undefined> = { image: 'image', document: 'file', container_upload: 'file' };

/** From this version on the sampling fields are refused. */
const versionWithoutSampling = '2026-10-21';

export function readMessages(body: JsonObject, call: Call): Ask {
  const model = textOf(body['model']);
  if (model === undefined || model === '') throw badRequest('model: Field required', 'model');
  if (!Array.isArray(body['messages'])) throw badRequest('messages: Field required', 'messages');
  if (body['messages'].length === 0) throw badRequest('messages: at least one message is required', 'messages');
  const ask = newAsk('messages', model);
  ask.marksOnly = true;
  if (call.operation === 'answer') readOptions(ask, body);
  refuseSampling(body, call);
  readTools(ask, body);
  readThinking(ask, body);
  readSystem(ask, body['system']);
  const names = new Map<string, string>();
  for (const [index, message] of body['messages'].entries()) readMessage(ask, objectOf(message), index, names);
  if (isObject(body['cache_control'])) markEnd(ask, spanOf(body)!);
  return takeDirectives(ask);
}

function readOptions(ask: Ask, body: JsonObject): void {
  ask.stream = body['stream'] === true;
  ask.maxTokens = wholeOf(body['max_tokens']);
  if (ask.maxTokens === undefined) {
    const message = 'max_tokens' in body ? 'Input should be a valid integer' : 'Field required';
    throw badRequest(`max_tokens: ${message}`, 'max_tokens');
  }
  ask.stops = listOf(body['stop_sequences']).filter((one) => typeof one === 'string');
  const format = objectOf(objectOf(body['output_config'])['format'] ?? body['output_format']);
  if (format['type'] === 'json_schema') ask.form = { kind: 'schema', schema: format['schema'] };
}

function refuseSampling(body: JsonObject, call: Call): void {
  if (call.headers['anthropic-version'] !== versionWithoutSampling) return;
  for (const field of ['temperature', 'top_p', 'top_k']) {
    if (field in body) throw badRequest(`${field}: Extra inputs are not permitted`, field);
  }
}

function readThinking(ask: Ask, body: JsonObject): void {
  const thinking = objectOf(body['thinking']);
  const type = textOf(thinking['type']) ?? 'disabled';
  if (type === 'disabled') return;
  const budget = wholeOf(thinking['budget_tokens']);
  if (type === 'enabled' && (budget === undefined || budget < 1024)) {
    throw badRequest('thinking.enabled.budget_tokens: Input should be greater than or equal to 1024', 'thinking');
  }
  if (ask.maxTokens !== undefined && budget !== undefined && budget >= ask.maxTokens) {
    throw badRequest('`max_tokens` must be greater than `thinking.budget_tokens`.', 'max_tokens');
  }
  if (ask.forced !== undefined) {
    throw badRequest('Thinking may not be enabled when tool_choice forces tool use.', 'tool_choice');
  }
  ask.effort = effortOf(objectOf(body['output_config'])['effort'] ?? 'medium');
  ask.thoughtsShown = thinking['display'] !== 'omitted';
}

/** Client tools; tools that the vendor would run itself are not imitated. */
function readTools(ask: Ask, body: JsonObject): void {
  for (const value of listOf(body['tools'])) {
    const tool = objectOf(value);
    addText(ask, 'tools', JSON.stringify(tool), spanOf(tool));
    const name = textOf(tool['name']);
    if (name === undefined || !isObject(tool['input_schema'])) continue;
    ask.tools.push({ name, kind: 'function', schema: tool['input_schema'] });
  }
  const choice = objectOf(body['tool_choice']);
  ask.parallel = choice['disable_parallel_tool_use'] !== true;
  if (choice['type'] === 'none') ask.tools.length = 0;
  if (choice['type'] === 'any') ask.forced = [];
  if (choice['type'] === 'tool') ask.forced = [textOf(choice['name']) ?? ''];
}

function readSystem(ask: Ask, system: unknown): void {
  const blocks = typeof system === 'string' ? [{ text: system }] : listOf(system);
  for (const value of blocks) {
    const block = objectOf(value);
    addText(ask, 'system', textOf(block['text']) ?? '', spanOf(block));
  }
}

function readMessage(ask: Ask, message: JsonObject, index: number, names: Map<string, string>): void {
  const role = textOf(message['role']);
  if (role !== 'user' && role !== 'assistant' && role !== 'system') {
    throw badRequest(`messages.${index}.role: Input should be 'user' or 'assistant'`, `messages.${index}.role`);
  }
  const content =
    typeof message['content'] === 'string' ? [{ type: 'text', text: message['content'] }] : message['content'];
  if (role === 'assistant') ask.results = [];
  const media: Medium[] = [];
  let text: string | undefined;
  for (const [at, value] of listOf(content).entries()) {
    const block = objectOf(value);
    const medium = partMedia[textOf(block['type']) ?? ''];
    if (medium !== undefined) {
      media.push(medium);
      addMedium(ask, role, medium, JSON.stringify(block['source']), spanOf(block));
    } else if (block['type'] === 'text') {
      text = (text ?? '') + (textOf(block['text']) ?? '');
      addText(ask, role, textOf(block['text']) ?? '', spanOf(block));
    } else {
      readBlock(ask, role, block, `messages.${index}.content.${at}`, names);
    }
  }
  if (role !== 'user' || (text === undefined && media.length === 0)) return;
  const { results } = ask;
  userSpoke(ask, text ?? '', media);
  if (listOf(content).some((block) => objectOf(block)['type'] === 'tool_result')) ask.results = results;
}

function readBlock(ask: Ask, role: string, block: JsonObject, path: string, names: Map<string, string>): void {
  switch (block['type']) {
    case 'tool_use':
      names.set(textOf(block['id']) ?? '', textOf(block['name']) ?? '');
      addText(ask, role, `${block['name']}${JSON.stringify(block['input'])}`, spanOf(block));
      break;
    case 'tool_result': {
      const text = flatText(block['content']);
      addText(ask, 'tool', text, spanOf(block));
      ask.results.push({ name: names.get(textOf(block['tool_use_id']) ?? '') ?? 'tool', text });
      break;
    }
    case 'thinking':
      addText(ask, role, verified(block, path));
      break;
    default:
      addText(ask, role, JSON.stringify(block), spanOf(block));
  }
}

/** The thought behind a thinking block, which is in its signature even when the text was left out. */
function verified(block: JsonObject, path: string): string {
  const thought = unseal(textOf(block['signature']) ?? '');
  if (thought !== undefined && (block['thinking'] === '' || block['thinking'] === thought)) return thought;
  throw badRequest(`${path}: Invalid \`signature\` in \`thinking\` block`, path);
}

function spanOf(block: JsonObject): CacheSpan | undefined {
  if (!isObject(block['cache_control'])) return undefined;
  return block['cache_control']['ttl'] === '1h' ? '1h' : '5m';
}

/** A mark on the request as a whole stands at the end of the prompt. */
function markEnd(ask: Ask, span: CacheSpan): void {
  const last = ask.prompt.pop();
  if (last !== undefined) ask.prompt.push({ ...last, mark: last.mark ?? span });
}
