/** Lists of an account's tasks: in pages behind a task, and by page number as in the video-task protocol. */

import type { Exchange } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { caller } from '../../common/domain/accounts.ts';
import type { MediaKind } from '../../common/media/adapters.ts';
import type { Tools } from '../engine/dependencies.ts';
import { type Filter, TaskLists } from './lists.ts';
import { renderTask, type Scope } from './queries.ts';
import { listedVideos } from './shapes/index.ts';
import { statesNamed, viewOf } from './view.ts';
import { json } from './waiting.ts';

const usualLimit = 20;
const mostListed = 100;
/** Limit of the video-task protocol. */
const mostPages = 500;
const mostPerPage = 500;
/** No page holds more. */
const mostIds = mostPerPage;

export class ListQueries {
  readonly #tools: Tools;
  readonly #lists: TaskLists;

  constructor(tools: Tools) {
    this.#tools = tools;
    this.#lists = new TaskLists(tools.store);
  }

  /** Newest first, or oldest with `order=asc`; `after` is the last id of the previous page. */
  async after(exchange: Exchange, scope: Scope): Promise<Answer> {
    const { query } = exchange.request;
    const limit = numberIn(query, 'limit', usualLimit, mostListed);
    const filter = { kind: scope.kind ?? kindIn(query.get('kind')), ...statusIn(query, 'status') };
    const after = query.get('after');
    const page = { limit: limit + 1, oldestFirst: isAscending(query), ...(after === null ? {} : { from: { after } }) };
    const found = await this.#lists.page(exchange.get(caller).accountId, filter, page);
    const tasks = found.slice(0, limit);
    return json({
      object: 'list',
      data: tasks.map((task) => renderTask(task, exchange, scope, this.#tools)),
      first_id: tasks[0]?.id ?? null,
      last_id: tasks.at(-1)?.id ?? null,
      has_more: found.length > limit,
    });
  }

  /** Newest first, by `page_num` and `page_size`; with the total count. */
  async numbered(exchange: Exchange): Promise<Answer> {
    const { query, headers } = exchange.request;
    const number = numberIn(query, 'page_num', 1, mostPages);
    const limit = numberIn(query, 'page_size', usualLimit, mostPerPage);
    const filter: Filter = {
      kind: 'video',
      ...statusIn(query, 'filter.status'),
      model: query.get('filter.model') ?? undefined,
      ids: idsIn(query),
      serviceTier: query.get('filter.service_tier') ?? undefined,
    };
    const { accountId } = exchange.get(caller);
    const [total, tasks] = await Promise.all([
      this.#lists.count(accountId, filter),
      this.#lists.page(accountId, filter, { limit, from: { offset: (number - 1) * limit } }),
    ]);
    const views = tasks.map((task) => viewOf(task, this.#tools.files, headers['host']));
    return json(listedVideos(total, views));
  }
}

function statusIn(query: URLSearchParams, field: string): Pick<Filter, 'states' | 'errorCode'> {
  const state = query.get(field);
  if (state === null) return {};
  // An expired task is stored as failed, and has its own filter.
  if (state === 'expired') return { states: ['failed'], errorCode: 'expired' };
  const states = statesNamed(state);
  if (states === undefined) throw invalidParameter(`The parameter "${field}" names no state of a task.`, field);
  return { states };
}

function numberIn(query: URLSearchParams, field: string, usual: number, most: number): number {
  const text = query.get(field);
  if (text === null) return usual;
  const number = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (number >= 1 && number <= most) return number;
  throw invalidParameter(`The parameter "${field}" must be from 1 to ${most}.`, field);
}

function isAscending(query: URLSearchParams): boolean {
  const order = query.get('order') ?? 'desc';
  if (order !== 'asc' && order !== 'desc')
    throw invalidParameter('The parameter "order" must be asc or desc.', 'order');
  return order === 'asc';
}

/** Repeated parameters, or one with commas. */
function idsIn(query: URLSearchParams): readonly string[] | undefined {
  const field = 'filter.task_ids';
  const ids = query.getAll(field).flatMap((text) => text.split(','));
  if (ids.length > mostIds) throw invalidParameter(`The parameter "${field}" may hold at most ${mostIds} ids.`, field);
  return ids.length === 0 ? undefined : ids;
}

function kindIn(text: string | null): MediaKind | undefined {
  if (text === null || text === 'image' || text === 'video') return text ?? undefined;
  throw invalidParameter('The parameter "kind" must be image or video.', 'kind');
}

function invalidParameter(message: string, field: string): GatewayError {
  return new GatewayError('invalid_request', message, { field });
}
