/** Converts between grounding metadata (offsets in UTF-8 bytes) and citations (UTF-16 offsets). Pure. */

import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { ReplyEvents } from '../../../../common/canonical/events.ts';
import type { Citation, SearchPart, SearchResult } from '../../../../common/canonical/prompt.ts';
import { byteOffset, utf16Offset } from '../../../encoding/citations.ts';

/** The answer's text so far and the offset of its last block: citations belong to that block. */
export interface AnsweredText {
  readonly text: string;
  readonly blockStart: number;
}

/** Emits the citations of a `groundingMetadata`; `groundingSearch` returns the search itself. */
export function emitGrounding(events: ReplyEvents, choice: number, grounding: JsonObject, said: AnsweredText): void {
  const sources = sourcesIn(grounding);
  const untold = new Set(sources.filter((source) => source !== undefined));
  for (const support of listOf(grounding['groundingSupports'] ?? grounding['grounding_supports'])) {
    if (!isObject(support)) continue;
    const place = placeOf(objectOf(support['segment']) ?? {}, said);
    for (const index of listOf(support['groundingChunkIndices'] ?? support['grounding_chunk_indices'])) {
      const source = sources[Number(index)];
      if (source === undefined) continue;
      untold.delete(source);
      events.citation(choice, { ...source.cited, ...place });
    }
  }
  const hasSearched = queriesIn(grounding).length > 0;
  // What no support names is among the results of the search, or behind the whole answer.
  for (const { isFound, cited } of untold) if (!(isFound && hasSearched)) events.citation(choice, cited);
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

/** The search behind an answer; undefined if there was none: places on a map and files were not searched for in the web. */
export function groundingSearch(choice: number, grounding: JsonObject): SearchPart | undefined {
  const queries = queriesIn(grounding);
  if (queries.length === 0) return undefined;
  const results = sourcesIn(grounding).flatMap((source): SearchResult[] =>
    source?.isFound === true ? [{ url: source.cited.url!, title: source.cited.title ?? '' }] : [],
  );
  return { kind: 'search', id: `search_${choice}`, queries, results };
}

function queriesIn(grounding: JsonObject): string[] {
  const web = listOf(grounding['webSearchQueries'] ?? grounding['web_search_queries']);
  const image = listOf(grounding['imageSearchQueries'] ?? grounding['image_search_queries']);
  return [...web, ...image].filter((query) => typeof query === 'string' && query !== '') as string[];
}

interface GroundingSource {
  readonly cited: Citation;
  /** By a search of the web. */
  readonly isFound: boolean;
}

function sourcesIn(grounding: JsonObject): (GroundingSource | undefined)[] {
  return listOf(grounding['groundingChunks'] ?? grounding['grounding_chunks']).map(sourceOf);
}

/** A web page, an image, a place on a map, or a document, which may have a name alone. */
function sourceOf(chunk: unknown): GroundingSource | undefined {
  const json = objectOf(chunk) ?? {};
  const found = objectOf(json['web'] ?? json['image']);
  const source = found ?? objectOf(json['maps'] ?? json['retrievedContext'] ?? json['retrieved_context']);
  const url = textOf(source?.['uri']) ?? textOf(source?.['sourceUri'] ?? source?.['source_uri']);
  const name = textOf(source?.['title']) ?? textOf(source?.['documentName'] ?? source?.['document_name']);
  if (url === undefined && name === undefined) return undefined;
  const title = url === undefined ? name : (name ?? '');
  return {
    cited: { ...(url === undefined ? {} : { url }), ...(title === undefined ? {} : { title }) },
    isFound: found !== undefined && url !== undefined,
  };
}

/**
 * The segment's place in UTF-16 units of the last block; empty if the segment is outside of it. The segment's own text, if present,
 * takes precedence.
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
  readonly #chunks: JsonObject[] = [];
  readonly #places = new Map<string, number>();
  readonly #supports: JsonObject[] = [];

  search(search: SearchPart): void {
    this.#queries.push(...search.queries);
    for (const { url, title } of search.results) this.#chunk(url, { web: { uri: url, title } });
  }

  /** `said` ends with the block of the citation. */
  cite(citation: Citation, { text, blockStart }: AnsweredText): void {
    const { url, title } = citation;
    const name = title ?? citation.file?.id;
    if (url === undefined && name === undefined) return;
    const start = blockStart + (citation.start ?? 0);
    const end = citation.end === undefined ? text.length : blockStart + citation.end;
    this.#supports.push({
      segment: {
        startIndex: byteOffset(text, start),
        endIndex: byteOffset(text, end),
        text: text.slice(start, end),
      },
      groundingChunkIndices: [
        url === undefined
          ? this.#chunk(`file ${name}`, { retrievedContext: { title: name } })
          : this.#chunk(url, { web: { uri: url, title: title ?? '' } }),
      ],
    });
  }

  /** undefined if there was neither a search nor a citation. */
  get metadata(): JsonObject | undefined {
    if (this.#queries.length === 0 && this.#chunks.length === 0) return undefined;
    return {
      ...(this.#queries.length === 0 ? {} : { webSearchQueries: this.#queries }),
      groundingChunks: this.#chunks,
      groundingSupports: this.#supports,
    };
  }

  #chunk(source: string, chunk: JsonObject): number {
    let place = this.#places.get(source);
    if (place === undefined) {
      place = this.#chunks.push(chunk) - 1;
      this.#places.set(source, place);
    }
    return place;
  }
}
