/** Requests for a rerank in three shapes: read into one form, and encoded for each vendor. Pure. */
import { isObject, type JsonObject } from '../../../core/json/json.ts';
import { invalid, type RequestBody } from '../../../core/json/request-body.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import { checkLength, isAbsent, modelOf, positiveOf, requiredText } from '../checks.ts';
import type { Limits } from '../description.ts';
import { heldTokens } from '../estimate.ts';
import { wire } from '../wires.ts';

export interface RerankRequest {
  readonly model: string;
  readonly query: string;
  readonly documents: readonly string[];
  readonly top: number | undefined;
  /** The answer repeats the documents. */
  readonly returnsDocuments: boolean;
  /** An upper estimate: the query is read with each document. */
  readonly tokens: number;
  /** Search units as Cohere counts them: a query with up to 100 documents; long ones count as several. */
  readonly searches: number;
  /** Members that the shapes do not have in common. */
  readonly others: readonly string[];
}

const tokensPerPart = 500;
const partsPerSearch = 100;
const common = new Set(['model', 'query', 'documents', 'top_n', 'top_k', 'return_documents']);

/** Throws invalid_request that names the field. */
export function readRerank({ json }: RequestBody, limits: Limits): RerankRequest {
  const query = requiredText(json, 'query');
  const documents = documentsOf(json, limits);
  const { return_documents: returned } = json;
  if (!isAbsent(returned) && typeof returned !== 'boolean')
    throw invalid('The field "return_documents" must be true or false.', 'return_documents');
  const queryTokens = heldTokens(Buffer.byteLength(query));
  const sizes = documents.map((text) => queryTokens + heldTokens(Buffer.byteLength(text)));
  const parts = sizes.reduce((sum, size) => sum + Math.ceil(size / tokensPerPart), 0);
  return {
    model: modelOf(json),
    query,
    documents,
    top: positiveOf(json, 'top_n', Number.MAX_SAFE_INTEGER) ?? positiveOf(json, 'top_k', Number.MAX_SAFE_INTEGER),
    returnsDocuments: returned !== false,
    tokens: sizes.reduce((sum, size) => sum + size, 0),
    searches: Math.ceil(parts / partsPerSearch),
    others: Object.keys(json).filter((name) => !common.has(name) && !isAbsent(json[name])),
  };
}

function documentsOf(json: JsonObject, limits: Limits): readonly string[] {
  const { documents } = json;
  if (isAbsent(documents)) throw invalid('The field "documents" is missing.', 'documents');
  if (!Array.isArray(documents)) throw invalid('The field "documents" must be a list.', 'documents');
  checkLength(documents, 'documents', limits.documents);
  return documents.map((document, index) => {
    const text = isObject(document) ? document['text'] : document;
    if (typeof text === 'string') return text;
    const field = `documents[${index}]`;
    throw invalid(`The field "${field}" must be a string, or an object with a text.`, field);
  });
}

/** The body for an upstream of another shape; documents are added to the answer here, not by the vendor. */
export function encodeRerank({ query, documents, top }: RerankRequest, { protocol, model }: Target): object {
  const body = { model, query, documents };
  if (protocol === wire.cohereRerank) return { ...body, ...(top === undefined ? {} : { top_n: top }) };
  const most = protocol === wire.voyageRerank ? { top_k: top } : { top_n: top };
  return { ...body, ...(top === undefined ? {} : most), return_documents: false };
}
