/** What an answer rests on, between grounding metadata (offsets in bytes of UTF-8) and citations (UTF-16). Pure. */
import type { Citation, SearchPart, SearchResult } from '../../canon.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../json.ts';
import type { ReplyEvents } from '../../reply-events.ts';
import { byteOffset, utf16Offset } from '../../wording/citations.ts';

/** The answer's text so far, and where its last block begins: citations belong to that one. */
export interface AnsweredText {
  readonly text: string;
  readonly blockStart: number;
}

/** Tells the citations of a `groundingMetadata`; the search itself is told by `groundingSearch`. */
export function tellGrounding(events: ReplyEvents, choice: number, grounding: JsonObject, said: AnsweredText): void {
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

/** Tells the sources of a `citationMetadata`: texts that the answer repeats. */
export function tellCitations(events: ReplyEvents, choice: number, metadata: JsonObject, said: AnsweredText): void {
  for (const source of listOf(metadata['citationSources'] ?? metadata['citations'] ?? metadata['citation_sources'])) {
    if (!isObject(source)) continue;
    const url = textOf(source['uri']);
    const title = textOf(source['title']);
    if (url === undefined && title === undefined) continue;
    const named = { ...(url === undefined ? {} : { url }), ...(title === undefined ? {} : { title }) };
    events.citation(choice, { ...named, ...placeOf(source, said) });
  }
}

/** The search that stands behind an answer; undefined where none was made. */
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

/** In UTF-16 units of the last block; nothing where the segment lies elsewhere. Its own words, where told, count more. */
function placeOf(segment: JsonObject, { text, blockStart }: AnsweredText): { start?: number; end?: number } {
  const endByte = segment['endIndex'] ?? segment['end_index'];
  const words = textOf(segment['text']);
  if (typeof endByte !== 'number') return {};
  const startByte = segment['startIndex'] ?? segment['start_index'];
  let start = utf16Offset(text, typeof startByte === 'number' ? startByte : 0);
  let end = utf16Offset(text, endByte);
  if (words !== undefined && text.slice(start, end) !== words && text.includes(words)) {
    start = text.indexOf(words);
    end = start + words.length;
  }
  return start < blockStart || end <= start ? {} : { start: start - blockStart, end: end - blockStart };
}

/** Gathers what an answer cites and words it as `groundingMetadata`. */
export class Grounding {
  readonly #queries: string[] = [];
  readonly #chunks: SearchResult[] = [];
  readonly #places = new Map<string, number>();
  readonly #supports: JsonObject[] = [];

  search(search: SearchPart): void {
    this.#queries.push(...search.queries);
    for (const result of search.results) this.#chunk(result.url, result.title);
  }

  /** `said` ends with the block that the citation belongs to. */
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

  /** undefined when nothing was searched or cited. */
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
