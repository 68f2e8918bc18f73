/** Searches of files in the protocol of responses: their items, and annotations of the texts that cite files. Pure. */
import { isObject, type JsonObject, listOf } from '../../../core/json/json.ts';
import { filesQuery } from '../files/found.ts';
import type { Offered } from '../offered.ts';
import type { Sources } from '../search/sources.ts';
import type { Opening, ToolDone, ToolUse } from '../talk.ts';

export const resultsMember = 'file_search_call.results';

export const isFilesTool = ({ type }: JsonObject, offered: Offered): boolean =>
  offered.files !== undefined && type === 'file_search';

const idOf = ({ id }: ToolUse): string => `fs_${id}`;

export function filesItem(done: ToolDone, { clientJson }: Opening): JsonObject {
  const { query = '', hits = [] } = done.files ?? {};
  const shows = listOf(clientJson['include']).includes(resultsMember);
  const results = hits.map(({ fileId, name, score, attributes, text }) => ({
    ...{ attributes, file_id: fileId, filename: name, score, text },
  }));
  return {
    ...{ id: idOf(done), type: 'file_search_call', status: done.isError ? 'failed' : 'completed' },
    ...{ queries: query === '' ? [] : [query], results: shows ? results : null },
  };
}

export function begunFiles(use: ToolUse): JsonObject {
  const query = filesQuery(use);
  const queries = query === undefined ? [] : [query];
  return { id: idOf(use), type: 'file_search_call', status: 'in_progress', queries, results: null };
}

/** Items of earlier searches say nothing to a model: what was found stands in the answers. */
export function withoutFiles(items: unknown[], offered: Offered): unknown[] {
  if (offered.files === undefined) return items;
  return items.filter((item) => !isObject(item) || item['type'] !== 'file_search_call');
}

/** Each mark of a text that was found, by its place. */
export function fileCitations(text: string, sources: Sources): JsonObject[] {
  return sources.citedFiles(text).map(({ start, hit: { fileId, name } }) => ({
    ...{ type: 'file_citation', file_id: fileId, filename: name, index: start },
  }));
}
