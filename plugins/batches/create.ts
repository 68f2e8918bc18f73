/** Reads orders of batches: which input, which endpoint, which window. */
import { GatewayError } from '../../core/contract/errors.ts';
import type { ClientRequest } from '../../core/contract/message.ts';
import { type JsonObject, objectOf } from '../../core/json/json.ts';
import { invalid, readBody } from '../../core/json/request-body.ts';
import { metadataIn } from '../common/kit/forms/metadata.ts';

export interface ChatOrder {
  readonly inputFile: string;
  readonly endpoint: string;
  readonly metadata: Readonly<Record<string, string>> | undefined;
  readonly outputLifetimeMs: number | undefined;
}

/** Members that decide the order: a second one would hide the first. */
const single = new Set(['input_file_id', 'endpoint', 'requests']);

export function chatOrder(request: ClientRequest, endpoints: readonly string[]): ChatOrder {
  const { json } = readBody(request.body, single);
  const { input_file_id: inputFile, endpoint, completion_window: window } = json;
  if (typeof inputFile !== 'string' || inputFile === '')
    throw invalid('The field "input_file_id" must be the id of an uploaded file.', 'input_file_id');
  if (typeof endpoint !== 'string' || !endpoints.includes(endpoint))
    throw invalid(`The field "endpoint" must be one of: ${endpoints.join(', ')}.`, 'endpoint');
  if (window !== '24h') throw invalid('The field "completion_window" must be "24h".', 'completion_window');
  return { inputFile, endpoint, metadata: metadataIn(json), outputLifetimeMs: lifetimeIn(json) };
}

function lifetimeIn(json: JsonObject): number | undefined {
  const policy = json['output_expires_after'];
  if (policy === undefined || policy === null) return undefined;
  const { anchor, seconds } = objectOf(policy) ?? {};
  if (anchor !== 'created_at')
    throw invalid('"output_expires_after.anchor" must be "created_at".', 'output_expires_after.anchor');
  if (typeof seconds === 'number' && Number.isInteger(seconds) && seconds >= 3_600 && seconds <= 2_592_000)
    return seconds * 1_000;
  const message = '"output_expires_after.seconds" must be a whole number from 3600 to 2592000.';
  throw invalid(message, 'output_expires_after.seconds');
}

/** The requests as lines of an input file. Their order and ids are checked like those of any input. */
export function* messagesLines(request: ClientRequest, mostLines: number): Generator<Uint8Array> {
  const { requests } = readBody(request.body, single).json;
  if (!Array.isArray(requests) || requests.length === 0)
    throw invalid('The field "requests" must be a list with at least one request.', 'requests');
  if (requests.length > mostLines) throw tooMany(mostLines);
  const seen = new Set<string>();
  for (const [index, entry] of requests.entries()) {
    const field = `requests.${index}`;
    const { customId, body } = messagesRequest(entry, field);
    if (seen.has(customId)) throw invalid(`"${field}.custom_id" is there more than once.`, `${field}.custom_id`);
    seen.add(customId);
    yield Buffer.from(`${JSON.stringify({ custom_id: customId, method: 'POST', url: '/v1/messages', body })}\n`);
  }
}

function messagesRequest(entry: unknown, field: string): { readonly customId: string; readonly body: JsonObject } {
  const { custom_id: customId, params } = objectOf(entry) ?? {};
  if (typeof customId !== 'string' || !/^[\w-]{1,64}$/.test(customId))
    throw invalid(`"${field}.custom_id" must be 1 to 64 letters, digits, "_" or "-".`, `${field}.custom_id`);
  const body = objectOf(params);
  if (body === undefined) throw invalid(`"${field}.params" must be an object.`, `${field}.params`);
  if (typeof body['model'] !== 'string' || body['model'] === '')
    throw invalid(`"${field}.params.model" must name a model.`, `${field}.params.model`);
  if (body['stream'] === true) throw invalid('Requests of batches are not streamed.', `${field}.params.stream`);
  return { customId, body };
}

function tooMany(mostLines: number): GatewayError {
  return new GatewayError('too_large', `A batch has at most ${mostLines} requests.`, {
    field: 'requests',
    shouldRetry: false,
  });
}
