/** Answers of rerankers: usage and order of any shape, encoded for the client's. Pure. */
import { isObject, type JsonObject, listOf, objectOf } from '../../../core/json/json.ts';
import { readCount, type Usage } from '../../common/domain/usage.ts';
import { firstNumber } from '../checks.ts';
import { unreadable } from '../errors.ts';
import type { RerankRequest } from './request.ts';

export interface Ranked {
  readonly index: number;
  readonly score: number;
}

/** Search units (Cohere), tokens (Jina, Voyage), or both; undefined: neither is reported. */
export function rerankUsage(json: JsonObject): Usage | undefined {
  const units = objectOf(objectOf(json['meta'])?.['billed_units']);
  const search = readCount(units?.['search_units']);
  const input = readCount(firstNumber(json['usage'], 'total_tokens', 'prompt_tokens') ?? units?.['input_tokens']);
  if (search === undefined && input === undefined) return undefined;
  return { ...(search === undefined ? {} : { search }), ...(input === undefined ? {} : { input }) };
}

/** The vendor's order. Throws an UpstreamRefusal for an answer that is none of these documents. */
export function rankedOf(json: JsonObject, documents: number): readonly Ranked[] {
  const seen = new Set<number>();
  return listOf(json['results'] ?? json['data']).map((entry) => {
    const { index, relevance_score: score } = isObject(entry) ? entry : ({} as JsonObject);
    if (!Number.isSafeInteger(index) || typeof score !== 'number') throw unreadable('a result has no index or score');
    const at = index as number;
    if (at < 0 || at >= documents || seen.has(at)) throw unreadable('a result names no document, or one twice');
    seen.add(at);
    return { index: at, score };
  });
}

/** The answer for clients of Cohere's second version. */
export function cohereAnswer(ranked: readonly Ranked[], id: string, { search, input }: Usage): object {
  const units = search === undefined ? { input_tokens: input } : { search_units: search };
  return {
    id,
    results: ranked.map(({ index, score }) => ({ index, relevance_score: score })),
    meta: { api_version: { version: '2' }, billed_units: units },
  };
}

/** Clients at /v1/rerank are of three vendors and do not say which: each finds the members that it reads. */
export function commonAnswer(
  ranked: readonly Ranked[],
  { model, documents, returnsDocuments }: RerankRequest,
  id: string,
  usage: Usage,
): object {
  const entry = ({ index, score }: Ranked, document: unknown) =>
    returnsDocuments ? { index, relevance_score: score, document } : { index, relevance_score: score };
  const { meta } = cohereAnswer(ranked, id, usage) as { meta: object };
  return {
    id,
    object: 'list',
    model,
    results: ranked.map((one) => entry(one, { text: documents[one.index] })),
    data: ranked.map((one) => entry(one, documents[one.index])),
    usage: { total_tokens: usage.input ?? 0 },
    meta,
  };
}
