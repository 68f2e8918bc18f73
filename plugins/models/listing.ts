/** `GET …/models` and `GET …/models/{id}` in three dialects, from entries that are encoded once. Pure. */

import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import { type Catalog, type Model, protocolsOf } from '../common/domain/models.ts';
import { checkServed, isServed, type Placement, type Serving } from '../common/domain/organizations/placement.ts';
import { type Dialect, jsonAnswer } from '../common/kit/dialects.ts';
import { entryOf } from './dialects.ts';

/** Limits of the two paged dialects, as documented by their vendors. */
const messagesDefault = 20;
const geminiDefault = 50;
const pageLimit = 1_000;

export interface Listing {
  /** Throws GatewayError `invalid_request` on invalid paging values. `placement`: without the models that it leaves no provider. */
  list(dialect: Dialect, query: URLSearchParams, placement: Placement | undefined): Answer;
  /** Throws GatewayError `not_found`, or what a call of the model is refused with by its placement. */
  one(dialect: Dialect, id: string, placement: Placement | undefined): Answer;
}

interface Pages {
  readonly ids: readonly string[];
  readonly place: ReadonlyMap<string, number>;
  readonly entries: Readonly<Record<Dialect, readonly string[]>>;
  /** The whole list of the chat dialect. */
  readonly common: Answer;
}

/** Lists only models with a price. */
export function buildListing(
  catalog: Catalog,
  serving: Serving,
  media: ReadonlyMap<string, string> = new Map(),
): Listing {
  const models = catalog.list().filter((model) => model.prices !== undefined);
  const encoded = (dialect: Dialect) =>
    models.map((model) => JSON.stringify(entryOf[dialect](model, isCallable(model, dialect, serving, media))));
  const all = pagesOf(
    models.map(({ id }) => id),
    { chat: encoded('chat'), messages: encoded('messages'), gemini: encoded('gemini') },
  );
  return {
    list(dialect, query, placement) {
      const { ids, place, entries, common } =
        placement === undefined ? all : placedPages(all, models, placement, serving);
      if (dialect === 'messages') return messagesPage(ids, place, entries.messages, query);
      if (dialect === 'gemini') return geminiPage(ids, place, entries.gemini, query);
      return { ...common };
    },
    one(dialect, id, placement) {
      const index = all.place.get(catalog.find(id)?.id ?? id);
      if (index === undefined) throw unknownModel(id);
      if (placement !== undefined) checkServed(placement, serving, models[index]!);
      return jsonAnswer(all.entries[dialect][index]!);
    },
  };
}

function pagesOf(ids: readonly string[], entries: Pages['entries']): Pages {
  const place = new Map(ids.map((id, index) => [id, index]));
  return { ids, place, entries, common: jsonAnswer(`{"object":"list","data":[${entries.chat.join(',')}]}`) };
}

/** Labels of providers can change under the list, so it is sifted for each request. */
function placedPages(all: Pages, models: readonly Model[], placement: Placement, serving: Serving): Pages {
  const served = models.map((model) => isServed(placement, serving, model));
  const sifted = (texts: readonly string[]) => texts.filter((_text, index) => served[index]);
  const { chat, messages, gemini } = all.entries;
  return pagesOf(sifted(all.ids), { chat: sifted(chat), messages: sifted(messages), gemini: sifted(gemini) });
}

function isCallable(
  model: Model,
  protocol: string,
  { providers, translations }: Serving,
  media: ReadonlyMap<string, string>,
): boolean {
  // An image model that is ordered answers `generateContent` too.
  const isOrdered = (name: string) => model.kind === 'image' && protocol === 'gemini' && media.has(name);
  return model.targets.some((target) =>
    protocolsOf(target, providers.find(target.provider)).some(
      (name) => name === protocol || translations?.can(protocol, name) === true || isOrdered(name),
    ),
  );
}

/** The error of any request that names a model which is not offered. */
export function unknownModel(id: string): GatewayError {
  return new GatewayError('not_found', `The model ${quoted(id)} does not exist or is not offered here.`, {
    field: 'model',
    code: 'model_not_found',
  });
}

/** A name from outside, made safe for a message: bounded and on one line. */
export function quoted(id: string): string {
  const line = id.replace(/\p{C}/gu, '?');
  return `\`${line.length > 100 ? `${line.slice(0, 100)}…` : line}\``;
}

function messagesPage(
  ids: readonly string[],
  place: ReadonlyMap<string, number>,
  entries: readonly string[],
  query: URLSearchParams,
): Answer {
  const limit = wholeNumber(query, 'limit', messagesDefault, pageLimit);
  const after = query.get('after_id');
  const before = query.get('before_id');
  if (after !== null && before !== null) throw badPaging('before_id', 'after_id and before_id exclude one another.');
  const end = before === null ? undefined : placeOf(place, before, 'before_id');
  const start = after === null ? Math.max(0, (end ?? 0) - limit) : placeOf(place, after, 'after_id') + 1;
  const page = entries.slice(start, end ?? start + limit);
  const more = end === undefined ? start + limit < entries.length : start > 0;
  const first = JSON.stringify(page.length === 0 ? null : ids[start]);
  const last = JSON.stringify(page.length === 0 ? null : ids[start + page.length - 1]);
  return jsonAnswer(`{"data":[${page.join(',')}],"has_more":${more},"first_id":${first},"last_id":${last}}`);
}

/** The page token is the last id of the page, so a reload between two pages skips nothing. */
function geminiPage(
  ids: readonly string[],
  place: ReadonlyMap<string, number>,
  entries: readonly string[],
  query: URLSearchParams,
): Answer {
  const size = wholeNumber(query, 'pageSize', geminiDefault, Number.MAX_SAFE_INTEGER);
  const token = query.get('pageToken') ?? '';
  const start = token === '' ? 0 : placeOf(place, Buffer.from(token, 'base64url').toString(), 'pageToken') + 1;
  const page = entries.slice(start, start + Math.min(size, pageLimit));
  const end = start + page.length;
  const next = end < entries.length ? `,"nextPageToken":"${Buffer.from(ids[end - 1]!).toString('base64url')}"` : '';
  return jsonAnswer(`{"models":[${page.join(',')}]${next}}`);
}

function wholeNumber(query: URLSearchParams, field: string, fallback: number, highest: number): number {
  const text = query.get(field);
  if (text === null || text === '') return fallback;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (value >= 1 && value <= highest) return value;
  const range = highest === Number.MAX_SAFE_INTEGER ? 'at least 1' : `from 1 to ${highest}`;
  throw badPaging(field, `${field} must be a whole number ${range}.`);
}

function placeOf(place: ReadonlyMap<string, number>, id: string, field: string): number {
  const index = place.get(id);
  if (index === undefined) throw badPaging(field, `${field} names no model of this list.`);
  return index;
}

function badPaging(field: string, message: string): GatewayError {
  return new GatewayError('invalid_request', message, { field });
}
