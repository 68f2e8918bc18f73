/** Searches of the web and of files in the protocol of generate-content: their tools, and the grounding of the answer. Pure. */
import type { JsonObject } from '../../../core/json/json.ts';
import { geminiFiles } from '../files/asked.ts';
import type { Offered } from '../offered.ts';
import { geminiSearch } from '../search/asked.ts';
import type { Sources } from '../search/sources.ts';

/** A tool without its searches that are the gateway's; undefined where nothing is left of it. */
export function withoutSearch(tool: JsonObject, offered: Offered): JsonObject | undefined {
  const own = [
    ...(offered.search === undefined ? [] : geminiSearch),
    ...(offered.files === undefined ? [] : geminiFiles),
  ];
  if (own.length === 0) return tool;
  const left = Object.entries(tool).filter(([name]) => !own.includes(name));
  return left.length === 0 ? undefined : Object.fromEntries(left);
}

/** `texts`: of the answer's parts, by their places; undefined for parts without text. Nothing where the run has not searched. */
export function groundingOf(texts: readonly (string | undefined)[], sources: Sources): JsonObject {
  if (sources.isEmpty) return {};
  const { queries, pages, hits } = sources;
  const supports = texts.flatMap((text = '', partIndex) =>
    placesIn(text, sources).map(({ start, end, chunk }) => ({
      segment: {
        ...(partIndex === 0 ? {} : { partIndex }),
        ...{ startIndex: bytes(text, start), endIndex: bytes(text, end), text: text.slice(start, end) },
      },
      groundingChunkIndices: [chunk],
    })),
  );
  const ofFiles = hits.map(({ name, text, fileId }) => ({ retrievedContext: { title: name, text, uri: fileId } }));
  return {
    groundingMetadata: {
      ...(queries.length === 0 ? {} : { webSearchQueries: [...queries] }),
      groundingChunks: [...pages.map(({ url, title }) => ({ web: { uri: url, title } })), ...ofFiles],
      ...(supports.length === 0 ? {} : { groundingSupports: supports }),
    },
  };
}

/** Links to pages and marks of files, with the place of each among the chunks: files stand behind pages. */
function placesIn(text: string, sources: Sources): { start: number; end: number; chunk: number }[] {
  const { pages, hits } = sources;
  const links = sources.cited(text).map(({ start, end, page }) => ({ start, end, chunk: pages.indexOf(page) }));
  const marks = sources
    .citedFiles(text)
    .map(({ start, end, hit }) => ({ start, end, chunk: pages.length + hits.indexOf(hit) }));
  return [...links, ...marks];
}

/** Offsets are in bytes of UTF-8. */
const bytes = (text: string, end: number): number => Buffer.byteLength(text.slice(0, end));
