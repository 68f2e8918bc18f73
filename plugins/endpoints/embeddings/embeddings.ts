/** `POST /v1/embeddings`: relayed, or converted for upstreams of the generate-content protocol. */
import { asBuffer, isObject, type JsonObject, listOf } from '../../../core/json/json.ts';
import { invalid, type RequestBody } from '../../../core/json/request-body.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import { envelopeAnswer } from '../../common/kit/error-envelope.ts';
import {
  checkLength,
  isAbsent,
  modelOf,
  positiveOf,
  readJson,
  relayedBody,
  unsupportedByModel,
  wordOf,
} from '../checks.ts';
import type { EndpointDescription, Limits, Prepared } from '../description.ts';
import { heldTokens } from '../estimate.ts';
import { objectMember, parseAnswer } from '../whole-json.ts';
import { bearer, wire } from '../wires.ts';
import { base64Of, geminiRequest, openaiUsage, type Vectors, vectorOf } from './vectors.ts';

/** Far above what any model makes. */
export const mostDimensions = 100_000;

export const openaiEmbeddings: EndpointDescription = {
  path: '/v1/embeddings',
  operation: 'embeddings',
  kind: 'embedding',
  summary: 'Makes a vector of each input.',
  request: 'json',
  model: 'body',
  answers: ['application/json'],
  open({ request }, limits) {
    const body = readJson(request.body);
    const read = readRequest(body.json, limits);
    return {
      call: {
        protocol: wire.openaiEmbeddings,
        model: modelOf(body.json),
        stream: false,
        billable: true,
        inputTokens: read.tokens,
        maxOutputTokens: 0,
        choices: 1,
        kind: 'embedding',
        convertsTo: [wire.geminiEmbeddings],
      },
      prepare: (target) =>
        target.protocol === wire.openaiEmbeddings ? relayed(body, read, target) : converted(read, target),
    };
  },
  renderError: envelopeAnswer,
};

type Encoding = 'float' | 'base64';
const otherThan: Readonly<Record<Encoding, Encoding>> = { float: 'base64', base64: 'float' };

interface ReadRequest {
  /** undefined: tokens instead of texts. */
  readonly texts: readonly string[] | undefined;
  /** An upper estimate over all inputs. */
  readonly tokens: number;
  readonly dimensions: number | undefined;
  readonly encoding: Encoding;
  /** Members that the other protocol does not have. */
  readonly others: readonly string[];
}

const known = new Set(['model', 'input', 'dimensions', 'encoding_format']);

function readRequest(json: JsonObject, limits: Limits): ReadRequest {
  return {
    ...readInput(json['input'], limits),
    dimensions: positiveOf(json, 'dimensions', mostDimensions),
    encoding: wordOf(json, 'encoding_format', ['float', 'base64']) ?? 'float',
    others: Object.keys(json).filter((name) => !known.has(name) && !isAbsent(json[name])),
  };
}

function readInput(input: unknown, limits: Limits): Pick<ReadRequest, 'texts' | 'tokens'> {
  if (isAbsent(input)) throw invalid('The field "input" is missing.', 'input');
  if (typeof input === 'string') return { texts: [input], tokens: textTokens(input, 'input') };
  if (!Array.isArray(input)) throw badInput('input', 'a string, a list of strings, tokens, or a list of tokens');
  if (input.length > 0 && input.every(isToken)) return { texts: undefined, tokens: input.length };
  checkLength(input, 'input', limits.inputs);
  const areTexts = typeof input[0] === 'string';
  const count = areTexts ? textTokens : tokenCount;
  const tokens = input.reduce((sum: number, item, index) => sum + count(item, `input[${index}]`), 0);
  return { texts: areTexts ? (input as string[]) : undefined, tokens };
}

function textTokens(item: unknown, field: string): number {
  if (typeof item !== 'string') throw badInput(field, 'a string');
  if (item === '') throw invalid(`The field "${field}" must not be empty.`, field);
  return heldTokens(Buffer.byteLength(item));
}

function tokenCount(item: unknown, field: string): number {
  if (Array.isArray(item) && item.length > 0 && item.every(isToken)) return item.length;
  throw badInput(field, 'a string or a list of tokens, as the others are');
}

function isToken(item: unknown): boolean {
  return Number.isSafeInteger(item) && (item as number) >= 0;
}

function badInput(field: string, what: string): Error {
  return invalid(`The field "${field}" must be ${what}.`, field);
}

/** Members by which some vendors answer other numbers than floats, which only their clients can read. */
const otherNumbers = /dtype|precision|quantiz/i;

function relayed(body: RequestBody, { encoding, others }: ReadRequest, target: Target): Prepared {
  const unwanted = others.some((name) => otherNumbers.test(name)) ? 'neither' : otherThan[encoding];
  return {
    wire: bearer,
    path: '/embeddings',
    ...relayedBody(body, target),
    converted: false,
    answer: {
      form: 'whole',
      read: async (bytes) => ({
        usage: openaiUsage({ usage: objectMember(bytes, 'usage') }),
        ...(firstEncoding(bytes) === unwanted ? { body: inEncoding(await parseAnswer(bytes), encoding) } : {}),
      }),
    },
  };
}

function converted({ texts, dimensions, encoding, others: dropped }: ReadRequest, target: Target): Prepared {
  if (texts === undefined) throw unsupportedByModel('input', 'it takes texts, not tokens');
  return geminiRequest({ texts, dimensions, dropped }, target, (answer, { call }) =>
    encoded(answer, call.model, encoding),
  );
}

/** One chunk for each vector: a large answer is encoded while it is sent. */
async function* encoded(
  { vectors, tokens }: Vectors,
  model: string,
  encoding: Encoding,
): AsyncGenerator<Uint8Array, void> {
  let before = '{"object":"list","data":[';
  for (const [index, vector] of vectors.entries()) {
    const embedding = encoding === 'base64' ? `"${base64Of(vector)}"` : JSON.stringify(vector);
    yield Buffer.from(`${before}{"object":"embedding","index":${index},"embedding":${embedding}}`);
    before = ',';
  }
  const usage = { prompt_tokens: tokens, total_tokens: tokens };
  yield Buffer.from(`],"model":${JSON.stringify(model)},"usage":${JSON.stringify(usage)}}`);
}

/** How the first vector is written, by the byte behind its member's name; undefined: there is none. */
function firstEncoding(bytes: Uint8Array): Encoding | undefined {
  const text = asBuffer(bytes);
  for (let at = text.indexOf(member); at !== -1; at = text.indexOf(member, at + 1)) {
    const value = /^\s*:\s*(["[])/.exec(text.toString('latin1', at + member.length, at + member.length + 40))?.[1];
    if (value !== undefined) return value === '[' ? 'float' : 'base64';
  }
  return undefined;
}

const member = '"embedding"';

/** The vendor's answer with its vectors as the client wants them: some vendors know one form alone. One chunk for each vector. */
async function* inEncoding({ data, ...rest }: JsonObject, encoding: Encoding): AsyncGenerator<Uint8Array, void> {
  let before = '{"data":[';
  for (const entry of listOf(data)) {
    const vector = isObject(entry) ? vectorOf(entry['embedding']) : undefined;
    const embedding = vector && (encoding === 'base64' ? base64Of(vector) : vector);
    yield Buffer.from(before + JSON.stringify(embedding === undefined ? entry : { ...(entry as object), embedding }));
    before = ',';
  }
  const others = JSON.stringify(rest).slice(1);
  yield Buffer.from(`${before === ',' ? '' : before}]${others === '}' ? '' : ','}${others}`);
}
