/** Vectors of texts, from an embedding model of the gateway: each request is one of the account through the whole chain. */
import type { DirectAnswer, Host } from '../../core/contract/contract.ts';
import { isObject, type JsonObject, listOf, objectOf, tryParse } from '../../core/json/json.ts';
import { type Caller, caller } from '../common/domain/accounts.ts';
import { boundedText } from '../common/kit/fetch/bounded-text.ts';
import type { Store } from './shapes.ts';
import { unitOf } from './vectors.ts';

export interface EmbedRequest {
  readonly store: Pick<Store, 'model' | 'dimensions'>;
  readonly texts: readonly string[];
  readonly by: Caller;
  readonly remoteAddress: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** The vectors, or the gateway's own refusal. */
export type Embedded =
  | { readonly vectors: readonly Float32Array[] }
  | { readonly answer: Pick<DirectAnswer, 'status' | 'headers'>; readonly body: string };

export const embeddingPath = '/v1/embeddings';
const answerBytes = 64 * 2 ** 20;

export const embeddingBody = ({ model, dimensions }: EmbedRequest['store'], texts: readonly string[]): string =>
  JSON.stringify({
    ...{ model, input: texts, encoding_format: 'base64' },
    ...(dimensions === undefined ? {} : { dimensions }),
  });

export async function embed(host: Host, request: EmbedRequest): Promise<Embedded> {
  const { store, texts, by, remoteAddress, headers, signal } = request;
  const answer = await host.perform({
    ...{ method: 'POST', path: embeddingPath, body: Buffer.from(embeddingBody(store, texts)), remoteAddress },
    headers: { ...headers, 'content-type': 'application/json' },
    ...(signal === undefined ? {} : { signal }),
    prepare: (exchange) => exchange.set(caller, by),
  });
  const text = await boundedText(answer, answerBytes, () => new Error('the answer of an embedding model is too long'));
  await answer.ended;
  const vectors = answer.status === 200 ? vectorsIn(objectOf(tryParse(text)) ?? {}, texts.length) : undefined;
  return vectors === undefined ? { answer, body: text } : { vectors };
}

/** undefined: not one vector for each text. */
export function vectorsIn(json: JsonObject, count: number): Float32Array[] | undefined {
  const vectors: Float32Array[] = [];
  for (const one of listOf(json['data'])) {
    const vector = isObject(one) ? unitOf(one['embedding']) : undefined;
    if (isObject(one) && vector !== undefined && Number.isSafeInteger(one['index']))
      vectors[Number(one['index'])] = vector;
  }
  const isWhole = vectors.length === count && Object.keys(vectors).length === count;
  return isWhole ? vectors : undefined;
}

/** What becomes of a file that cannot get its vectors. */
export type Verdict = { readonly laterMs: number } | { readonly message: string };

const mostTries = 20;
const usualPauseMs = 5_000;
const longestPauseMs = 60_000;
/** Statuses of an upstream that is ill for a while, which a few tries survive. */
const tried = new Set([500, 502, 504]);

/** `tries`: how often it was so without a chunk between. */
export function verdictOf(
  refusal: { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly message: string },
  tries: number,
): Verdict {
  const { status, headers, message } = refusal;
  const isLater = status === 409 || status === 429 || status === 503;
  const isTried = tried.has(status) && tries < 3;
  if (tries >= mostTries || !(isTried || (isLater && headers['x-should-retry'] !== 'false'))) return { message };
  const seconds = Number(headers['retry-after'] ?? Number.NaN);
  return {
    laterMs: Number.isFinite(seconds) ? Math.min(Math.max(seconds * 1_000, 1_000), longestPauseMs) : usualPauseMs,
  };
}

/** The sentence of a refusal that its client may read. */
export function messageIn(body: string): string {
  const error = objectOf(objectOf(tryParse(body))?.['error']);
  return typeof error?.['message'] === 'string' ? error['message'] : 'The model gave no vectors.';
}
