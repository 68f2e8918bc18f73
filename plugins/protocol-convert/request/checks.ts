/** Reading of request bodies and checks of the members that the gateway itself needs; unknown members pass. Pure. */

import { GatewayError } from '../../../core/contract/errors.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import { invalid, type RequestBody, readBody } from '../../../core/json/request-body.ts';

export { invalid };

/**
 * Members that both the gateway and the upstream read. With duplicates the two could read different values, and the
 * gateway would charge for a model that was not called.
 */
export const singleMembers = new Set([
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
  'conversation',
  'prompt',
  'container',
  'audio',
  'messages',
  'contents',
  'cachedContent',
  'cached_content',
  'store',
  'thread',
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

/** As `readBody` does, with the members of these four protocols. */
export function readRequestBody(bytes: Uint8Array): RequestBody {
  return readBody(bytes, singleMembers);
}

/** invalid_request for more than is accepted: a repetition cannot help. */
export function refusedForSize(message: string, field: string): GatewayError {
  return new GatewayError('invalid_request', message, { field, shouldRetry: false });
}

/** The model's name. Throws invalid_request when it is missing or not a string. */
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

/** The largest of several bounds that a client may set; undefined when it set none. */
export function largest(...bounds: readonly (number | undefined)[]): number | undefined {
  let most: number | undefined;
  for (const bound of bounds) if (bound !== undefined && (most === undefined || bound > most)) most = bound;
  return most;
}

/** Throws invalid_request unless the member is a non-empty list: an empty one would be charged for nothing. */
export function requireFilled(json: JsonObject, field: string): readonly unknown[] {
  const list = requireList(json, field);
  if (list.length === 0) throw invalid(`The field "${field}" must not be empty.`, field);
  return list;
}

/** Throws invalid_request unless the member is a list. */
export function requireList(json: JsonObject, field: string): readonly unknown[] {
  const value = json[field];
  if (value === undefined || value === null) throw invalid(`The field "${field}" is missing.`, field);
  if (!Array.isArray(value)) throw invalid(`The field "${field}" must be a list.`, field);
  return value;
}
