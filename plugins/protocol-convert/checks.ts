/** Reads a request's body and checks what the gateway itself needs of it; unknown members pass. Pure. */
import { GatewayError } from '../../core/errors.ts';
import { DepthError, defaultMaxDepth, type ObjectScan, scanObject } from '../../core/splice.ts';
import { type JsonObject, tryParseBytes } from './json.ts';
import type { RequestBody } from './protocol.ts';

/** Members by which clients of other gateways point at an upstream of their own. */
const upstreamMembers = ['api_base', 'base_url', 'api_key', 'extra_headers'];

/**
 * Members that the gateway reads and the upstream reads again: sent twice, the two could read different ones, and the
 * gateway would charge for a model that was not called.
 */
const singleMembers = new Set([
  'model',
  'stream',
  'stream_options',
  'n',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'background',
  'input',
  'previous_response_id',
  'store',
  'generationConfig',
  'generation_config',
  'candidate_count',
  'generateContentRequest',
  'tools',
  'max_tool_calls',
  'web_search_options',
  'service_tier',
  'serviceTier',
  'speed',
  'inference_geo',
]);

/** Throws invalid_request for a body that is empty, no JSON object, too deep, or carries a member that must not be there. */
export function readRequestBody(bytes: Uint8Array): RequestBody {
  if (bytes.length === 0) throw invalid('The request body is empty; a JSON object is needed.');
  const scan = scanBody(bytes);
  const json = tryParseBytes(bytes);
  if (json === undefined) throw invalid('The request body is not valid JSON.');
  for (const [index, { key }] of scan.members.entries()) checkMember(scan, key, index);
  return { bytes, json: json as JsonObject, scan };
}

function checkMember({ members }: ObjectScan, key: string, index: number): void {
  if (key === '__proto__') throw invalid('The field "__proto__" is not accepted.', key);
  if (upstreamMembers.includes(key))
    throw invalid(`The field "${key}" is not accepted: upstreams are chosen here.`, key);
  if (!singleMembers.has(key)) return;
  for (let before = 0; before < index; before++) {
    if (members[before]!.key === key) throw invalid(`The field "${key}" is there more than once.`, key);
  }
}

function scanBody(bytes: Uint8Array): ObjectScan {
  try {
    return scanObject(bytes);
  } catch (error) {
    if (error instanceof DepthError) throw invalid(`The request body is nested deeper than ${defaultMaxDepth} levels.`);
    const isObject = Buffer.from(bytes.subarray(0, 64)).toString('latin1').trimStart().startsWith('{');
    throw invalid(isObject ? 'The request body is not valid JSON.' : 'The request body must be a JSON object.');
  }
}

export function invalid(message: string, field?: string): GatewayError {
  return new GatewayError('invalid_request', message, field === undefined ? {} : { field });
}

/** The model's name. Throws invalid_request when it is missing or no text. */
export function modelOf(json: JsonObject): string {
  const { model } = json;
  if (model === undefined || model === null || model === '') throw invalid('The field "model" is missing.', 'model');
  if (typeof model !== 'string') throw invalid('The field "model" must be a string.', 'model');
  return model;
}

/** Absent and null count as false. */
export function streamOf(json: JsonObject): boolean {
  const { stream } = json;
  if (stream === undefined || stream === null) return false;
  if (typeof stream !== 'boolean') throw invalid('The field "stream" must be true or false.', 'stream');
  return stream;
}

/** A whole number of at least `least`; undefined when absent or null. */
export function countOf(json: JsonObject, field: string, least: number, name = field): number | undefined {
  const value = json[field];
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least) return value;
  throw invalid(`The field "${name}" must be a whole number of at least ${least}.`, name);
}

/** The larger of several bounds that a client may have set; undefined when it set none. */
export function largest(...bounds: readonly (number | undefined)[]): number | undefined {
  const set = bounds.filter((bound) => bound !== undefined);
  return set.length === 0 ? undefined : Math.max(...set);
}

/** Throws invalid_request unless the member is a list. */
export function requireList(json: JsonObject, field: string): readonly unknown[] {
  const value = json[field];
  if (value === undefined || value === null) throw invalid(`The field "${field}" is missing.`, field);
  if (!Array.isArray(value)) throw invalid(`The field "${field}" must be a list.`, field);
  return value;
}
