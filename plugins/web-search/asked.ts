/** A search as a client asks for it: the query, how many results, from which domains and for which place. Pure. */
import { GatewayError } from '../../core/contract/errors.ts';
import { type JsonObject, textOf } from '../../core/json/json.ts';

export interface AskedSearch {
  readonly query: string;
  readonly count: number;
  /** Results from these domains alone; empty: from all. */
  readonly allowed: readonly string[];
  readonly blocked: readonly string[];
  /** Two letters, upper case. */
  readonly country: string | undefined;
  /** Words of a place, such as "Oslo, Norway". */
  readonly place: string | undefined;
}

const longestQuery = 400;
const mostResults = 50;
const mostDomains = 100;
const longestPlace = 200;
/** A host, or a host with the beginning of a path. */
const domain =
  /^(?=.{1,253}(?:\/|$))(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z][a-z0-9-]{1,62}(?:\/[^\s"()]{0,200})?$/;
const members = new Set(['query', 'max_results', 'search_domain_filter', 'country', 'place']);

function refused(message: string, field: string): GatewayError {
  return new GatewayError('invalid_request', message, { field, shouldRetry: false });
}

/** Throws invalid_request. `usual`: the number of results where none is asked for. */
export function readSearch(json: JsonObject, usual: number): AskedSearch {
  const unknown = Object.keys(json).find((name) => !members.has(name));
  if (unknown !== undefined) throw refused(`A search has no "${unknown.slice(0, 64)}".`, unknown.slice(0, 64));
  const query = textOf(json['query'])?.trim() ?? '';
  if (query === '' || query.length > longestQuery)
    throw refused(`The field "query" must be a text of 1 to ${longestQuery} characters.`, 'query');
  const { country = null, place = null } = json;
  if (country !== null && (typeof country !== 'string' || !/^[A-Za-z]{2}$/.test(country)))
    throw refused('The field "country" must be a code of two letters, such as NO.', 'country');
  if (place !== null && (typeof place !== 'string' || place.length > longestPlace))
    throw refused(`The field "place" must be a text of at most ${longestPlace} characters.`, 'place');
  const domains = domainsIn(json['search_domain_filter']);
  return {
    query,
    count: countIn(json['max_results'], usual),
    allowed: domains.filter((one) => !one.startsWith('-')),
    blocked: domains.flatMap((one) => (one.startsWith('-') ? [one.slice(1)] : [])),
    country: country?.toUpperCase(),
    place: place?.trim() || undefined,
  };
}

function countIn(value: unknown, usual: number): number {
  if (value === undefined || value === null) return usual;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 && value <= mostResults) return value;
  throw refused(`The field "max_results" must be a whole number from 1 to ${mostResults}.`, 'max_results');
}

/** `example.com` allows, `-example.com` leaves out. */
function domainsIn(value: unknown): readonly string[] {
  if (value === undefined || value === null) return [];
  const field = 'search_domain_filter';
  if (!Array.isArray(value) || value.length > mostDomains)
    throw refused(`The field "${field}" must be a list of at most ${mostDomains} domains.`, field);
  const domains = value.map((one: unknown) => (typeof one === 'string' ? one.toLowerCase() : ''));
  const wrong = domains.findIndex((one) => !domain.test(one.replace(/^-/, '')));
  if (wrong >= 0)
    throw refused('A domain is written as example.com, or -example.com to leave it out.', `${field}[${wrong}]`);
  return domains;
}

/** Whether an address is of one of these domains, or of one below them. */
export function isOf(address: string, domains: readonly string[]): boolean {
  const { hostname, pathname } = new URL(address);
  return domains.some((one) => {
    const [host = '', ...path] = one.split('/');
    if (hostname !== host && !hostname.endsWith(`.${host}`)) return false;
    const begin = `/${path.join('/')}`.replace(/\/+$/, '');
    return begin === '' || pathname === begin || pathname.startsWith(`${begin}/`);
  });
}
