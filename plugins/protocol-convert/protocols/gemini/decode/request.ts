/** Decodes a client's request in any of the three shapes that clients send. Pure. */

import { isObject, type JsonObject, objectOf } from '../../../../../core/json/json.ts';
import type { DecodeContext } from '../../../../common/canonical/codec.ts';
import { notTranslatable } from '../../../../common/canonical/dropped-parameters.ts';
import type { Part, Prompt, Turn } from '../../../../common/canonical/prompt.ts';
import { invalid } from '../../../request/checks.ts';
import { openShape, recordUnread, shape } from '../../../request/shapes.ts';
import { ContentsDecoder } from './contents.ts';
import { officialRequest } from './flat-request.ts';
import { RequestDecoder } from './request-members.ts';
import { decodeSettings, imageOptionsField, imageOptionsName } from './settings.ts';
import { decodeToolChoice, decodeTools } from './tools.ts';

// The members that are read of each object, by official names.
const inlineData = shape('mimeType data displayName');
const fileData = shape('mimeType fileUri displayName');
const functionCall = shape('id name args');
const functionResponse = shape('id name response parts willContinue scheduling', {
  parts: shape('inlineData fileData', { inlineData, fileData }),
});
const executableCode = shape('language code', {}, 'id');
const codeExecutionResult = shape('outcome output', {}, 'id');

const part = openShape({
  ...{ inlineData, fileData, functionCall, functionResponse, executableCode, codeExecutionResult },
});

const declaration = shape('name description parameters parametersJsonSchema response responseJsonSchema behavior');
const calling = shape('mode allowedFunctionNames streamFunctionCallArguments');

export const requestShape = shape('', {
  contents: shape('role parts', { parts: part }),
  systemInstruction: shape('parts text', { parts: shape('text') }, 'role'),
  tools: openShape({ functionDeclarations: declaration }),
  toolConfig: openShape({ functionCallingConfig: calling }),
  generationConfig: openShape({ thinkingConfig: shape('includeThoughts thinkingBudget thinkingLevel') }),
});

const known = new Set([
  'contents',
  'systemInstruction',
  'tools',
  'toolConfig',
  'generationConfig',
  'serviceTier',
  'cachedContent',
  'continuationToken',
]);

/** Members that affect the form, routing or accounting of an answer and nothing that the model sees. */
const softParameters = new Set(['safetySettings', 'labels', 'store', 'modelArmorConfig']);

/** Throws invalid_request that names the field, and unsupported for state that only the protocol's own vendor stores. */
export function decodeRequest(json: JsonObject, context: DecodeContext): Prompt {
  const decoder = new RequestDecoder(json, context);
  context.dropped.spellWith((name) => decoder.spelled(name === imageOptionsName ? imageOptionsField(json) : name));
  const outer = officialRequest(json);
  // A count may wrap the request, which then repeats the model.
  const nested = objectOf(outer['generateContentRequest']);
  const { model: _model, ...request } = nested ?? outer;
  for (const field of ['cachedContent', 'continuationToken']) refuse(request, field, decoder);
  const contents = decoder.list(request, 'contents', 'contents');
  if (contents.length === 0) throw invalid('The field "contents" is missing or empty.', 'contents');
  const turns = [...systemTurns(request, decoder), ...new ContentsDecoder(decoder).decode(contents)];
  const { choice, strict } = decodeToolChoice(request, decoder);
  const tools = decodeTools(request, decoder);
  const settings = decodeSettings(decoder.object(request, 'generationConfig', 'generationConfig') ?? {}, decoder);
  const tier = serviceTier(request, decoder);
  recordUnread(request, requestShape, decoder.dropped, (path) => decoder.name(path));
  for (const [field, value] of Object.entries(request))
    if (!known.has(field)) decoder.unknown(field, value, softParameters);
  return {
    turns,
    tools: strict ? tools.map((tool) => (tool.kind === 'function' ? { ...tool, strict } : tool)) : tools,
    ...(choice === undefined ? {} : { toolChoice: choice }),
    ...settings,
    ...(tier === undefined ? {} : { serviceTier: tier }),
  };
}

function refuse(request: JsonObject, field: string, decoder: RequestDecoder): void {
  if (request[field] === undefined || request[field] === null || request[field] === '') return;
  const name = decoder.name(field);
  throw notTranslatable(`The field "${name}" cannot be honoured: what it names is kept by another vendor.`, name);
}

/** The role has no meaning here. A bare text is accepted too. */
function systemTurns(request: JsonObject, decoder: RequestDecoder): Turn[] {
  const system = request['systemInstruction'];
  if (typeof system === 'string')
    return system === '' ? [] : [{ role: 'system', parts: [{ kind: 'text', text: system }] }];
  const path = 'systemInstruction';
  const content = decoder.object(request, path, path);
  if (content === undefined) return [];
  const given = Array.isArray(content['parts']) ? content['parts'] : [content['parts'] ?? content];
  const parts: Part[] = given.flatMap((part: unknown, index: number): Part[] => {
    const text = isObject(part) ? part['text'] : part;
    if (typeof text !== 'string') throw decoder.fault(`${path}.parts[${index}].text`, 'be a string');
    return text === '' ? [] : [{ kind: 'text', text }];
  });
  return parts.length === 0 ? [] : [{ role: 'system', parts }];
}

function serviceTier(request: JsonObject, decoder: RequestDecoder): string | undefined {
  const tier = decoder
    .text(request, 'serviceTier', 'serviceTier')
    ?.toLowerCase()
    .replace(/^service_tier_/, '');
  if (tier === undefined || tier === '' || tier === 'unspecified') return undefined;
  return tier === 'standard' ? 'default' : tier;
}
