/** How a request asks for searches of vector stores: those of the gateway are its own to search, others their vendor's. Pure. */
import { isObject, type JsonObject, listOf, objectOf } from '../../../core/json/json.ts';
import type { AskedStores } from '../../common/domain/stored-files.ts';
import { invalid } from '../wanted.ts';

type IsOwn = (id: string) => boolean;

const known = new Set(['type', 'vector_store_ids', 'filters', 'max_num_results', 'ranking_options']);

/** The tool of responses and chat completions; undefined: none, or one for stores of a vendor. Throws invalid_request. */
export function filesTool(tools: unknown, isOwn: IsOwn): AskedStores | undefined {
  const found = listOf(tools).flatMap((tool, index): AskedStores[] => {
    if (!isObject(tool) || tool['type'] !== 'file_search') return [];
    const field = `tools[${index}]`;
    const ids = storesIn(tool['vector_store_ids'], `${field}.vector_store_ids`);
    const own = ids.filter(isOwn);
    if (own.length === 0) return [];
    if (own.length < ids.length)
      throw invalid('Stores of this gateway and of a vendor are not searched together.', `${field}.vector_store_ids`);
    const unknown = Object.keys(tool).find((name) => !known.has(name) && tool[name] !== null);
    if (unknown !== undefined) throw invalid(`There is no "${unknown}" here.`, `${field}.${unknown}`);
    return [{ ...settingsOf(tool), ids, field }];
  });
  if (found.length > 1) throw invalid('A request has one tool that searches files.', found[1]!.field);
  return found[0];
}

/** A request that names no store would be answered as if nothing was found. */
function storesIn(value: unknown, field: string): string[] {
  const ids = listOf(value).filter((id) => typeof id === 'string' && id !== '') as string[];
  if (ids.length === 0 || ids.length < listOf(value).length)
    throw invalid('A search of files names at least one store, each by its id.', field);
  return ids;
}

const settingsOf = ({ filters, max_num_results, ranking_options }: JsonObject) => ({
  ...{ filters, max_num_results, ranking_options },
});

/** Members of a tool of generate-content. */
export const geminiFiles = ['fileSearch', 'file_search'];
const geminiStore = /^fileSearchStores\//;

/** The tool of generate-content. It names a store by `fileSearchStores/` and its id. Throws invalid_request. */
export function geminiFilesTool(tools: unknown, isOwn: IsOwn): AskedStores | undefined {
  const found = listOf(tools).flatMap((tool, index): AskedStores[] =>
    geminiFiles.flatMap((name) => {
      const settings = isObject(tool) ? objectOf(tool[name]) : undefined;
      return settings === undefined ? [] : geminiStores(settings, `tools[${index}].${name}`, isOwn);
    }),
  );
  if (found.length > 1) throw invalid('A request has one tool that searches files.', found[1]!.field);
  return found[0];
}

function geminiStores(settings: JsonObject, field: string, isOwn: IsOwn): AskedStores[] {
  const names = settings['fileSearchStoreNames'] ?? settings['file_search_store_names'];
  const ids = storesIn(names, `${field}.fileSearchStoreNames`).map((name) => name.replace(geminiStore, ''));
  const own = ids.filter(isOwn);
  if (own.length === 0) return [];
  if (own.length < ids.length)
    throw invalid('Stores of this gateway and of a vendor are not searched together.', `${field}.fileSearchStoreNames`);
  const filter = ['metadataFilter', 'metadata_filter'].find((name) => (settings[name] ?? '') !== '');
  if (filter !== undefined)
    throw invalid('Stores of this gateway are searched without such a filter.', `${field}.${filter}`);
  const max_num_results = settings['topK'] ?? settings['top_k'];
  return [{ ids, field, filters: undefined, ranking_options: undefined, max_num_results }];
}
