/** Converts citations and search results of the messages protocol in both directions. Pure. */
import { isObject, type JsonObject, listOf, textOf } from '../../../../core/json/json.ts';
import type { Citation, OpaqueState, SearchResult } from '../../../common/canonical/prompt.ts';
import { citedUrl, isFileUrl } from '../../encoding/citations.ts';

/** Converts an opaque text into the opaque state to keep. */
export type Keep = (value: string) => OpaqueState | undefined;

/** In an answer, the vendor's own text is the opaque state. */
export const keepAsWritten: Keep = (value) => ({ maker: '', value });

/** A citation of any kind: of a web page, a search result, or a range in a document. */
function decodeCitation(json: JsonObject, stateOf: Keep): Citation {
  const address = textOf(json['url']) ?? textOf(json['source']);
  const url = address !== undefined && isFileUrl(address) ? undefined : address;
  const title = textOf(json['title']) ?? textOf(json['document_title']);
  const quote = textOf(json['cited_text']);
  const index = textOf(json['encrypted_index']);
  const opaqueState = index === undefined ? undefined : stateOf(index);
  return {
    ...(url === undefined ? {} : { url }),
    ...(title === undefined ? {} : { title }),
    ...(quote === undefined ? {} : { quote }),
    ...(opaqueState === undefined ? {} : { opaqueState }),
  };
}

/** A citation in an answer, with its range in the document, which clients of this protocol can receive. */
export function decodeAnswerCitation(json: JsonObject): Citation {
  const citation = decodeCitation(json, keepAsWritten);
  return json['type'] === 'web_search_result_location' ? citation : { ...citation, place: json };
}

export function decodeCitations(list: unknown, stateOf: Keep): Citation[] {
  return listOf(list)
    .filter(isObject)
    .map((citation) => decodeCitation(citation, stateOf));
}

/**
 * A citation for a client: of an address, or of a document range from an upstream of this protocol. Other upstreams do not
 * report the numbers that such a range needs: a file has an address that is made of its name.
 */
export function citationJson(citation: Citation, seal: (value: string) => string): JsonObject | undefined {
  if (citation.place !== undefined) return citation.place;
  const url = citedUrl(citation);
  if (url === undefined) return undefined;
  return {
    type: 'web_search_result_location',
    cited_text: citation.quote ?? '',
    url,
    title: citation.title ?? citation.file?.id ?? null,
    encrypted_index: seal(citation.opaqueState?.value ?? ''),
  };
}

/** Results of a vendor's search; empty for a search that failed. */
export function decodeSearchResults(content: unknown, stateOf: Keep): SearchResult[] {
  const results: SearchResult[] = [];
  for (const result of listOf(content)) {
    if (!isObject(result)) continue;
    const url = textOf(result['url']);
    if (url === undefined) continue;
    const age = textOf(result['page_age']);
    const opaque = textOf(result['encrypted_content']);
    const opaqueState = opaque === undefined ? undefined : stateOf(opaque);
    results.push({
      url,
      title: textOf(result['title']) ?? url,
      ...(opaqueState === undefined ? {} : { opaqueState }),
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
    encrypted_content: seal(result.opaqueState?.value ?? ''),
    page_age: result.age ?? null,
  };
}

/** The query of a search from its input, as far as it is present. */
export function decodeQueries(input: unknown): string[] {
  const query = isObject(input) ? textOf(input['query']) : undefined;
  return query === undefined ? [] : [query];
}
