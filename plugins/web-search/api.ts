/** The request to a search engine, made of the template of its API, and its answer as results. Pure. */
import { isObject, type JsonObject, listOf, tryParse } from '../../core/json/json.ts';
import { type AskedSearch, isOf } from './asked.ts';
import type { SearchApi } from './config.ts';

export interface SearchResult {
  readonly title: string;
  readonly url: string;
  readonly snippet: string;
  readonly date: string | null;
}

export interface EngineRequest {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

type Values = Readonly<Record<string, string | number | readonly string[] | undefined>>;

const longestTitle = 300;
const longestAddress = 2_048;
const longestDate = 40;

/** `url`: the address that is asked, whole. */
export function requestFor(api: SearchApi, url: string, key: string, search: AskedSearch): EngineRequest {
  const { allowed, blocked, country } = search;
  const values: Values = {
    ...{ key, query: api.operators ? withOperators(search) : search.query, count: Math.min(search.count, api.most) },
    ...{ country, country_lower: country?.toLowerCase(), place: search.place },
    allowed: allowed.length === 0 ? undefined : allowed,
    blocked: blocked.length === 0 ? undefined : blocked,
  };
  const address = new URL(url);
  for (const [name, template] of Object.entries(api.query)) {
    const value = filled(template, values);
    if (value !== undefined) address.searchParams.set(name, String(value));
  }
  const headers = Object.fromEntries(
    Object.entries(api.headers).map(([name, value]) => [name, String(filled(value, values) ?? '')]),
  );
  const all = { accept: 'application/json', ...headers };
  if (api.body === undefined) return { url: address.href, method: 'GET', headers: all };
  const body = JSON.stringify(filled(api.body, values) ?? {});
  return { url: address.href, method: 'POST', headers: { ...all, 'content-type': 'application/json' }, body };
}

function withOperators({ query, allowed, blocked }: AskedSearch): string {
  const wanted = allowed.map((one) => `site:${one}`).join(' OR ');
  const parts = [query, allowed.length > 1 ? `(${wanted})` : wanted, ...blocked.map((one) => `-site:${one}`)];
  return parts.filter((part) => part !== '').join(' ');
}

const word = /\{(query|count|country|country_lower|place|allowed|blocked|key)\}/g;

/** A text that is one word becomes its value, and goes where it has none. */
function filled(template: unknown, values: Values): unknown {
  if (typeof template === 'string') {
    const whole = /^\{(\w+)\}$/.exec(template)?.[1];
    if (whole !== undefined && whole in values) return values[whole];
    return template.replaceAll(word, (_text, name: string) => String(values[name] ?? ''));
  }
  if (Array.isArray(template)) return template.flatMap((one: unknown) => filled(one, values) ?? []);
  if (!isObject(template)) return template;
  const members = Object.entries(template).map(([name, value]) => [name, filled(value, values)] as const);
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}

/** undefined: the answer has no such list. The engine may know nothing of domains: what it gives of others is left out. */
export function resultsIn(
  text: string,
  api: SearchApi,
  search: AskedSearch,
  longestText: number,
): readonly SearchResult[] | undefined {
  const json = tryParse(text);
  if (!isObject(json)) return undefined;
  const list = at(json, api.results);
  // Engines leave the list out where they have found nothing.
  if (list === undefined || list === null) return 'error' in json ? undefined : [];
  if (!Array.isArray(list)) return undefined;
  const found = listOf(list).flatMap((one) => (isObject(one) ? resultOf(one, api, longestText) : []));
  const { allowed, blocked } = search;
  return found
    .filter(({ url }) => (allowed.length === 0 || isOf(url, allowed)) && !isOf(url, blocked))
    .slice(0, search.count);
}

function resultOf(one: JsonObject, api: SearchApi, longestText: number): SearchResult[] {
  const url = at(one, api.address);
  if (typeof url !== 'string' || url.length > longestAddress || !/^https?:\/\//i.test(url) || !URL.canParse(url))
    return [];
  const texts = api.text.flatMap((path) => textsIn(at(one, path)));
  const date = api.date === undefined ? undefined : at(one, api.date);
  return [
    {
      title: (textsIn(at(one, api.title))[0] ?? new URL(url).hostname).slice(0, longestTitle),
      ...{ url: new URL(url).href, snippet: texts.join('\n').slice(0, longestText) },
      date: typeof date === 'string' && date !== '' ? date.slice(0, longestDate) : null,
    },
  ];
}

/** A text or a list of texts, without line breaks at their ends. */
function textsIn(value: unknown): string[] {
  return (Array.isArray(value) ? value : [value]).flatMap((one: unknown) =>
    typeof one === 'string' && one.trim() !== '' ? [one.trim()] : [],
  );
}

function at(json: JsonObject, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), json);
}
