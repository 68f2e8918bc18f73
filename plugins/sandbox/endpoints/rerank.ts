/** Rerankers in the shapes of Cohere, Jina and Voyage: a document scores by the share of the query's words that it has. Pure. */
import { badRequest } from '../fault.ts';
import { isObject, type JsonObject, listOf, textOf, wholeOf } from '../json.ts';
import { parse } from '../request-body.ts';
import { parseDirectives } from '../script/directives.ts';
import { tokensOf } from '../script/tokens.ts';
import type { Job, Service } from './service.ts';

type Shape = 'cohere' | 'jina' | 'voyage';
const mostDocuments = 1_000;
const documentsPerSearch = 100;

/** Members of each shape; others are refused, as the vendors do. */
const members: Record<Shape, readonly string[]> = {
  cohere: ['model', 'query', 'documents', 'top_n', 'max_tokens_per_doc', 'priority'],
  jina: ['model', 'query', 'documents', 'top_n', 'return_documents', 'max_chunk_per_doc'],
  voyage: ['model', 'query', 'documents', 'top_k', 'return_documents', 'truncation'],
};

export const rerankOf = (shape: Shape): Service => ({
  errors: 'rerank',
  decode: ({ body }, id) => jobOf(shape, parse(body), id),
});

function jobOf(shape: Shape, json: JsonObject, id: string): Job {
  const unknown = Object.keys(json).find((name) => !members[shape].includes(name));
  if (unknown !== undefined) throw badRequest(`unknown field: parameter '${unknown}' is not a valid field`);
  const model = textOf(json['model']);
  const requested = textOf(json['query']);
  if (model === undefined || requested === undefined) throw badRequest('model and query are required strings');
  const { text: query, directives } = parseDirectives(requested);
  const documents = documentsIn(shape, json['documents']);
  const most = json[shape === 'voyage' ? 'top_k' : 'top_n'];
  const top = most === undefined ? documents.length : wholeOf(most, 1);
  if (top === undefined) throw badRequest('the number of results must be a whole number of at least 1');
  const ranked = documents
    .map((document, index) => ({ index, score: scoreOf(query, document) }))
    .sort((left, right) => right.score - left.score || left.index - right.index)
    .slice(0, top);
  const search = Math.ceil(documents.length / documentsPerSearch);
  const tokens = documents.reduce((sum, document) => sum + tokensOf(query.length) + tokensOf(document.length), 0);
  const returned = json['return_documents'] ?? shape === 'jina';
  const entry = ({ index, score }: { index: number; score: number }) => {
    const document = shape === 'jina' ? { text: documents[index] } : documents[index];
    return { index, relevance_score: score, ...(returned === true ? { document } : {}) };
  };
  const counts = directives.no_usage ? undefined : { total_tokens: tokens };
  const units = directives.no_usage ? undefined : { search_units: search };
  const reply = {
    cohere: { id, results: ranked.map(entry), meta: { api_version: { version: '2' }, billed_units: units } },
    jina: { model, object: 'list', usage: counts, results: ranked.map(entry) },
    voyage: { object: 'list', data: ranked.map(entry), model, usage: counts },
  }[shape];
  const usage = shape === 'cohere' ? { search } : { input: tokens };
  return { model, directives, usage, type: 'application/json', body: JSON.stringify(reply) };
}

function documentsIn(shape: Shape, value: unknown): readonly string[] {
  const list = listOf(value);
  if (list.length === 0 || list.length > mostDocuments)
    throw badRequest(`documents must have 1 to ${mostDocuments} entries`);
  return list.map((item) => {
    const text = shape === 'jina' && isObject(item) ? item['text'] : item;
    if (typeof text !== 'string') throw badRequest('documents must be strings');
    return text;
  });
}

/** A score from 0 to 1, with a little for shorter documents, so that no two of unequal length tie. */
function scoreOf(query: string, document: string): number {
  const wordsOf = (text: string) => new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
  const [wanted, found] = [wordsOf(query), wordsOf(document)];
  const shared = [...wanted].filter((word) => found.has(word)).length;
  const share = wanted.size === 0 ? 0 : shared / wanted.size;
  return Math.round((share * 0.98 + 0.01 / (1 + found.size)) * 1e6) / 1e6;
}
