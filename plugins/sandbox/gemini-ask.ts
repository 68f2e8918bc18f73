/** generateContent requests → what they ask. Pure. Source: Gemini API reference; members in camelCase or snake_case. */
import { type Ask, addMedium, addText, effortOf, type Medium, newAsk, takeDirectives, userSpoke } from './ask.ts';
import { badRequest } from './fault.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf, wholeOf } from './json.ts';
import type { Call } from './protocol.ts';
import { unseal } from './seal.ts';

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
function camel(value: unknown): JsonObject {
  const object = objectOf(value);
  const names = Object.keys(object);
  if (!names.some((name) => name.includes('_'))) return object;
  return Object.fromEntries(names.map((name) => [camelName(name), object[name]]));
}

function camelName(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

export function readGemini(body: JsonObject, call: Call): Ask {
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
  const ask = newAsk('gemini', call.pathModel ?? '');
  ask.stream = call.pathStream;
  ask.refusesSilently = true;
  readConfig(ask, camel(request['generationConfig']));
  readTools(ask, request);
  for (const part of partsOf(request['systemInstruction'])) addText(ask, 'system', textOf(part['text']) ?? '');
  for (const [index, content] of contents.entries()) readContent(ask, camel(content), index);
  return takeDirectives(ask);
}

function partsOf(content: unknown): JsonObject[] {
  if (typeof content === 'string') return [{ text: content }];
  const parts = camel(content)['parts'];
  return (isObject(parts) ? [parts] : listOf(parts)).map(camel);
}

function readConfig(ask: Ask, config: JsonObject): void {
  ask.maxTokens = wholeOf(config['maxOutputTokens'], 1);
  ask.choices = Math.min(wholeOf(config['candidateCount'], 1) ?? 1, 8);
  ask.stops = listOf(config['stopSequences']).filter((one) => typeof one === 'string');
  const thinking = camel(config['thinkingConfig']);
  const budget = wholeOf(thinking['thinkingBudget'], -1);
  const level = textOf(thinking['thinkingLevel']);
  ask.thoughtsShown = thinking['includeThoughts'] === true;
  if (level !== undefined) ask.effort = effortOf(level);
  else if (budget === undefined ? ask.thoughtsShown : budget !== 0) ask.effort = 2;
  const schema = config['responseJsonSchema'] ?? config['responseSchema'];
  const type = config['responseMimeType'];
  if (schema !== undefined && type !== 'text/plain') ask.form = { kind: 'schema', schema };
  else if (type === 'application/json') ask.form = { kind: 'object' };
}

/** Function declarations; tools that the vendor would run itself are not imitated. */
function readTools(ask: Ask, request: JsonObject): void {
  const tools = isObject(request['tools']) ? [request['tools']] : listOf(request['tools']);
  if (tools.length > 0) addText(ask, 'tools', JSON.stringify(tools));
  for (const tool of tools) {
    for (const value of listOf(camel(tool)['functionDeclarations'])) {
      const declared = camel(value);
      const schema = declared['parametersJsonSchema'] ?? declared['parameters'] ?? { type: 'OBJECT' };
      ask.tools.push({ name: textOf(declared['name']) ?? '', kind: 'function', schema });
    }
  }
  const calling = camel(camel(request['toolConfig'])['functionCallingConfig']);
  const mode = textOf(calling['mode'])?.toUpperCase();
  const allowed = listOf(calling['allowedFunctionNames']).filter((name) => typeof name === 'string');
  if (mode === 'NONE') ask.tools.length = 0;
  if (mode === 'ANY') ask.forced = allowed;
}

function readContent(ask: Ask, content: JsonObject, index: number): void {
  const role = textOf(content['role']) ?? 'user';
  if (role !== 'user' && role !== 'model' && role !== 'function') {
    throw badRequest('Please use a valid role: user, model.', `contents[${index}].role`);
  }
  if (role === 'model') ask.results = [];
  const media: Medium[] = [];
  let text: string | undefined;
  for (const part of partsOf(content)) {
    checkSignature(part);
    const data = camel(part['inlineData'] ?? part['fileData']);
    if (typeof part['text'] === 'string') {
      if (part['thought'] !== true) text = (text ?? '') + part['text'];
      addText(ask, role, part['text']);
    } else if (typeof data['mimeType'] === 'string') {
      const medium = mediumOf(data['mimeType']);
      media.push(medium);
      addMedium(ask, role, medium, JSON.stringify(data));
    } else if (isObject(part['functionResponse'])) {
      readResult(ask, camel(part['functionResponse']));
    } else {
      addText(ask, role, JSON.stringify(part));
    }
  }
  const spoke = role === 'user' && (text !== undefined || media.length > 0);
  if (!spoke) return;
  const { results } = ask;
  userSpoke(ask, text ?? '', media);
  if (partsOf(content).some((part) => isObject(part['functionResponse']))) ask.results = results;
}

function readResult(ask: Ask, response: JsonObject): void {
  const { result, output } = objectOf(response['response']);
  const told = output ?? result ?? response['response'];
  const text = typeof told === 'string' ? told : JSON.stringify(told ?? {});
  addText(ask, 'tool', text);
  ask.results.push({ name: textOf(response['name']) ?? 'tool', text });
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
