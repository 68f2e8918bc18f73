/** Reads a client's request, in any of the three shapes that clients write. Pure. */
import type { Part, Prompt, Turn } from '../../canon.ts';
import { invalid } from '../../checks.ts';
import type { DecodeContext } from '../../codec.ts';
import { isObject, type JsonObject, objectOf } from '../../json.ts';
import { notTranslatable } from '../../losses.ts';
import { ContentsReader } from './decode-contents.ts';
import { decodeSettings } from './decode-settings.ts';
import { decodeToolChoice, decodeTools } from './decode-tools.ts';
import { officialRequest } from './flat-request.ts';
import { Reading } from './reading.ts';

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

/** Throws invalid_request that names the field, and unsupported for what only the protocol's own vendor can keep. */
export function decodeRequest(json: JsonObject, context: DecodeContext): Prompt {
  const reading = new Reading(json, context);
  const outer = officialRequest(json);
  // A count may wrap the request, which then names the model once more.
  const nested = objectOf(outer['generateContentRequest']);
  const { model: _model, ...request } = nested ?? outer;
  for (const field of ['cachedContent', 'continuationToken']) refuse(request, field, reading);
  const contents = reading.list(request, 'contents', 'contents');
  if (contents.length === 0) throw invalid('The field "contents" is missing or empty.', 'contents');
  const turns = [...systemTurns(request, reading), ...new ContentsReader(reading).read(contents)];
  const { choice, strict } = decodeToolChoice(request, reading);
  const tools = decodeTools(request, reading);
  const settings = decodeSettings(reading.object(request, 'generationConfig', 'generationConfig') ?? {}, reading);
  const tier = serviceTier(request, reading);
  for (const [field, value] of Object.entries(request)) if (!known.has(field)) reading.drop(field, value);
  return {
    turns,
    tools: strict ? tools.map((tool) => (tool.kind === 'function' ? { ...tool, strict } : tool)) : tools,
    ...(choice === undefined ? {} : { toolChoice: choice }),
    ...settings,
    ...(tier === undefined ? {} : { serviceTier: tier }),
  };
}

function refuse(request: JsonObject, field: string, reading: Reading): void {
  if (request[field] === undefined || request[field] === null || request[field] === '') return;
  const name = reading.name(field);
  throw notTranslatable(`The field "${name}" cannot be honoured: what it names is kept by another vendor.`, name);
}

/** The role is of no meaning here. A bare text is understood too. */
function systemTurns(request: JsonObject, reading: Reading): Turn[] {
  const system = request['systemInstruction'];
  if (typeof system === 'string')
    return system === '' ? [] : [{ role: 'system', parts: [{ kind: 'text', text: system }] }];
  const path = 'systemInstruction';
  const content = reading.object(request, path, path);
  if (content === undefined) return [];
  const given = Array.isArray(content['parts']) ? content['parts'] : [content['parts'] ?? content];
  const parts: Part[] = given.flatMap((part: unknown, index: number): Part[] => {
    const text = isObject(part) ? part['text'] : part;
    if (typeof text !== 'string') throw reading.fault(`${path}.parts[${index}].text`, 'be a string');
    return text === '' ? [] : [{ kind: 'text', text }];
  });
  return parts.length === 0 ? [] : [{ role: 'system', parts }];
}

function serviceTier(request: JsonObject, reading: Reading): string | undefined {
  const tier = reading
    .text(request, 'serviceTier', 'serviceTier')
    ?.toLowerCase()
    .replace(/^service_tier_/, '');
  if (tier === undefined || tier === '' || tier === 'unspecified') return undefined;
  return tier === 'standard' ? 'default' : tier;
}
