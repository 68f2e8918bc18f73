/** Decodes Messages requests. Pure. Source: Anthropic API reference for versions 2023-06-01 and 2026-10-21. */
import { table } from '../../../core/contract/table.ts';
import { badRequest, refuseOutside } from '../fault.ts';
import { flatText, isObject, type JsonObject, listOf, objectOf, textOf, wholeOf } from '../json.ts';
import type { Call } from '../protocol.ts';
import {
  addMedium,
  addText,
  type CacheSpan,
  effortOf,
  type Medium,
  type ModelRequest,
  newModelRequest,
  takeDirectives,
  userSpoke,
} from '../script/model-request.ts';
import { unseal } from '../seal.ts';

const partMedia: Record<string, Medium | undefined> = table({
  image: 'image',
  document: 'file',
  container_upload: 'file',
});

/** From this version on the sampling fields are refused. */
const versionWithoutSampling = '2026-10-21';

export function decodeMessages(body: JsonObject, call: Call): ModelRequest {
  const model = textOf(body['model']);
  if (model === undefined || model === '') throw badRequest('model: Field required', 'model');
  if (!Array.isArray(body['messages'])) throw badRequest('messages: Field required', 'messages');
  if (body['messages'].length === 0) throw badRequest('messages: at least one message is required', 'messages');
  const modelRequest = newModelRequest('messages', model);
  modelRequest.marksOnly = true;
  if (call.operation === 'answer') decodeOptions(modelRequest, body);
  refuseSampling(body, call);
  decodeTools(modelRequest, body);
  decodeThinking(modelRequest, body);
  decodeSystem(modelRequest, body['system']);
  const names = new Map<string, string>();
  for (const [index, message] of body['messages'].entries())
    decodeMessage(modelRequest, objectOf(message), index, names);
  if (isObject(body['cache_control'])) markEnd(modelRequest, spanOf(body)!);
  return takeDirectives(modelRequest);
}

function decodeOptions(modelRequest: ModelRequest, body: JsonObject): void {
  refuseOutside(body, { temperature: [0, 1], top_p: [0, 1] }, (member) => badRequest(`${member}: range: 0..1`, member));
  modelRequest.stream = body['stream'] === true;
  modelRequest.maxTokens = wholeOf(body['max_tokens']);
  if (modelRequest.maxTokens === undefined) {
    const message = 'max_tokens' in body ? 'Input should be a valid integer' : 'Field required';
    throw badRequest(`max_tokens: ${message}`, 'max_tokens');
  }
  modelRequest.stops = listOf(body['stop_sequences']).filter((one) => typeof one === 'string');
  const format = objectOf(objectOf(body['output_config'])['format'] ?? body['output_format']);
  if (format['type'] === 'json_schema') modelRequest.form = { kind: 'schema', schema: format['schema'] };
}

function refuseSampling(body: JsonObject, call: Call): void {
  if (call.headers['anthropic-version'] !== versionWithoutSampling) return;
  for (const field of ['temperature', 'top_p', 'top_k']) {
    if (field in body) throw badRequest(`${field}: Extra inputs are not permitted`, field);
  }
}

function decodeThinking(modelRequest: ModelRequest, body: JsonObject): void {
  const thinking = objectOf(body['thinking']);
  const type = textOf(thinking['type']) ?? 'disabled';
  if (type === 'disabled') return;
  const budget = wholeOf(thinking['budget_tokens']);
  if (type === 'enabled' && (budget === undefined || budget < 1024)) {
    throw badRequest('thinking.enabled.budget_tokens: Input should be greater than or equal to 1024', 'thinking');
  }
  if (modelRequest.maxTokens !== undefined && budget !== undefined && budget >= modelRequest.maxTokens) {
    throw badRequest('`max_tokens` must be greater than `thinking.budget_tokens`.', 'max_tokens');
  }
  if (modelRequest.forced !== undefined) {
    throw badRequest('Thinking may not be enabled when tool_choice forces tool use.', 'tool_choice');
  }
  modelRequest.effort = effortOf(objectOf(body['output_config'])['effort'] ?? 'medium');
  modelRequest.thoughtsShown = thinking['display'] !== 'omitted';
}

/** Client tools; tools that the vendor would run itself are not imitated. */
function decodeTools(modelRequest: ModelRequest, body: JsonObject): void {
  for (const value of listOf(body['tools'])) {
    const tool = objectOf(value);
    addText(modelRequest, 'tools', JSON.stringify(tool), spanOf(tool));
    const name = textOf(tool['name']);
    if (name === undefined || !isObject(tool['input_schema'])) continue;
    modelRequest.tools.push({ name, kind: 'function', schema: tool['input_schema'] });
  }
  const choice = objectOf(body['tool_choice']);
  modelRequest.parallel = choice['disable_parallel_tool_use'] !== true;
  if (choice['type'] === 'none') modelRequest.tools.length = 0;
  if (choice['type'] === 'any') modelRequest.forced = [];
  if (choice['type'] === 'tool') modelRequest.forced = [textOf(choice['name']) ?? ''];
}

function decodeSystem(modelRequest: ModelRequest, system: unknown): void {
  for (const block of blocksOf(system)) addText(modelRequest, 'system', textOf(block['text']) ?? '', spanOf(block));
}

function decodeMessage(
  modelRequest: ModelRequest,
  message: JsonObject,
  index: number,
  names: Map<string, string>,
): void {
  const role = textOf(message['role']);
  if (role !== 'user' && role !== 'assistant' && role !== 'system') {
    throw badRequest(`messages.${index}.role: Input should be 'user' or 'assistant'`, `messages.${index}.role`);
  }
  const blocks = blocksOf(message['content']);
  if (role === 'assistant') modelRequest.results = [];
  const media: Medium[] = [];
  const texts: string[] = [];
  for (const [at, block] of blocks.entries()) {
    const medium = partMedia[textOf(block['type']) ?? ''];
    if (medium !== undefined) {
      media.push(medium);
      addMedium(modelRequest, role, medium, JSON.stringify(block['source']), spanOf(block));
    } else if (block['type'] === 'text') {
      const text = textOf(block['text']) ?? '';
      texts.push(text);
      addText(modelRequest, role, text, spanOf(block));
    } else {
      decodeBlock(modelRequest, role, block, `messages.${index}.content.${at}`, names);
    }
  }
  if (role !== 'user' || (texts.length === 0 && media.length === 0)) return;
  const { results } = modelRequest;
  userSpoke(modelRequest, texts.join(''), media);
  if (blocks.some(({ type }) => type === 'tool_result')) modelRequest.results = results;
}

function blocksOf(content: unknown): readonly JsonObject[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content).map(objectOf);
}

function decodeBlock(
  modelRequest: ModelRequest,
  role: string,
  block: JsonObject,
  path: string,
  names: Map<string, string>,
): void {
  switch (block['type']) {
    case 'tool_use':
      names.set(textOf(block['id']) ?? '', textOf(block['name']) ?? '');
      addText(modelRequest, role, `${block['name']}${JSON.stringify(block['input'])}`, spanOf(block));
      break;
    case 'tool_result': {
      const text = flatText(block['content']);
      addText(modelRequest, 'tool', text, spanOf(block));
      modelRequest.results.push({ name: names.get(textOf(block['tool_use_id']) ?? '') ?? 'tool', text });
      break;
    }
    case 'thinking':
      addText(modelRequest, role, verified(block, path));
      break;
    default:
      addText(modelRequest, role, JSON.stringify(block), spanOf(block));
  }
}

/** The thought of a thinking block, from its signature even if the text was omitted. */
function verified(block: JsonObject, path: string): string {
  const thought = unseal(textOf(block['signature']) ?? '');
  if (thought !== undefined && (block['thinking'] === '' || block['thinking'] === thought)) return thought;
  throw badRequest(`${path}: Invalid \`signature\` in \`thinking\` block`, path);
}

function spanOf(block: JsonObject): CacheSpan | undefined {
  if (!isObject(block['cache_control'])) return undefined;
  return block['cache_control']['ttl'] === '1h' ? '1h' : '5m';
}

/** A mark on the request as a whole applies to the end of the prompt. */
function markEnd(modelRequest: ModelRequest, span: CacheSpan): void {
  const last = modelRequest.prompt.pop();
  if (last !== undefined) modelRequest.prompt.push({ ...last, mark: last.mark ?? span });
}
