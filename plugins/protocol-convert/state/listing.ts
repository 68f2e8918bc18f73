/** Pagination of a list of items, as in the official API. Pure. */

import type { JsonObject } from '../../../core/json/json.ts';
import { invalid } from '../request/checks.ts';

const defaultLimit = 20;
const largestLimit = 100;

/** Newest first unless `order=asc`; starts after the item `after`. Throws invalid_request with the parameter. */
export function listPage(items: readonly JsonObject[], query: URLSearchParams): JsonObject {
  const order = query.get('order') ?? 'desc';
  if (order !== 'asc' && order !== 'desc') throw invalid('The parameter "order" must be asc or desc.', 'order');
  const limit = limitOf(query.get('limit'));
  const ordered = order === 'asc' ? items : items.toReversed();
  const start = startOf(ordered, query.get('after'));
  const data = ordered.slice(start, start + limit);
  return {
    object: 'list',
    data,
    first_id: data[0]?.['id'] ?? null,
    last_id: data.at(-1)?.['id'] ?? null,
    has_more: start + limit < ordered.length,
  };
}

function limitOf(text: string | null): number {
  const limit = text === null ? defaultLimit : Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= largestLimit) return limit;
  throw invalid(`The parameter "limit" must be a whole number from 1 to ${largestLimit}.`, 'limit');
}

function startOf(items: readonly JsonObject[], after: string | null): number {
  if (after === null) return 0;
  const index = items.findIndex((item) => item['id'] === after);
  if (index === -1) throw invalid('The parameter "after" names no item of this list.', 'after');
  return index + 1;
}
