/** Searches of the web in the protocol of generate-content: the tool, and the grounding of the answer. Pure. */
import type { JsonObject } from '../../../core/json/json.ts';
import type { Offered } from '../offered.ts';
import { geminiSearch } from '../search/asked.ts';
import type { Sources } from '../search/sources.ts';

/** A tool without its search; undefined where nothing is left of it. */
export function withoutSearch(tool: JsonObject, offered: Offered): JsonObject | undefined {
  if (offered.search === undefined) return tool;
  const left = Object.entries(tool).filter(([name]) => !geminiSearch.includes(name));
  return left.length === 0 ? undefined : Object.fromEntries(left);
}

/** `texts`: of the answer's parts, by their places; undefined for parts without text. Nothing where the run has not searched. */
export function groundingOf(texts: readonly (string | undefined)[], sources: Sources): JsonObject {
  const { queries, pages } = sources;
  if (queries.length === 0) return {};
  const supports = texts.flatMap((text = '', partIndex) =>
    sources.cited(text).map(({ start, end, page }) => ({
      segment: {
        ...(partIndex === 0 ? {} : { partIndex }),
        ...{ startIndex: bytes(text, start), endIndex: bytes(text, end), text: text.slice(start, end) },
      },
      groundingChunkIndices: [pages.indexOf(page)],
    })),
  );
  return {
    groundingMetadata: {
      webSearchQueries: [...queries],
      groundingChunks: pages.map(({ url, title }) => ({ web: { uri: url, title } })),
      ...(supports.length === 0 ? {} : { groundingSupports: supports }),
    },
  };
}

/** Offsets are in bytes of UTF-8. */
const bytes = (text: string, end: number): number => Buffer.byteLength(text.slice(0, end));
