/** Converts between grounding metadata (offsets in UTF-8 bytes) and citations (UTF-16 offsets). Pure. */

import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { ReplyEvents } from '../../../../common/canonical/events.ts';
import type { Citation, SearchPart, SearchResult } from '../../../../common/canonical/prompt.ts';
import { byteOffset, utf16Offset } from '../../../../common/encoding/citations.ts';

/** The answer's text so far and the offset of its last block: citations belong to that block. */
export interface AnsweredText {
  readonly text: string;
  readonly blockStart: number;
}

/** Emits the citations of a `groundingMetadata`; `groundingSearch` returns the search itself. */
export function emitGrounding(events: ReplyEvents, choice: number, grounding: JsonObject, said: AnsweredText): void {
  const sources = listOf(grounding['groundingChunks'] ?? grounding['grounding_chunks']).map(sourceOf);
  for (const support of listOf(grounding['groundingSupports'] ?? grounding['grounding_supports'])) {
    if (!isObject(support)) continue;
    const place = placeOf(objectOf(support['segment']) ?? {}, said);
    for (const index of listOf(support['groundingChunkIndices'] ?? support['grounding_chunk_indices'])) {
      const source = sources[Number(index)];
      if (source !== undefined) events.citation(choice, { url: source.url, title: source.title, ...place });
    }
  }
}

/** Emits the sources of a `citationMetadata`: texts that the answer quotes. */
export function emitCitations(events: ReplyEvents, choice: number, metadata: JsonObject, said: AnsweredText): void {
  for (const source of listOf(metadata['citationSources'] ?? metadata['citations'] ?? metadata['citation_sources'])) {
    if (!isObject(source)) continue;
    const url = textOf(source['uri']);
    const title = textOf(source['title']);
    if (url === undefined && title === undefined) continue;
    const named = { ...(url === undefined ? {} : { url }), ...(title === undefined ? {} : { title }) };
    events.citation(choice, { ...named, ...placeOf(source, said) });
  }
}

/** The search behind an answer; undefined if there was none. */
export function groundingSearch(choice: number, grounding: JsonObject): SearchPart | undefined {
  const asked = listOf(grounding['webSearchQueries'] ?? grounding['web_search_queries']);
  const queries = asked.filter((query) => typeof query === 'string');
  const results = listOf(grounding['groundingChunks'] ?? grounding['grounding_chunks']).map(sourceOf);
  if (queries.length === 0 && results.length === 0) return undefined;
  return {
    kind: 'search',
    id: `search_${choice}`,
    queries,
    results: results.filter((result) => result !== undefined),
  };
}

function sourceOf(chunk: unknown): SearchResult | undefined {
  const { web, retrievedContext, retrieved_context: snake } = objectOf(chunk) ?? {};
  const source = objectOf(web ?? retrievedContext ?? snake);
  const url = textOf(source?.['uri']);
  return url === undefined ? undefined : { url, title: textOf(source?.['title']) ?? '' };
}

/**
 * In UTF-16 units of the last block; empty if the segment is outside of it. The segment's own text, if present, takes
 * precedence.
 */
function placeOf(segment: JsonObject, { text, blockStart }: AnsweredText): { start?: number; end?: number } {
  const endByte = segment['endIndex'] ?? segment['end_index'];
  const cited = textOf(segment['text']);
  if (typeof endByte !== 'number') return {};
  const startByte = segment['startIndex'] ?? segment['start_index'];
  let start = utf16Offset(text, typeof startByte === 'number' ? startByte : 0);
  let end = utf16Offset(text, endByte);
  if (cited !== undefined && text.slice(start, end) !== cited && text.includes(cited)) {
    start = text.indexOf(cited);
    end = start + cited.length;
  }
  return start < blockStart || end <= start ? {} : { start: start - blockStart, end: end - blockStart };
}

/** Collects citations of an answer and encodes them as `groundingMetadata`. */
export class Grounding {
  readonly #queries: string[] = [];
  readonly #chunks: SearchResult[] = [];
  readonly #places = new Map<string, number>();
  readonly #supports: JsonObject[] = [];

  search(search: SearchPart): void {
    this.#queries.push(...search.queries);
    for (const result of search.results) this.#chunk(result.url, result.title);
  }

  /** `said` ends with the block of the citation. */
  cite(citation: Citation, { text, blockStart }: AnsweredText): void {
    if (citation.url === undefined) return;
    const start = blockStart + (citation.start ?? 0);
    const end = citation.end === undefined ? text.length : blockStart + citation.end;
    this.#supports.push({
      segment: {
        startIndex: byteOffset(text, start),
        endIndex: byteOffset(text, end),
        text: text.slice(start, end),
      },
      groundingChunkIndices: [this.#chunk(citation.url, citation.title ?? '')],
    });
  }

  /** undefined if there was neither a search nor a citation. */
  get metadata(): JsonObject | undefined {
    if (this.#queries.length === 0 && this.#chunks.length === 0) return undefined;
    return {
      ...(this.#queries.length === 0 ? {} : { webSearchQueries: this.#queries }),
      groundingChunks: this.#chunks.map(({ url, title }) => ({ web: { uri: url, title } })),
      groundingSupports: this.#supports,
    };
  }

  #chunk(url: string, title: string): number {
    let place = this.#places.get(url);
    if (place === undefined) {
      place = this.#chunks.push({ url, title }) - 1;
      this.#places.set(url, place);
    }
    return place;
  }
}
