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

/** What becomes of a file that cannot get its vectors. `again`: the call ran in vain, and is made once more by another key. */
export type Verdict = { readonly laterMs: number; readonly again: boolean } | { readonly message: string };

export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly message: string;
  readonly code: unknown;
}

const usualPauseMs = 5_000;
const longestPauseMs = 60_000;
/** Statuses of a model that is ill for a while. */
const ill = new Set([500, 502, 504]);
const mostTries = 3;
/** A process was killed between the call and its answer. */
const lostAnswer = 'idempotency_answer_lost';
const mostLost = 10;

/** `tries`: how often a call for these pieces ran in vain. */
export function verdictOf({ status, headers, message, code }: Refusal, tries: number): Verdict {
  if (code === lostAnswer) return tries < mostLost ? { laterMs: 0, again: true } : { message };
  if (ill.has(status)) return tries < mostTries ? { laterMs: usualPauseMs, again: true } : { message };
  const isLater = status === 409 || status === 429 || status === 503;
  if (!isLater || headers['x-should-retry'] === 'false') return { message };
  const seconds = Number(headers['retry-after'] ?? Number.NaN);
  const ms = Number.isFinite(seconds) ? Math.min(Math.max(seconds * 1_000, 1_000), longestPauseMs) : usualPauseMs;
  return { laterMs: ms, again: false };
}

/** Why the model's call was refused, as its client may read it. */
export function refusalOf({ answer, body }: Exclude<Embedded, { vectors: unknown }>): Refusal {
  const { message, code } = objectOf(objectOf(tryParse(body))?.['error']) ?? {};
  const { status, headers } = answer;
  const isUnread = status === 200 || typeof message !== 'string';
  // An answer without vectors was paid: it is not asked for without end.
  return {
    status: status === 200 ? 502 : status,
    headers,
    code,
    message: isUnread ? 'The model gave no vectors.' : message,
  };
}
