/** Reads orders of Google's clients: requests in the body, or lines of a file; both become lines of an input. */
import { GatewayError } from '../../../core/contract/errors.ts';
import type { ClientRequest } from '../../../core/contract/message.ts';
import { isObject, type JsonObject, objectOf, tryParse } from '../../../core/json/json.ts';
import { invalid, readBody } from '../../../core/json/request-body.ts';
import { contentEndpoint, embeddingEndpoint } from '../../common/domain/admin/batches.ts';
import { type InputLimits, linesOf } from '../input.ts';

interface GoogleOrder {
  readonly displayName: string;
  /** Requests, or the name of a file. */
  readonly source: readonly unknown[] | string;
}

/** A kind of order, by the method of a model that it calls. */
export interface OrderKind {
  readonly method: string;
  readonly summary: string;
  /** As it stands in the settings. */
  readonly endpoint: typeof contentEndpoint | typeof embeddingEndpoint;
  /** Name of the member that each request must have. */
  readonly required: string;
}

export const orderKinds: readonly OrderKind[] = [
  {
    method: 'batchGenerateContent',
    summary: 'Orders a batch of requests.',
    endpoint: contentEndpoint,
    required: 'contents',
  },
  {
    method: 'asyncBatchEmbedContent',
    summary: 'Orders a batch of embeddings.',
    endpoint: embeddingEndpoint,
    required: 'content',
  },
];

/** Values that the lines of an order share. */
export interface LineTerms {
  readonly kind: OrderKind;
  readonly model: string;
}

/** The address that lines call. */
export function endpointOf({ kind, model }: LineTerms): string {
  return kind.endpoint.replace('{model}', () => encodeURIComponent(model));
}

/** What an id of a line may have: its number, and its key or metadata. */
const longestMark = 240;
const longestName = 512;
const single = new Set(['batch']);

export function googleOrder({ body }: ClientRequest): GoogleOrder {
  const batch = objectOf(readBody(body, single).json['batch']);
  if (batch === undefined) throw invalid('The field "batch" must be an object.', 'batch');
  const displayName = member(batch, 'displayName', 'display_name') ?? '';
  if (typeof displayName !== 'string' || displayName.length > longestName)
    throw invalid(
      `The field "batch.displayName" must be a text of at most ${longestName} characters.`,
      'batch.displayName',
    );
  if (member(batch, 'webhookConfig', 'webhook_config') !== undefined)
    throw new GatewayError('unsupported', 'The field "batch.webhookConfig" is not supported: ask for the batch.', {
      field: 'batch.webhookConfig',
      shouldRetry: false,
    });
  const input = objectOf(member(batch, 'inputConfig', 'input_config'));
  if (input === undefined) throw invalid('The field "batch.inputConfig" must be an object.', 'batch.inputConfig');
  const file = member(input, 'fileName', 'file_name');
  const requests = objectOf(input['requests'])?.['requests'];
  if (typeof file === 'string' && input['requests'] === undefined) return { displayName, source: file };
  if (file === undefined && Array.isArray(requests) && requests.length > 0) return { displayName, source: requests };
  throw invalid(
    'The field "batch.inputConfig" must have either "fileName" or "requests.requests", a list that is not empty.',
    'batch.inputConfig',
  );
}

function member(object: JsonObject, camel: string, snake: string): unknown {
  return object[camel] ?? object[snake] ?? undefined;
}

/** Lines of the requests in an order. */
export async function* linesOfRequests(
  requests: readonly unknown[],
  terms: LineTerms,
  { lines: most }: InputLimits,
): AsyncGenerator<Uint8Array> {
  if (requests.length > most) throw tooMany(most);
  for (const [index, entry] of requests.entries()) {
    const field = `batch.inputConfig.requests.requests[${index}]`;
    const { request, metadata } = objectOf(entry) ?? {};
    if (metadata !== undefined && metadata !== null && !isObject(metadata))
      throw invalid(`"${field}.metadata" must be an object.`, `${field}.metadata`);
    yield lineOf({ number: index + 1, mark: metadata ?? undefined, request, ...terms, field });
  }
}

/** Lines of the file that an order names. */
export async function* linesOfFile(
  body: AsyncIterable<Uint8Array>,
  terms: LineTerms,
  { lines: most, lineBytes }: InputLimits,
): AsyncGenerator<Uint8Array> {
  let number = 0;
  for await (const { bytes } of linesOf(body, lineBytes)) {
    // An empty line of a file with CRLF.
    if (bytes.length === 1 && bytes[0] === 0x0d) continue;
    number += 1;
    if (number > most) throw tooMany(most);
    const field = `line ${number} of batch.inputConfig.fileName`;
    if (bytes === 'too long') throw invalid(`The ${field} has more than ${lineBytes} bytes.`, field);
    const json = tryParse(bytes.toString('utf8'));
    if (!isObject(json)) throw invalid(`The ${field} is not a JSON object.`, field);
    const { key, request } = json;
    if (key !== undefined && typeof key !== 'string') throw invalid(`"key" in the ${field} must be a text.`, field);
    yield lineOf({ number, mark: key, request, ...terms, field });
  }
  if (number === 0) throw invalid('The file has no line.', 'batch.inputConfig.fileName');
}

interface Line extends LineTerms {
  readonly number: number;
  readonly mark: string | JsonObject | undefined;
  readonly request: unknown;
  readonly field: string;
}

function lineOf({ number, mark, request, field, ...terms }: Line): Uint8Array {
  const { model: own, ...body } = objectOf(request) ?? { model: null };
  if (own === null) throw invalid(`"request" of ${field} must be an object.`, field);
  const { model } = terms;
  if (own !== undefined && own !== model && own !== `models/${model}`)
    throw invalid(`"request.model" of ${field} must be the model of the batch, or absent.`, field);
  const { required } = terms.kind;
  if (body[required] === undefined) throw invalid(`"request.${required}" of ${field} is missing.`, field);
  const text = mark === undefined ? '' : ` ${JSON.stringify(mark)}`;
  if (text.length > longestMark || text.includes('\\u0000'))
    throw invalid(`The key or metadata of ${field} must be shorter than ${longestMark} characters.`, field);
  const line = { custom_id: `${number}${text}`, method: 'POST', url: endpointOf(terms), body };
  return Buffer.from(`${JSON.stringify(line)}\n`);
}

function tooMany(mostLines: number): GatewayError {
  return new GatewayError('too_large', `A batch has at most ${mostLines} requests.`, {
    field: 'batch.inputConfig',
    shouldRetry: false,
  });
}
