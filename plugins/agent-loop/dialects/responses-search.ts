/** Searches of the web in the protocol of responses: their items, and annotations of the texts that cite pages. Pure. */
import { isObject, type JsonObject, listOf } from '../../../core/json/json.ts';
import type { Offered } from '../offered.ts';
import { responsesSearch } from '../search/asked.ts';
import { queryIn } from '../search/found.ts';
import type { Sources } from '../search/sources.ts';
import type { Opening, ToolDone, ToolUse } from '../talk.ts';
import { fileCitations, resultsMember } from './responses-files.ts';

const sourcesMember = 'web_search_call.action.sources';

export function isSearchTool({ type }: JsonObject, offered: Offered): boolean {
  return offered.search !== undefined && typeof type === 'string' && responsesSearch.test(type);
}

/** Items of earlier searches have nothing that a model could read: what was found stands in the answers. */
export function withoutSearches(items: unknown[], offered: Offered): unknown[] {
  if (offered.search === undefined) return items;
  return items.filter((item) => !isObject(item) || item['type'] !== 'web_search_call');
}

/** A turn of the model makes no search, so it has nothing of one to include. */
export function withoutSources(request: JsonObject): JsonObject {
  if (!Array.isArray(request['include'])) return request;
  return {
    ...request,
    include: request['include'].filter((one: unknown) => one !== sourcesMember && one !== resultsMember),
  };
}

const idOf = ({ id }: ToolUse): string => `ws_${id}`;

export function searchItem(done: ToolDone, { clientJson }: Opening): JsonObject {
  const { query = queryIn(done), pages = [] } = done.found ?? {};
  const showsSources = listOf(clientJson['include']).includes(sourcesMember);
  const sources = showsSources ? { sources: pages.map(({ url }) => ({ type: 'url', url })) } : {};
  return {
    ...{ id: idOf(done), type: 'web_search_call', status: done.isError ? 'failed' : 'completed' },
    action: { type: 'search', query, queries: [query], ...sources },
  };
}

export function begunSearch(use: ToolUse): JsonObject {
  const query = queryIn(use);
  return {
    ...{ id: idOf(use), type: 'web_search_call', status: 'in_progress' },
    action: { type: 'search', query, queries: [query] },
  };
}

/** A message with the annotations of its texts. */
export function withCitations(item: JsonObject, sources: Sources): JsonObject {
  if (item['type'] !== 'message' || sources.isEmpty) return item;
  return { ...item, content: listOf(item['content']).map((part) => annotatedPart(part, sources)) };
}

function annotatedPart(part: unknown, sources: Sources): unknown {
  if (!isObject(part) || part['type'] !== 'output_text') return part;
  return { ...part, annotations: [...listOf(part['annotations']), ...annotationsOf(part['text'], sources)] };
}

function annotationsOf(text: unknown, sources: Sources): JsonObject[] {
  if (typeof text !== 'string') return [];
  const pages = sources.cited(text).map(({ start, end, page: { url, title } }) => ({
    ...{ type: 'url_citation', start_index: start, end_index: end, url, title },
  }));
  return [...pages, ...fileCitations(text, sources)];
}

/** An event of a turn's stream with what has to stand before it, and with the annotations of its text. */
export function annotated(event: JsonObject, sources: Sources): readonly JsonObject[] {
  if (sources.isEmpty) return [event];
  const { type, item_id, output_index, content_index, part, item } = event;
  if (type === 'response.content_part.done') return [{ ...event, part: annotatedPart(part, sources) }];
  if (type === 'response.output_item.done' && isObject(item)) return [{ ...event, item: withCitations(item, sources) }];
  if (type !== 'response.output_text.done') return [event];
  const at = { item_id, output_index, content_index };
  const added = annotationsOf(event['text'], sources).map((annotation, index) => ({
    ...{ type: 'response.output_text.annotation.added', ...at, annotation_index: index, annotation },
  }));
  return [...added, event];
}
