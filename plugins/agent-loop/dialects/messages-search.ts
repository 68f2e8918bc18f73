/** Searches of the web in the protocol of messages: their blocks, those of earlier turns, and citations of texts. Pure. */
import { isObject, type JsonObject, listOf, textOf, tryParse } from '../../../core/json/json.ts';
import type { Offered } from '../offered.ts';
import { messagesSearch } from '../search/asked.ts';
import { searchDone, searchName } from '../search/found.ts';
import type { Page } from '../search/nouns.ts';
import type { Sources } from '../search/sources.ts';
import type { ToolDone, ToolUse } from '../talk.ts';

/** By which the gateway knows its own searches again. */
const mark = 'srvtoolu_gw_';
const longestQuote = 150;

const shownId = (id: string): string => mark + id.replaceAll(/[^a-zA-Z0-9_]/g, '_');

export const isOwnUse = (block: unknown): block is JsonObject =>
  isObject(block) && block['type'] === 'server_tool_use' && String(block['id']).startsWith(mark);

export const isOwnResult = (block: unknown): block is JsonObject =>
  isObject(block) && block['type'] === 'web_search_tool_result' && String(block['tool_use_id']).startsWith(mark);

export function isSearchTool({ type }: JsonObject, offered: Offered): boolean {
  return offered.search !== undefined && typeof type === 'string' && messagesSearch.test(type);
}

/** Whether turns of the conversation have searches of the gateway. */
export const hasSearched = (turns: readonly unknown[]): boolean =>
  turns.some((turn) => isObject(turn) && listOf(turn['content']).some(isOwnUse));

export function searchUse({ id, ...use }: ToolUse): JsonObject {
  return { type: 'server_tool_use', id: shownId(id), name: searchName, input: tryParse(use.arguments) ?? {} };
}

export function searchResult({ id, found }: ToolDone): JsonObject {
  const error_code = found?.error;
  const content =
    error_code === undefined
      ? (found?.pages ?? []).map(resultOf)
      : { type: 'web_search_tool_result_error', error_code };
  return { type: 'web_search_tool_result', tool_use_id: shownId(id), content };
}

/** What the page says comes back with the next request: here alone is a place for it. */
function resultOf({ title, url, snippet, date }: Page): JsonObject {
  const encrypted_content = Buffer.from(snippet).toString('base64');
  return { type: 'web_search_result', url, title, encrypted_content, page_age: date };
}

/** The result of an earlier search as the model reads that of any tool. */
export function readResult(block: JsonObject): JsonObject {
  const { content } = block;
  const pages = listOf(content).flatMap((one): Page[] => {
    if (!isObject(one) || typeof one['url'] !== 'string') return [];
    const snippet = Buffer.from(textOf(one['encrypted_content']) ?? '', 'base64').toString('utf8');
    return [{ title: textOf(one['title']) ?? '', url: one['url'], snippet, date: textOf(one['page_age']) ?? null }];
  });
  const isError = !Array.isArray(content);
  const use = { id: '', name: searchName, arguments: '' };
  const { output } = searchDone(use, { query: '', pages, ...(isError ? { error: 'unavailable' } : {}) }, Infinity);
  return { type: 'tool_result', content: output, is_error: isError };
}

/** Texts of an answer with the pages that they cite. */
export function withCitations(block: JsonObject, sources: Sources): JsonObject {
  const citations = block['type'] === 'text' ? citationsOf(block['text'], sources) : [];
  return citations.length === 0 ? block : { ...block, citations: [...listOf(block['citations']), ...citations] };
}

export function citationsOf(text: unknown, sources: Sources): JsonObject[] {
  if (typeof text !== 'string') return [];
  const pages = new Set(sources.cited(text).map(({ page }) => page));
  return [...pages].map(({ url, title, snippet }) => ({
    ...{ type: 'web_search_result_location', url, title, encrypted_index: '' },
    cited_text: snippet.slice(0, longestQuote),
  }));
}

/** A citation of a page that was found in an earlier turn says nothing to a model, and no vendor reads it. */
export function withoutOwnCitations(block: JsonObject): JsonObject {
  if (block['type'] !== 'text' || !Array.isArray(block['citations'])) return block;
  const kept = block['citations'].filter(
    (one: unknown) =>
      !isObject(one) || one['type'] !== 'web_search_result_location' || (textOf(one['encrypted_index']) ?? '') !== '',
  );
  const { citations: _all, ...rest } = block;
  return kept.length === 0 ? rest : { ...rest, citations: kept };
}

/** Usage with the searches among it. */
export function withSearches(usage: unknown, searches: number): unknown {
  if (searches === 0 || !isObject(usage)) return usage;
  const used = isObject(usage['server_tool_use']) ? usage['server_tool_use'] : {};
  return { ...usage, server_tool_use: { web_fetch_requests: 0, ...used, web_search_requests: searches } };
}
