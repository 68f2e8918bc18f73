/** Reads a vendor's list of models: the forms in which vendors answer, page by page, within bounds. */
import { GatewayError } from '../../core/contract/errors.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf, tryParse } from '../../core/json/json.ts';
import { Unfetchable } from '../../core/tools/guarded-fetch.ts';
import type { VendorAccess } from '../common/domain/admin/vendor-setup.ts';
import type { FinalRequest, Provider, Target } from '../common/domain/upstreams.ts';
import { boundedText } from '../common/kit/fetch/bounded-text.ts';
import { scrubText } from '../common/kit/scrub.ts';
import { modelMark } from '../common/kit/upstream-request.ts';
import { authorized } from '../common/wire/credentials.ts';

/** A model as its vendor lists it. */
export interface VendorModel {
  readonly id: string;
  readonly ownedBy: string | undefined;
  readonly displayName: string | undefined;
  readonly contextTokens: number | undefined;
  readonly maxOutputTokens: number | undefined;
  /** `2026-04-23`. */
  readonly created: string | undefined;
}

/** Sorted by id. */
export interface VendorList {
  readonly models: readonly VendorModel[];
  /** Ids that name another kind of model than chat. */
  readonly others: readonly string[];
}

/** Sends a GET request. */
export type Fetch = VendorAccess['fetch'];

/** A list that was not read: the vendor's status, or that its address may not be asked. */
export class ListFailure extends GatewayError {
  readonly vendorStatus: number | undefined;
  readonly isPrivate: boolean;

  constructor(message: string, options: { vendorStatus?: number; isPrivate?: boolean; cause?: unknown } = {}) {
    super('upstream_failed', message, { cause: options.cause });
    this.vendorStatus = options.vendorStatus;
    this.isPrivate = options.isPrivate ?? false;
  }
}

const longestMs = 30_000;
/** Bounds of what is read and shown of a vendor's refusal. */
const mostRefusalBytes = 16 * 2 ** 10;
const longestWords = 300;
const mostBytes = 32 * 2 ** 20;
const mostPages = 50;
const mostModels = 5_000;

/** How lists are asked for where the provider does not say how its key travels, and the path below the base URL. */
const ways: Readonly<
  Record<string, { path: string; header: string; value: string; headers?: Record<string, string> }>
> = {
  messages: {
    path: '/v1/models',
    header: 'x-api-key',
    value: '{key}',
    headers: { 'anthropic-version': '2023-06-01' },
  },
  gemini: { path: '/models', header: 'x-goog-api-key', value: '{key}' },
};
const usualWay = { path: '/models', header: 'authorization', value: 'Bearer {key}', headers: {} };

/** A vendor's model list is read in the first of these protocols that it speaks: those with the simplest lists come first. */
const order = ['chat', 'responses', 'messages', 'gemini'];

/** Rejects with a GatewayError that names neither key nor body. */
export async function readVendorModels(
  provider: Provider,
  target: Pick<Target, 'key' | 'credential'>,
  fetch: Fetch,
): Promise<VendorList> {
  const protocol = order.find((name) => Object.hasOwn(provider.speaks, name)) ?? Object.keys(provider.speaks)[0]!;
  const way = ways[protocol] ?? usualWay;
  const traits = provider.protocolTraits?.[protocol] ?? provider.traits;
  const sent = { method: 'GET', headers: { ...way.headers, ...traits.headers }, body: undefined };
  if (provider.modelsUrl === 'none') throw failed(`${provider.name} has no list of models: write them by hand.`);
  if (provider.modelsUrl === undefined && provider.speaks[protocol]!.includes(modelMark))
    throw failed(
      `${provider.name} gives each model an address of its own: set models_url, or write its models by hand.`,
    );
  const address = provider.modelsUrl ?? below(provider.speaks[protocol]!, way.path);
  const models = new Map<string, VendorModel>();
  let next: string | undefined = address;
  for (let page = 0; next !== undefined && page < mostPages && models.size < mostModels; page++) {
    const request: FinalRequest = await authorized({ ...sent, url: next }, traits.auth ?? way, target);
    const body = await readPage(request, fetch, target.key.reveal());
    for (const model of entriesOf(body).flatMap(modelOf)) models.set(model.id, model);
    next = nextPage(address, body);
  }
  const sorted = [...models.values()].toSorted((left, right) => (left.id < right.id ? -1 : 1));
  const isOther = ({ id }: VendorModel) => otherNames.test(id);
  return { models: sorted.filter((one) => !isOther(one)), others: sorted.filter(isOther).map(({ id }) => id) };
}

function below(baseUrl: string, path: string): string {
  const url = new URL(baseUrl);
  url.pathname = url.pathname.replace(/\/+$/, '') + path;
  return url.href;
}

async function readPage({ url, headers }: FinalRequest, fetch: Fetch, key: string): Promise<unknown> {
  const where = new URL(url);
  const address = where.origin + where.pathname;
  let text: string;
  try {
    const answer = await fetch(url, { headers, signal: AbortSignal.timeout(longestMs) });
    if (!answer.ok) throw await refusalOf(address, answer, key);
    text = await boundedText(answer, mostBytes, () => failed('The list of models is too large.'));
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    if (error instanceof Unfetchable)
      throw new ListFailure(`${address} is not asked: ${error.message}.`, { isPrivate: true, cause: error });
    throw failed(`${address} cannot be read: ${reasonOf(error)}.`, error);
  }
  const body = tryParse(text);
  if (body === undefined) throw failed(`${address} answered with something other than JSON.`);
  return body;
}

/** The status with the vendor's own words, bounded and without its key. */
async function refusalOf(address: string, answer: Awaited<ReturnType<Fetch>>, key: string): Promise<ListFailure> {
  const { status } = answer;
  const text = await boundedText(answer, mostRefusalBytes, () => new Error('long')).catch(() => '');
  const body = tryParse(text);
  const inner = isObject(body) ? (objectOf(body['error']) ?? body) : {};
  const written = textOf(inner['message']) ?? textOf(inner['error']) ?? (isObject(body) ? '' : text);
  const words = scrubText(written, key)
    .replaceAll(/[\p{C}\s]+/gu, ' ')
    .trim()
    .slice(0, longestWords);
  return new ListFailure(`${address} answered with the status ${status}${words === '' ? '' : `: ${words}`}.`, {
    vendorStatus: status,
  });
}

/** A code alone: messages may quote addresses with credentials. */
function reasonOf(error: unknown): string {
  const { name, code, cause } = error as { name?: string; code?: string; cause?: { code?: string } };
  return name === 'TimeoutError' ? 'it does not answer' : (cause?.code ?? code ?? 'the connection failed');
}

function failed(message: string, cause?: unknown): ListFailure {
  return new ListFailure(message, { cause });
}

/** `{data: […]}`, `{models: […]}` or a bare list. */
function entriesOf(body: unknown): JsonObject[] {
  const list = Array.isArray(body) ? body : isObject(body) ? (body['data'] ?? body['models']) : [];
  return listOf(list).filter(isObject);
}

/** Ids that fit a path and that YAML does not read as a variable. */
const idPattern = /^[^\s?#$\p{C}][^\s?#$\p{C}]{0,199}$/u;
/** Kinds that vendors name and that are no chat models. */
const otherKinds = /embed|rerank|decision|moderation|image|audio|speech|transcri|video|ocr|tts/i;
/** Names of models that are no chat models, in lists that name no kinds. */
export const otherNames =
  /embed|rerank|\bdecisions?\b|moderation|transcri|whisper|realtime|dall-e|imagen|stable-diffusion|-image\b|\b(?:bge|e5|gte|tts|flux|sora|veo|lyria)(?:-|$)/i;

function modelOf(entry: JsonObject): VendorModel[] {
  const id = (textOf(entry['id']) ?? textOf(entry['name']) ?? '').replace(/^models\//, '');
  const methods = entry['supportedGenerationMethods'];
  const generates = methods === undefined || listOf(methods).includes('generateContent');
  const kind = textOf(entry['type']) ?? '';
  if (!idPattern.test(id) || !generates || otherKinds.test(kind)) return [];
  const provider = objectOf(entry['top_provider']) ?? {};
  const metadata = objectOf(entry['metadata']) ?? {};
  return [
    {
      id,
      ownedBy: shortText(entry['owned_by'] ?? entry['publisher'] ?? entry['organization']),
      displayName: shortText(entry['display_name'] ?? entry['displayName']),
      contextTokens: count(
        entry['context_length'] ??
          entry['context_window'] ??
          entry['max_model_len'] ??
          entry['max_context_length'] ??
          entry['max_input_tokens'] ??
          entry['inputTokenLimit'] ??
          metadata['context_length'],
      ),
      maxOutputTokens: count(
        entry['max_completion_tokens'] ??
          entry['max_output_tokens'] ??
          entry['outputTokenLimit'] ??
          provider['max_completion_tokens'] ??
          metadata['max_tokens'],
      ),
      created: dateOf(entry['created'] ?? entry['created_at']),
    },
  ];
}

function shortText(value: unknown): string | undefined {
  const text = textOf(value)
    ?.replaceAll(/[\p{C}$]+/gu, ' ')
    .trim();
  return text === undefined || text === '' || text.length > 100 ? undefined : text;
}

function count(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : undefined;
}

function dateOf(value: unknown): string | undefined {
  const at = typeof value === 'number' ? value * 1000 : typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return at > 0 && at < Date.UTC(2100, 0) ? new Date(at).toISOString().slice(0, 10) : undefined;
}

/** Pages are asked for by the last id, or by a token. */
function nextPage(address: string, body: unknown): string | undefined {
  if (!isObject(body)) return undefined;
  const url = new URL(address);
  const [token, last] = [textOf(body['nextPageToken']), textOf(body['last_id'])];
  if (token !== undefined && token !== '') url.searchParams.set('pageToken', token);
  else if (body['has_more'] === true && last !== undefined) url.searchParams.set('after_id', last);
  else return undefined;
  return url.href;
}
