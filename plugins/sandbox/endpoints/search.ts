/** A search engine: pages that are made up from the words of the query, of four sites that exist nowhere. Pure. */
import { badRequest } from '../fault.ts';
import { isObject, type JsonObject, listOf, textOf, wholeOf } from '../json.ts';
import { parse } from '../request-body.ts';
import { parseDirectives } from '../script/directives.ts';
import type { Service } from './service.ts';

const sites = ['news.example.com', 'wiki.example.org', 'shop.example.net', 'forum.example.com'] as const;
const mostResults = 20;

export const sandboxSearch: Service = {
  errors: 'envelope',
  decode({ body }) {
    const json = parse(body);
    const asked = textOf(json['query']);
    if (asked === undefined) throw badRequest("Missing required parameter: 'query'.", 'query');
    const { text: query, directives } = parseDirectives(asked);
    const count = json['max_results'] === undefined ? 5 : wholeOf(json['max_results'], 1);
    if (count === undefined || count > mostResults)
      throw badRequest(`max_results must be a whole number from 1 to ${mostResults}.`, 'max_results');
    const allowed = hostsIn(json, 'include_domains');
    const blocked = hostsIn(json, 'exclude_domains') ?? [];
    const hosts = sites.filter((site) => (allowed === undefined || isOf(site, allowed)) && !isOf(site, blocked));
    const results = directives.empty ? [] : pages(query, hosts, count);
    const answer = JSON.stringify({ query, results });
    return { model: 'search', directives, usage: { search: 1 }, type: 'application/json', body: answer };
  },
};

function pages(query: string, hosts: readonly string[], count: number): object[] {
  const words = query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? ['nothing'];
  const path = words.slice(0, 6).map(encodeURIComponent).join('-');
  return hosts.slice(0, count).map((host, index) => ({
    title: `${query} at ${host}`,
    url: `https://${host}/${path}`,
    content: `Page ${index + 1} about ${query}, which the sandbox has made up.`,
    published_date: `2026-01-0${index + 1}`,
  }));
}

function hostsIn(json: JsonObject, name: string): readonly string[] | undefined {
  const value = json[name];
  if (value === undefined) return undefined;
  const hosts = listOf(value).filter((one) => typeof one === 'string');
  if (isObject(value) || hosts.length === 0) throw badRequest(`${name} must be a list of domains.`, name);
  return hosts as string[];
}

const isOf = (site: string, domains: readonly string[]): boolean =>
  domains.some((one) => site === one || site.endsWith(`.${one}`));
