/**
 * Extracts what the gateway needs before it forwards a generate-content request: model and method from the path, the rest
 * from the body. Pure.
 */
import { GatewayError } from '../../../../core/contract/errors.ts';
import { isObject, type JsonObject, objectOf, oneOrMany } from '../../../../core/json/json.ts';
import type { Call } from '../../../common/domain/calls.ts';
import type { RequestBody } from '../../../common/wire/protocols.ts';
import { measureMedia, promptTokens } from '../../metering/estimate.ts';
import { boundedCalls, picturesOf, type RequestMember, surcharges, toolCallsOf } from '../../metering/surcharges.ts';
import { countOf, invalid, largest, streamOf } from '../../request/checks.ts';

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
export function preflightGemini({ json, bytes }: RequestBody, model: string, method: Method): Call {
  const nested = method === 'countTokens' ? objectOf(json['generateContentRequest']) : undefined;
  const request = nested ?? json;
  const { contents } = request;
  if (!isContents(contents)) throw invalid('The field "contents" must be a list.', 'contents');
  const asksStream = streamOf(json);
  const media = { characters: 0, tokens: 0 };
  for (const content of oneOrMany(contents)) measureMedia(oneOrMany(objectOf(content)?.['parts']), media);
  return {
    protocol: 'gemini',
    model,
    stream: method === 'streamGenerateContent' || (asksStream && method === 'generateContent'),
    billable: method !== 'countTokens',
    inputTokens: promptTokens(bytes.length, media),
    maxOutputTokens: bound(request, 'maxOutputTokens', 'max_output_tokens', 0),
    choices: bound(request, 'candidateCount', 'candidate_count', 1) ?? 1,
    ...picturesOf(undefined, modalitiesOf(request)),
    ...surcharges({
      tier: tierOf(request),
      toolCalls: toolCallsOf(oneOrMany(request['tools']), callsOf),
    }),
  };
}

/** A list, nothing, or one content without the list around it; an empty object counts as nothing. */
function isContents(value: unknown): boolean {
  if (isObject(value)) return Object.keys(value).length > 0;
  return value === undefined || value === null || Array.isArray(value);
}

const functionMembers = new Set(['functionDeclarations', 'function_declarations']);

/** In either case. */
function tierOf(request: JsonObject): RequestMember {
  const { serviceTier, service_tier: snakeTier } = request;
  return serviceTier === undefined || serviceTier === null ? ['service_tier', snakeTier] : ['serviceTier', serviceTier];
}

function modalitiesOf(request: JsonObject): unknown {
  const config = objectOf(request['generationConfig']) ?? objectOf(request['generation_config']);
  return config?.['responseModalities'] ?? config?.['response_modalities'];
}

/** One tool object may name several; functions are run by the client. */
function callsOf(tool: JsonObject): number {
  return Object.keys(tool).filter((name) => !functionMembers.has(name)).length * boundedCalls(undefined);
}

/** A limit in either case, at the top level or in the generation settings, whichever is larger. */
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
