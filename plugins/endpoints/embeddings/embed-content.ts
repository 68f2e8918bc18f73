/** `…/models/{model}:embedContent` and `:batchEmbedContents`: relayed, or converted for upstreams of OpenAI's protocol. */
import type { ClientRequest } from '../../../core/contract/message.ts';
import { isObject, type JsonObject, listOf, oneOrMany } from '../../../core/json/json.ts';
import { invalid, type RequestBody } from '../../../core/json/request-body.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import { googleErrorAnswer } from '../../common/kit/error-envelope.ts';
import { checkLength, isAbsent, positiveOf, readJson, unsupportedByModel } from '../checks.ts';
import type { EndpointDescription, Limits, Prepared } from '../description.ts';
import { heldTokens } from '../estimate.ts';
import { objectMember } from '../whole-json.ts';
import { googleKey, wire } from '../wires.ts';
import { mostDimensions } from './embeddings.ts';
import { geminiUsage, openaiRequest, type Vectors } from './vectors.ts';

type Method = 'embedContent' | 'batchEmbedContents';

/** A model's name and a method stand in one segment of the path; the methods of chat have endpoints of their own. */
const segment = ':method(^.+(?:embedContent|batchEmbedContents)$)';

function endpoint(prefix: string): EndpointDescription {
  return {
    path: `${prefix}/models/${segment}`,
    paths: ['embedContent', 'batchEmbedContents'].map((method) => `${prefix}/models/{model}:${method}`),
    operation: 'embeddings',
    kind: 'embedding',
    summary: 'Makes a vector of one content, or of each content of a list.',
    request: 'json',
    model: 'path',
    answers: ['application/json'],
    open({ request }, limits) {
      const { model, method } = methodOf(request);
      const body = readJson(request.body);
      const items = itemsOf(body.json, method, limits);
      return {
        call: {
          protocol: wire.geminiEmbeddings,
          model,
          stream: false,
          billable: true,
          inputTokens: heldTokens(body.bytes.length),
          maxOutputTokens: 0,
          choices: 1,
          kind: 'embedding',
          convertsTo: [wire.openaiEmbeddings],
        },
        prepare: (target) =>
          target.protocol === wire.geminiEmbeddings
            ? relayed(body, model, method, target)
            : converted(items, method, target),
      };
    },
    renderError: googleErrorAnswer,
  };
}

export const geminiEmbeddings: readonly EndpointDescription[] = ['/v1beta', '/v1', '/v1alpha'].map(endpoint);

function methodOf({ params }: Pick<ClientRequest, 'params'>): { model: string; method: Method } {
  const text = params['method'] ?? '';
  const colon = text.lastIndexOf(':');
  const method = text.slice(colon + 1);
  if (colon > 0 && (method === 'embedContent' || method === 'batchEmbedContents'))
    return { model: text.slice(0, colon), method };
  throw invalid('The path must end in a model and a method, such as text-embedding:embedContent.', 'model');
}

/** One content to embed, and the field that holds it. */
interface Item {
  readonly field: string;
  readonly json: JsonObject;
}

function itemsOf(json: JsonObject, method: Method, limits: Limits): readonly Item[] {
  if (method === 'embedContent') return [checked({ field: '', json })];
  const { requests } = json;
  if (!Array.isArray(requests)) throw invalid('The field "requests" must be a list.', 'requests');
  checkLength(requests, 'requests', limits.inputs);
  return requests.map((item, index) => {
    const field = `requests[${index}]`;
    if (!isObject(item)) throw invalid(`The field "${field}" must be an object.`, field);
    return checked({ field, json: item });
  });
}

function checked(item: Item): Item {
  const { content } = item.json;
  const field = within(item, 'content');
  if (isAbsent(content)) throw invalid(`The field "${field}" is missing.`, field);
  if (typeof content !== 'string' && !isObject(content) && !Array.isArray(content))
    throw invalid(`The field "${field}" must be an object.`, field);
  return item;
}

function within({ field }: Item, member: string): string {
  return field === '' ? member : `${field}.${member}`;
}

function relayed(body: RequestBody, requested: string, method: Method, target: Target): Prepared {
  const { bytes, dropped } = withModel(body, requested, target);
  return {
    wire: googleKey,
    path: `/models/${target.model}:${method}`,
    body: bytes,
    dropped,
    converted: false,
    answer: {
      form: 'whole',
      read: (answer) => ({ usage: geminiUsage({ usageMetadata: objectMember(answer, 'usageMetadata') }) }),
    },
  };
}

/** Each request of a batch names the model of the path again. The same bytes where nothing changes. */
function withModel({ bytes, json }: RequestBody, requested: string, target: Target) {
  const unwanted = target.upstream.dropFields[target.protocol] ?? [];
  const dropped = unwanted.filter((name) => Object.hasOwn(json, name));
  const names = [json, ...listOf(json['requests'])].map((one) => (isObject(one) ? one['model'] : undefined));
  const isOther = names.some((name) => name !== undefined && name !== `models/${target.model}`);
  if (dropped.length === 0 && (requested === target.model || !isOther)) return { bytes, dropped };
  const model = `models/${target.model}`;
  const named = (one: unknown) => (isObject(one) && 'model' in one ? { ...one, model } : one);
  const { requests, ...rest } = named(json) as JsonObject;
  const kept = Object.fromEntries(Object.entries(rest).filter(([name]) => !dropped.includes(name)));
  const edited = requests === undefined ? kept : { ...kept, requests: listOf(requests).map(named) };
  return { bytes: Buffer.from(JSON.stringify(edited)), dropped };
}

function converted(items: readonly Item[], method: Method, target: Target): Prepared {
  const sizes = new Set(items.map((item) => dimensionsOf(item)));
  if (sizes.size > 1) throw unsupportedByModel('requests', 'all must ask for the same outputDimensionality');
  const dropped = ['taskType', 'title', 'task_type'].filter((name) => items.some(({ json }) => !isAbsent(json[name])));
  const inputs = { texts: items.map(textOf), dimensions: [...sizes][0], dropped };
  return openaiRequest(inputs, target, (answer) => encoded(answer, method));
}

function dimensionsOf({ json }: Item): number | undefined {
  const name = isAbsent(json['outputDimensionality']) ? 'output_dimensionality' : 'outputDimensionality';
  return positiveOf(json, name, mostDimensions);
}

/** Only texts count for this protocol too. */
function textOf(item: Item): string {
  const { content } = item.json;
  if (typeof content === 'string') return content;
  const parts = oneOrMany(content).flatMap((one) => (isObject(one) ? oneOrMany(one['parts'] ?? one) : []));
  const texts = parts.map((part) => (isObject(part) ? part['text'] : undefined));
  if (texts.every((text) => typeof text === 'string') && texts.length > 0) return texts.join('\n');
  throw unsupportedByModel(within(item, 'content'), 'it takes texts alone');
}

async function* encoded({ vectors, tokens }: Vectors, method: Method): AsyncGenerator<Uint8Array, void> {
  const usage = `"usageMetadata":${JSON.stringify({ promptTokenCount: tokens, totalTokenCount: tokens })}}`;
  if (method === 'embedContent') {
    yield Buffer.from(`{"embedding":{"values":${JSON.stringify(vectors[0])}},${usage}`);
    return;
  }
  let before = '{"embeddings":[';
  for (const vector of vectors) {
    yield Buffer.from(`${before}{"values":${JSON.stringify(vector)}}`);
    before = ',';
  }
  yield Buffer.from(`],${usage}`);
}
