/** How a request asks for searches of the web, in each protocol: what is honoured, and what is refused by its field. Pure. */
import { GatewayError } from '../../../core/contract/errors.ts';
import { table } from '../../../core/contract/table.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../core/json/json.ts';
import { invalid } from '../wanted.ts';
import type { WantedSearch } from './nouns.ts';

/** The member of a request that asks for searches. */
export interface SearchMember {
  readonly settings: JsonObject;
  readonly field: string;
}

/** Results of a search by how much context is asked for. */
const resultsBySize = new Map([
  ['low', 3],
  ['medium', 6],
  ['high', 12],
]);

const known: Readonly<Record<string, ReadonlySet<string>>> = table({
  responses: new Set([
    ...['type', 'filters', 'user_location', 'search_context_size', 'external_web_access'],
    // A hint of how much may come back, and kinds of results of which texts are given.
    ...['return_token_budget', 'search_content_types'],
  ]),
  chat: new Set(['filters', 'user_location', 'search_context_size']),
  messages: new Set([
    ...['type', 'name', 'allowed_domains', 'blocked_domains', 'max_uses', 'user_location'],
    ...['cache_control', 'allowed_callers', 'defer_loading'],
  ]),
  'generate-content': new Set([
    'excludeDomains',
    'exclude_domains',
    'dynamicRetrievalConfig',
    'dynamic_retrieval_config',
  ]),
});

/** The first tool of a request of which the type or the member says that it searches; no other one beside it. */
export function searchTool(tools: unknown, isSearch: RegExp): SearchMember | undefined {
  const found = listOf(tools).flatMap((tool, index): SearchMember[] =>
    isObject(tool) && isSearch.test(String(tool['type'])) ? [{ settings: tool, field: `tools[${index}]` }] : [],
  );
  return onlyOne(found);
}

export const responsesSearch = /^web_search(?:_preview)?(?:_\d{4}_\d\d_\d\d)?$/;
export const messagesSearch = /^web_search_\d{8}$/;
export const geminiSearch = ['googleSearch', 'google_search', 'googleSearchRetrieval', 'google_search_retrieval'];

export function geminiSearchTool(tools: unknown): SearchMember | undefined {
  const found = listOf(tools).flatMap((tool, index): SearchMember[] =>
    geminiSearch.flatMap((name) => {
      const settings = isObject(tool) ? objectOf(tool[name]) : undefined;
      return settings === undefined ? [] : [{ settings, field: `tools[${index}].${name}` }];
    }),
  );
  return onlyOne(found);
}

function onlyOne(found: readonly SearchMember[]): SearchMember | undefined {
  if (found.length > 1) throw invalid('A request has one tool that searches the web.', found[1]!.field);
  return found[0];
}

/** Throws invalid_request or unsupported for what no search of the gateway can honour. */
export function readSearch(operation: string, { settings, field }: SearchMember): WantedSearch {
  const unknown = Object.keys(settings).find((name) => settings[name] !== null && !known[operation]!.has(name));
  if (unknown !== undefined) throw unsupported(`${field}.${unknown}`);
  const callers = settings['allowed_callers'] ?? null;
  if (callers !== null && !listOf(callers).includes('direct')) throw unsupported(`${field}.allowed_callers`);
  const kinds = settings['search_content_types'] ?? null;
  if (kinds !== null && !listOf(kinds).includes('text')) throw unsupported(`${field}.search_content_types`);
  const filters = objectOf(settings['filters']);
  const within = filters === undefined ? field : `${field}.filters`;
  const { country, place, zone } = placeIn(settings['user_location'], `${field}.user_location`);
  return {
    ...{ field, country, place, zone, domains: domainsIn(filters ?? settings, within) },
    results: sizeIn(settings['search_context_size'], `${field}.search_context_size`),
    most: mostIn(settings['max_uses'], `${field}.max_uses`),
  };
}

function unsupported(field: string): GatewayError {
  const message = `The gateway searches the web for this model, and cannot do what "${field}" asks for. Leave it out.`;
  return new GatewayError('unsupported', message, { field, shouldRetry: false });
}

function domainsIn(settings: JsonObject, field: string): readonly string[] {
  const allowed = listIn(settings['allowed_domains'], `${field}.allowed_domains`);
  const excluded = settings['excludeDomains'] ?? settings['exclude_domains'];
  const blocked = listIn(settings['blocked_domains'] ?? excluded, `${field}.blocked_domains`);
  return [...allowed, ...blocked.map((one) => `-${one}`)];
}

const domain = /^(?:[\w-]+\.)+[a-z][\w-]*(?:\/[^\s"()]*)?$/i;
const mostDomains = 100;

function listIn(value: unknown, field: string): string[] {
  if (value === undefined || value === null) return [];
  const domains = listOf(value).map((one) => (typeof one === 'string' ? one : ''));
  if (!Array.isArray(value) || domains.length > mostDomains || !domains.every((one) => domain.test(one)))
    throw invalid(`Domains are a list of at most ${mostDomains}, each as example.com.`, field);
  return domains;
}

function placeIn(value: unknown, field: string): Pick<WantedSearch, 'country' | 'place' | 'zone'> {
  if (value === undefined || value === null) return { country: undefined, place: undefined, zone: undefined };
  if (!isObject(value)) throw invalid('A place is an object.', field);
  const place = objectOf(value['approximate']) ?? value;
  const wrong = ['city', 'region', 'country', 'timezone'].find((name) => !isShort(place[name]));
  if (wrong !== undefined) throw invalid('Names of a place are short texts.', `${field}.${wrong}`);
  const [city, region, country, zone] = ['city', 'region', 'country', 'timezone'].map((name) => textOf(place[name]));
  const names = [city, region, country].filter((name) => name !== undefined);
  return {
    country: country !== undefined && /^[a-z]{2}$/i.test(country) ? country : undefined,
    place: names.length === 0 ? undefined : names.join(', '),
    zone,
  };
}

const isShort = (value: unknown) =>
  value === undefined || value === null || (typeof value === 'string' && value.length <= 60);

function sizeIn(value: unknown, field: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  const results = resultsBySize.get(String(value));
  if (results === undefined) throw invalid('This is "low", "medium" or "high".', field);
  return results;
}

function mostIn(value: unknown, field: string): number {
  if (value === undefined || value === null) return Number.POSITIVE_INFINITY;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return value;
  throw invalid('This is a whole number from 1 on.', field);
}
