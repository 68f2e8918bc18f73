/** Reads what the gateway must know of a generate-content request: model and method from the path, the rest from the body. Pure. */
import { GatewayError } from '../../../../core/errors.ts';
import type { Call } from '../../../../core/vocabulary.ts';
import { countOf, invalid, largest, streamOf } from '../../checks.ts';
import { measureMedia, promptTokens } from '../../estimate.ts';
import { isObject, type JsonObject, listOf, objectOf } from '../../json.ts';
import type { RequestBody } from '../../protocol.ts';
import { boundedCalls, surcharges, toolCallsOf } from '../../surcharges.ts';

const methods = ['generateContent', 'streamGenerateContent', 'countTokens'] as const;
export type Method = (typeof methods)[number];

/** `gemini-x:generateContent` → model and method; the model may hold slashes and colons. Throws not_found. */
export function parsePath(wildcard: string | undefined): { model: string; method: Method } {
  const text = wildcard ?? '';
  const colon = text.lastIndexOf(':');
  const model = text.slice(0, Math.max(0, colon));
  const method = methods.find((name) => name === text.slice(colon + 1));
  if (method === undefined || model === '') {
    throw new GatewayError(
      'not_found',
      `There is no such method; a model's name is followed by ${methods.map((name) => `:${name}`).join(', ')}.`,
    );
  }
  return { model, method };
}

/** Throws invalid_request that names the field. */
export function peekGemini({ json, bytes }: RequestBody, model: string, method: Method): Call {
  const nested = method === 'countTokens' ? objectOf(json['generateContentRequest']) : undefined;
  const request = nested ?? json;
  const { contents } = request;
  if (contents !== undefined && contents !== null && !Array.isArray(contents))
    throw invalid('The field "contents" must be a list.', 'contents');
  const asksStream = streamOf(json);
  const media = { characters: 0, tokens: 0 };
  for (const content of listOf(contents)) measureMedia(objectOf(content)?.['parts'], media);
  return {
    protocol: 'gemini',
    model,
    stream: method === 'streamGenerateContent' || (asksStream && method === 'generateContent'),
    billable: method !== 'countTokens',
    inputTokens: promptTokens(bytes.length, media),
    maxOutputTokens: bound(request, 'maxOutputTokens', 'max_output_tokens', 0),
    choices: bound(request, 'candidateCount', 'candidate_count', 1) ?? 1,
    ...surcharges({
      tier: request['serviceTier'] ?? request['service_tier'],
      toolCalls: toolCallsOf(request['tools'], callsOf),
    }),
  };
}

const functionMembers = new Set(['functionDeclarations', 'function_declarations']);

/** One tool object may name several; functions are the client's. */
function callsOf(tool: JsonObject): number {
  return Object.keys(tool).filter((name) => !functionMembers.has(name)).length * boundedCalls(undefined);
}

/** A bound in either case, at the top or in the generation settings, whichever is larger. */
function bound(json: JsonObject, camel: string, snake: string, least: number): number | undefined {
  const found: (number | undefined)[] = [countOf(json, camel, least), countOf(json, snake, least)];
  for (const name of ['generationConfig', 'generation_config']) {
    const config = json[name];
    if (config === undefined || config === null) continue;
    if (!isObject(config)) throw invalid(`The field "${name}" must be an object.`, name);
    found.push(countOf(config, camel, least, `${name}.${camel}`), countOf(config, snake, least, `${name}.${snake}`));
  }
  return largest(...found);
}
