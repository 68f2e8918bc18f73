/** Texts to embed and the vectors that come back, between the two protocols: requests encoded, answers decoded. */

import type { AnswerBody } from '../../../core/contract/message.ts';
import { isObject, type JsonObject, listOf } from '../../../core/json/json.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import { readCount, type Usage } from '../../common/domain/usage.ts';
import { firstNumber } from '../checks.ts';
import type { AnswerContext, Prepared } from '../description.ts';
import { unreadable } from '../errors.ts';
import { chargedTokens } from '../estimate.ts';
import { parseAnswer } from '../whole-json.ts';
import { bearer, googleKey } from '../wires.ts';

export interface EmbeddingInputs {
  readonly texts: readonly string[];
  readonly dimensions: number | undefined;
  /** Members of the client's request that the other protocol does not have. */
  readonly dropped: readonly string[];
}

/** A decoded answer. */
export interface Vectors {
  readonly vectors: readonly (readonly number[])[];
  /** Reported, or estimated from the texts. */
  readonly tokens: number;
}

type Encode = (answer: Vectors, context: AnswerContext) => AnswerBody;

/** A request to an upstream of OpenAI's protocol. */
export function openaiRequest(inputs: EmbeddingInputs, target: Target, encode: Encode): Prepared {
  const { texts, dimensions } = inputs;
  const body = {
    model: target.model,
    input: texts,
    ...(dimensions === undefined ? {} : { dimensions }),
    encoding_format: 'float',
  };
  return converted(
    inputs,
    { wire: bearer, path: '/embeddings', body },
    (json) => openaiVectors(json),
    openaiUsage,
    encode,
  );
}

/** A request to an upstream of the generate-content protocol. */
export function geminiRequest(inputs: EmbeddingInputs, target: Target, encode: Encode): Prepared {
  const model = `models/${target.model}`;
  const more = inputs.dimensions === undefined ? {} : { outputDimensionality: inputs.dimensions };
  const requests = inputs.texts.map((text) => ({ model, content: { parts: [{ text }] }, ...more }));
  const path = `/${model}:batchEmbedContents`;
  return converted(inputs, { wire: googleKey, path, body: { requests } }, geminiVectors, geminiUsage, encode);
}

function converted(
  { texts, dropped }: EmbeddingInputs,
  { body, ...sent }: Pick<Prepared, 'wire' | 'path'> & { readonly body: object },
  decode: (json: JsonObject) => readonly unknown[],
  usageIn: (json: JsonObject) => Usage | undefined,
  encode: Encode,
): Prepared {
  return {
    ...sent,
    body: Buffer.from(JSON.stringify(body)),
    contentType: 'application/json',
    dropped,
    converted: true,
    answer: {
      form: 'whole',
      async read(bytes, context) {
        const json = await parseAnswer(bytes);
        const vectors = decode(json);
        if (vectors.length !== texts.length || !vectors.every(isVector))
          throw unreadable('not one vector for each input');
        const usage = usageIn(json);
        const tokens = usage?.input ?? estimated(texts);
        return {
          usage,
          seen: { input: tokens },
          body: encode({ vectors, tokens }, context),
          contentType: 'application/json',
        };
      },
    },
  };
}

/** Little-endian 32-bit floats, as OpenAI sends them. */
export function base64Of(vector: readonly number[]): string {
  const bytes = Buffer.allocUnsafe(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString('base64');
}

/** A list of numbers, or those that base64 stands for; undefined: neither. */
export function vectorOf(value: unknown): readonly number[] | undefined {
  if (isVector(value)) return value;
  if (typeof value !== 'string') return undefined;
  const bytes = Buffer.from(value, 'base64');
  if (bytes.length === 0 || bytes.length % 4 !== 0) return undefined;
  return Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4));
}

function isVector(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'number');
}

function openaiVectors(json: JsonObject): readonly unknown[] {
  const vectors: unknown[] = [];
  for (const entry of listOf(json['data'])) {
    if (isObject(entry) && Number.isSafeInteger(entry['index']))
      vectors[entry['index'] as number] = vectorOf(entry['embedding']);
  }
  return vectors;
}

function geminiVectors(json: JsonObject): readonly unknown[] {
  return listOf(json['embeddings']).map((entry) => (isObject(entry) ? entry['values'] : undefined));
}

/** `prompt_tokens` as OpenAI counts; others report `total_tokens` alone. */
export function openaiUsage(json: JsonObject): Usage | undefined {
  return countOf(firstNumber(json['usage'], 'prompt_tokens', 'input_tokens', 'total_tokens'));
}

export function geminiUsage(json: JsonObject): Usage | undefined {
  return countOf(firstNumber(json['usageMetadata'], 'promptTokenCount', 'totalTokenCount'));
}

function countOf(value: unknown): Usage | undefined {
  const input = readCount(value);
  return input === undefined ? undefined : { input };
}

function estimated(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + chargedTokens(Buffer.byteLength(text)), 0);
}
