/** Words citations and search results of the messages protocol, both ways. Pure. */
import type { Citation, Keepsake, SearchResult } from '../../canon.ts';
import { isObject, type JsonObject, listOf, textOf } from '../../json.ts';

/** Makes of an opaque text what may be kept of it. */
export type Keep = (value: string) => Keepsake | undefined;

/** In an answer, the vendor's own words are the keepsake. */
export const keepAsWorded: Keep = (value) => ({ maker: '', value });

/** A citation of any kind: of a web page, a search result, or a place in a document. */
export function readCitation(json: JsonObject, keep: Keep): Citation {
  const url = textOf(json['url']) ?? textOf(json['source']);
  const title = textOf(json['title']) ?? textOf(json['document_title']);
  const quote = textOf(json['cited_text']);
  const index = textOf(json['encrypted_index']);
  const keepsake = index === undefined ? undefined : keep(index);
  return {
    ...(url === undefined ? {} : { url }),
    ...(title === undefined ? {} : { title }),
    ...(quote === undefined ? {} : { quote }),
    ...(keepsake === undefined ? {} : { keepsake }),
  };
}

/** Of an answer: with the place in a document, which clients of this protocol can be told. */
export function readAnswerCitation(json: JsonObject): Citation {
  const citation = readCitation(json, keepAsWorded);
  return json['type'] === 'web_search_result_location' ? citation : { ...citation, place: json };
}

export function readCitations(list: unknown, keep: Keep): Citation[] {
  return listOf(list)
    .filter(isObject)
    .map((citation) => readCitation(citation, keep));
}

/**
 * A citation for a client: of a web page, or of a place in a document as an upstream of this protocol told it. Others do not
 * have the numbers by which such places are told.
 */
export function citationJson(citation: Citation, seal: (value: string) => string): JsonObject | undefined {
  if (citation.place !== undefined) return citation.place;
  if (citation.url === undefined) return undefined;
  return {
    type: 'web_search_result_location',
    cited_text: citation.quote ?? '',
    url: citation.url,
    title: citation.title ?? null,
    encrypted_index: seal(citation.keepsake?.value ?? ''),
  };
}

/** What a vendor's search found; an error found nothing. */
export function readSearchResults(content: unknown, keep: Keep): SearchResult[] {
  const results: SearchResult[] = [];
  for (const result of listOf(content)) {
    if (!isObject(result)) continue;
    const url = textOf(result['url']);
    if (url === undefined) continue;
    const age = textOf(result['page_age']);
    const opaque = textOf(result['encrypted_content']);
    const keepsake = opaque === undefined ? undefined : keep(opaque);
    results.push({
      url,
      title: textOf(result['title']) ?? url,
      ...(keepsake === undefined ? {} : { keepsake }),
      ...(age === undefined ? {} : { age }),
    });
  }
  return results;
}

export function searchResultJson(result: SearchResult, seal: (value: string) => string): JsonObject {
  return {
    type: 'web_search_result',
    url: result.url,
    title: result.title,
    encrypted_content: seal(result.keepsake?.value ?? ''),
    page_age: result.age ?? null,
  };
}

/** The query of a search by its input, as far as it is there. */
export function readQueries(input: unknown): string[] {
  const query = isObject(input) ? textOf(input['query']) : undefined;
  return query === undefined ? [] : [query];
}
