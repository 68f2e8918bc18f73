/** Embeddings in the protocols of OpenAI and of generate-content: unit vectors, the nearer the more words two texts share. Pure. */
import { badRequest } from '../fault.ts';
import { isObject, type JsonObject, listOf, textOf, wholeOf } from '../json.ts';
import { parse } from '../request-body.ts';
import { type Directives, parseDirectives } from '../script/directives.ts';
import { tokensOf } from '../script/tokens.ts';
import type { Job, Service, ServiceRequest } from './service.ts';

const openaiDimensions = 1_536;
const googleDimensions = 3_072;
const mostDimensions = 4_096;
const mostInputs = 2_048;
const mostWords = 256;

export const openaiEmbeddings: Service = { errors: 'envelope', decode: ({ body }) => openaiJob(parse(body)) };
export const googleEmbeddings: Service = { errors: 'status', decode: googleJob };

function openaiJob(json: JsonObject): Job {
  const model = textOf(json['model']);
  if (model === undefined) throw badRequest('you must provide a model parameter', 'model');
  const inputs = openaiInputs(json['input']);
  const dimensions =
    json['dimensions'] === undefined ? openaiDimensions : dimensionsIn(json['dimensions'], 'dimensions');
  const format = json['encoding_format'] ?? 'float';
  if (format !== 'float' && format !== 'base64')
    throw badRequest("Invalid 'encoding_format': must be float or base64.", 'encoding_format');
  const texts = inputs.map((input) => (typeof input === 'string' ? parseDirectives(input).text : input.join(' ')));
  const directives = directivesOf(inputs);
  const tokens = inputs.reduce(
    (sum, input) => sum + (typeof input === 'string' ? tokensOf(input.length) : input.length),
    0,
  );
  const data = texts.map((text, index) => {
    const vector = vectorOf(text, dimensions);
    return { object: 'embedding', index, embedding: format === 'float' ? [...vector] : base64Of(vector) };
  });
  const usage = directives.no_usage ? {} : { usage: { prompt_tokens: tokens, total_tokens: tokens } };
  const body = `${JSON.stringify({ object: 'list', data, model, ...usage }, null, 2)}\n`;
  return { model, directives, usage: { input: tokens }, type: 'application/json', body };
}

function openaiInputs(input: unknown): readonly (string | readonly number[])[] {
  if (typeof input === 'string' && input !== '') return [input];
  const list = listOf(input);
  if (list.length === 0 || list.length > mostInputs) throw badRequest("'$.input' is invalid.", 'input');
  if (list.every((item) => wholeOf(item) !== undefined)) return [list as number[]];
  if (list.every((item) => typeof item === 'string' && item !== '')) return list as string[];
  const areTokens = list.every(
    (item) => listOf(item).length > 0 && listOf(item).every((one) => wholeOf(one) !== undefined),
  );
  if (areTokens) return list as number[][];
  throw badRequest("'$.input' is invalid.", 'input');
}

function dimensionsIn(value: unknown, field: string): number {
  const dimensions = wholeOf(value, 1);
  if (dimensions !== undefined && dimensions <= mostDimensions) return dimensions;
  throw badRequest(`Invalid '${field}': from 1 to ${mostDimensions}.`, field);
}

function directivesOf(inputs: readonly unknown[]): Directives {
  return Object.assign(
    {},
    ...inputs.map((input) => (typeof input === 'string' ? parseDirectives(input).directives : {})),
  );
}

function googleJob({ body, pathModel, method }: ServiceRequest): Job {
  const json = parse(body);
  const isBatch = method === 'batchEmbedContents';
  const requests = isBatch ? listOf(json['requests']) : [json];
  if (requests.length === 0) throw badRequest('* BatchEmbedContentsRequest.requests: unspecified');
  const texts = requests.map((request) => {
    if (!isObject(request)) throw badRequest('Invalid value at requests');
    const named = request['model'];
    if ((isBatch || named !== undefined) && named !== `models/${pathModel}`)
      throw badRequest(`* EmbedContentRequest.model: must be models/${pathModel}`);
    const parts = listOf(isObject(request['content']) ? request['content']['parts'] : undefined);
    const found = parts.map((part) => (isObject(part) ? textOf(part['text']) : undefined));
    if (found.length === 0 || found.includes(undefined))
      throw badRequest('* EmbedContentRequest.content: contains no text');
    return found.join('\n');
  });
  const directives = directivesOf(texts);
  const embeddings = texts.map((text, index) => {
    const requested = (requests[index] as JsonObject)['outputDimensionality'];
    const dimensions = requested === undefined ? googleDimensions : dimensionsIn(requested, 'output_dimensionality');
    return { values: [...vectorOf(parseDirectives(text).text, dimensions)] };
  });
  const tokens = texts.reduce((sum, text) => sum + tokensOf(text.length), 0);
  const usage = directives.no_usage ? {} : { usageMetadata: { promptTokenCount: tokens } };
  const reply = isBatch ? { embeddings, ...usage } : { embedding: embeddings[0], ...usage };
  const text = `${JSON.stringify(reply, null, 2)}\n`;
  return {
    model: pathModel ?? '',
    directives,
    usage: { input: tokens },
    type: 'application/json; charset=UTF-8',
    body: text,
  };
}

/** The sum of a direction for each word, of length 1. */
function vectorOf(text: string, dimensions: number): Float32Array {
  const sum = new Float64Array(dimensions);
  const words = [...new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [text])].slice(0, mostWords);
  for (const word of words) {
    let state = seedOf(word);
    for (let index = 0; index < dimensions; index++) {
      state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9;
      state ^= state >>> 12;
      sum[index]! += (state >>> 0) / 2 ** 31 - 1;
    }
  }
  const length = Math.hypot(...sum) || 1;
  return Float32Array.from(sum, (value) => value / length);
}

/** FNV-1a. */
function seedOf(word: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(word)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash | 1;
}

function base64Of(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64');
}
