/** Decodes generateContent requests. Pure. Source: Gemini API reference; members in camelCase or snake_case. */

import { badRequest, type Fault, refuseOutside } from '../fault.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf, wholeOf } from '../json.ts';
import type { Call } from '../protocol.ts';
import {
  addMedium,
  addText,
  effortOf,
  type Medium,
  type ModelRequest,
  newModelRequest,
  takeDirectives,
  userSpoke,
} from '../script/model-request.ts';
import { unseal } from '../seal.ts';

const requestMembers = new Set([
  'contents',
  'systemInstruction',
  'tools',
  'toolConfig',
  'safetySettings',
  'generationConfig',
  'cachedContent',
  'labels',
  'serviceTier',
  'store',
  'continuationToken',
  'model',
]);

/** Clients that lost a signature send this instead. */
const sentinels = ['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go'];

/** A copy of the object with its own member names in camelCase. */
export function camel(value: unknown): JsonObject {
  const object = objectOf(value);
  const names = Object.keys(object);
  if (!names.some((name) => name.includes('_'))) return object;
  return Object.fromEntries(names.map((name) => [camelName(name), object[name]]));
}

function camelName(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

export function decodeGemini(body: JsonObject, call: Call): ModelRequest {
  const nested = call.operation === 'count' ? camel(body)['generateContentRequest'] : undefined;
  const request = camel(isObject(nested) ? nested : body);
  for (const name of Object.keys(request)) {
    if (!requestMembers.has(name)) {
      throw badRequest(`Invalid JSON payload received. Unknown name "${name}": Cannot find field.`, name);
    }
  }
  const contents = isObject(request['contents']) ? [request['contents']] : listOf(request['contents']);
  if (contents.length === 0) {
    throw badRequest('* GenerateContentRequest.contents: contents is not specified', 'contents');
  }
  const modelRequest = newModelRequest('gemini', call.pathModel ?? '');
  modelRequest.stream = call.pathStream;
  modelRequest.refusesSilently = true;
  decodeConfig(modelRequest, camel(request['generationConfig']));
  decodeTools(modelRequest, request);
  for (const part of partsOf(request['systemInstruction'])) addText(modelRequest, 'system', textOf(part['text']) ?? '');
  for (const [index, content] of contents.entries()) decodeContent(modelRequest, camel(content), index);
  return takeDirectives(modelRequest);
}

function partsOf(content: unknown): JsonObject[] {
  if (typeof content === 'string') return [{ text: content }];
  const parts = camel(content)['parts'];
  return (isObject(parts) ? [parts] : listOf(parts)).map(camel);
}

function outOfRange(member: string): Fault {
  const field = member === 'topP' ? 'top_p' : member;
  const range = member === 'topP' ? '[0.0, 1.0]' : '[0.0, 2.0]';
  return badRequest(`* GenerateContentRequest.generation_config.${field}: ${field} must be in the range ${range}.`);
}

function decodeConfig(modelRequest: ModelRequest, config: JsonObject): void {
  refuseOutside(config, { temperature: [0, 2], topP: [0, 1] }, outOfRange);
  modelRequest.maxTokens = wholeOf(config['maxOutputTokens'], 1);
  modelRequest.choices = Math.min(wholeOf(config['candidateCount'], 1) ?? 1, 8);
  modelRequest.stops = listOf(config['stopSequences']).filter((one) => typeof one === 'string');
  const thinking = camel(config['thinkingConfig']);
  const budget = wholeOf(thinking['thinkingBudget'], -1);
  const level = textOf(thinking['thinkingLevel']);
  modelRequest.thoughtsShown = thinking['includeThoughts'] === true;
  if (level !== undefined) modelRequest.effort = effortOf(level);
  else if (budget === undefined ? modelRequest.thoughtsShown : budget !== 0) modelRequest.effort = 2;
  const formats = isObject(config['responseFormat']) ? [config['responseFormat']] : listOf(config['responseFormat']);
  const text = camel(formats.map((format) => camel(format)['text']).find(isObject));
  const schema = text['schema'] ?? config['responseJsonSchema'] ?? config['responseSchema'];
  const type = text['mimeType'] ?? config['responseMimeType'];
  if (schema !== undefined && type !== 'text/plain') modelRequest.form = { kind: 'schema', schema };
  else if (type === 'application/json') modelRequest.form = { kind: 'object' };
}

/** Function declarations; tools that the vendor would run itself are not imitated. */
function decodeTools(modelRequest: ModelRequest, request: JsonObject): void {
  const tools = isObject(request['tools']) ? [request['tools']] : listOf(request['tools']);
  if (tools.length > 0) addText(modelRequest, 'tools', JSON.stringify(tools));
  for (const tool of tools) {
    for (const value of listOf(camel(tool)['functionDeclarations'])) {
      const declared = camel(value);
      const schema = declared['parametersJsonSchema'] ?? declared['parameters'] ?? { type: 'OBJECT' };
      modelRequest.tools.push({ name: textOf(declared['name']) ?? '', kind: 'function', schema });
    }
  }
  const calling = camel(camel(request['toolConfig'])['functionCallingConfig']);
  const mode = textOf(calling['mode'])?.toUpperCase();
  const allowed = listOf(calling['allowedFunctionNames']).filter((name) => typeof name === 'string');
  if (mode === 'NONE') modelRequest.tools.length = 0;
  if (mode === 'ANY') modelRequest.forced = allowed;
}

function decodeContent(modelRequest: ModelRequest, content: JsonObject, index: number): void {
  const role = textOf(content['role']) ?? 'user';
  if (role !== 'user' && role !== 'model' && role !== 'function') {
    throw badRequest('Please use a valid role: user, model.', `contents[${index}].role`);
  }
  if (role === 'model') modelRequest.results = [];
  const parts = partsOf(content);
  const said: Said = { texts: [], media: [] };
  for (const part of parts) decodePart(modelRequest, role, part, said);
  if (role !== 'user' || (said.texts.length === 0 && said.media.length === 0)) return;
  const { results } = modelRequest;
  userSpoke(modelRequest, said.texts.join(''), said.media);
  if (parts.some((part) => isObject(part['functionResponse']))) modelRequest.results = results;
}

interface Said {
  readonly texts: string[];
  readonly media: Medium[];
}

function decodePart(modelRequest: ModelRequest, role: string, part: JsonObject, said: Said): void {
  checkSignature(part);
  const data = camel(part['inlineData'] ?? part['fileData']);
  if (typeof part['text'] === 'string') {
    if (part['thought'] !== true) said.texts.push(part['text']);
    addText(modelRequest, role, part['text']);
  } else if (typeof data['mimeType'] === 'string') {
    const medium = mediumOf(data['mimeType']);
    said.media.push(medium);
    addMedium(modelRequest, role, medium, JSON.stringify(data));
  } else if (isObject(part['functionResponse'])) {
    decodeResult(modelRequest, camel(part['functionResponse']));
  } else {
    addText(modelRequest, role, JSON.stringify(part));
  }
}

function decodeResult(modelRequest: ModelRequest, response: JsonObject): void {
  const { result, output } = objectOf(response['response']);
  const content = output ?? result ?? response['response'];
  const text = typeof content === 'string' ? content : JSON.stringify(content ?? {});
  addText(modelRequest, 'tool', text);
  modelRequest.results.push({ name: textOf(response['name']) ?? 'tool', text });
}

function mediumOf(mimeType: string): Medium {
  if (mimeType.startsWith('image/')) return 'image';
  return mimeType.startsWith('audio/') ? 'audio' : 'file';
}

function checkSignature(part: JsonObject): void {
  const signature = part['thoughtSignature'];
  if (typeof signature !== 'string' || unseal(signature) !== undefined) return;
  const decoded = Buffer.from(signature, 'base64').toString();
  if (sentinels.includes(signature) || sentinels.includes(decoded)) return;
  throw badRequest('Corrupted thought signature.', 'contents');
}
