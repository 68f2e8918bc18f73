/** Which servers of this gateway a request names, and which of their tools it wants. Pure. */
import { isObject, listOf, textOf } from '../../core/json/json.ts';
import type { NamedServer } from '../common/wire/hosted-tools.ts';
import { invalid, type NamedSecrets, namedAt } from './elsewhere.ts';
import type { WantedFiles } from './files/nouns.ts';
import type { WantedSearch } from './search/nouns.ts';

/** A server of the gateway as a request names it. */
export interface Wanted {
  /** The client's name for it. */
  readonly label: string;
  /** The gateway's own address that lists its tools. */
  readonly path: string;
  /** A server or a bundle; absent: all that the address has. */
  readonly words?: string;
  readonly field: string;
  readonly allows: (tool: string) => boolean;
  /** Whether a call of the tool needs the client's approval. */
  readonly asks: (tool: string) => boolean;
  /** It is the gateway's search of the web, and no server. */
  readonly search?: WantedSearch;
  /** It is the gateway's search of files, and no server. */
  readonly files?: WantedFiles;
  /** It is a server elsewhere. */
  readonly named?: NamedServer;
}

/** Where a request has come in. */
export interface Here {
  /** What clients call the gateway. */
  readonly host: string | undefined;
  /** Servers at other addresses may be asked. */
  readonly anyServer: boolean;
}

const scheme = 'gateway://';
const serverName = /^[a-z][a-z0-9-]{0,23}$/;
const longestLabel = 64;

export { invalid };

/** `gateway://NAME`, or the public address `/mcp` of this gateway; undefined: a server elsewhere. `host`: what clients call the gateway. */
function placeOf(url: unknown, host: string | undefined): Pick<Wanted, 'path' | 'words'> | undefined {
  if (typeof url !== 'string') return undefined;
  if (url.startsWith(scheme)) {
    const words = url.slice(scheme.length);
    return serverName.test(words) ? { path: '/mcp', words } : { path: '' };
  }
  if (host === undefined || !URL.canParse(url)) return undefined;
  const { pathname, protocol, host: named } = new URL(url);
  const isHere = (protocol === 'https:' || protocol === 'http:') && named === host.toLowerCase();
  return isHere && /^\/mcp(?:\/[a-z][a-z0-9-]{0,23})?$/.test(pathname) ? { path: pathname } : undefined;
}

/** undefined: another server's. Throws invalid_request. */
export function wantedAt(
  server: { readonly url: unknown; readonly label: unknown } & NamedSecrets,
  field: { readonly url: string; readonly label: string; readonly token: string; readonly headers: string },
  { host, anyServer }: Here,
  index: number,
): Pick<Wanted, 'label' | 'path' | 'words' | 'field' | 'named'> | undefined {
  const place = placeOf(server.url, host);
  const named = place === undefined && anyServer ? namedAt(server, field, index) : undefined;
  if (named !== undefined) return { path: '/mcp', named, label: labelOf(server.label, field.label), field: field.url };
  if (place === undefined) return undefined;
  if (place.path === '')
    throw invalid(`Tools of this gateway are at ${scheme}NAME of a server or a bundle.`, field.url);
  const label = labelOf(server.label, field.label);
  const secret = (['token', 'headers'] as const).find((name) => server[name] !== undefined && server[name] !== null);
  if (secret !== undefined)
    throw invalid('Tools of this gateway are called with the key of the request: leave this out.', field[secret]);
  return { ...place, label, field: field.url };
}

function labelOf(value: unknown, field: string): string {
  const label = textOf(value);
  if (label !== undefined && label.length <= longestLabel) return label;
  throw invalid(`The name of a server has 1 to ${longestLabel} characters.`, field);
}

/** A tool is named as clients see it, or without its server. */
export function namesTool(names: ReadonlySet<string>, tool: string): boolean {
  return names.has(tool) || names.has(shortName(tool));
}

const shortName = (tool: string): string => tool.slice(tool.indexOf('__') + 2);

/** `["a"]` or `{tool_names: ["a"]}`; undefined: not given. */
export function namesIn(value: unknown, field: string): ReadonlySet<string> | undefined {
  if (value === undefined || value === null) return undefined;
  const names = isObject(value) ? (value['tool_names'] ?? undefined) : value;
  if (names === undefined) return undefined;
  if (!Array.isArray(names) || !names.every((name) => typeof name === 'string'))
    throw invalid('Names of tools are a list of texts.', field);
  return new Set(listOf(names) as string[]);
}

/** Entries of the form of responses: `{type: "mcp", server_label, server_url, allowed_tools, require_approval}`. `asks`: where nothing is said. */
export function wantedTools(tools: unknown, here: Here, asks: 'always' | 'never'): Wanted[] {
  return listOf(tools).flatMap((tool, index): Wanted[] => {
    if (!isObject(tool) || tool['type'] !== 'mcp') return [];
    const field = `tools[${index}]`;
    const { server_url: url, server_label: label, authorization: token, headers } = tool;
    const of = { url: `${field}.server_url`, label: `${field}.server_label` };
    const secrets = { token: `${field}.authorization`, headers: `${field}.headers` };
    const found = wantedAt({ url, label, token, headers }, { ...of, ...secrets }, here, index);
    if (found === undefined) return [];
    const allowed = namesIn(tool['allowed_tools'], `${field}.allowed_tools`);
    return [
      {
        ...found,
        allows: (name) => allowed === undefined || namesTool(allowed, name),
        asks: approvalOf(tool['require_approval'] ?? asks, `${field}.require_approval`),
      },
    ];
  });
}

/** `always`, `never`, or both with names of tools; what neither names needs approval. */
function approvalOf(value: unknown, field: string): Wanted['asks'] {
  if (value === 'always' || value === 'never') return () => value === 'always';
  if (!isObject(value)) throw invalid('Approval is "always", "never" or an object with names of tools.', field);
  const never = namesIn(value['never'], `${field}.never`) ?? new Set<string>();
  return (name) => !namesTool(never, name);
}
