/** Which servers of this gateway a request names, and which of their tools it wants. Pure. */
import { GatewayError } from '../../core/contract/errors.ts';
import { isObject, listOf, textOf } from '../../core/json/json.ts';
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
}

const scheme = 'gateway://';
const serverName = /^[a-z][a-z0-9-]{0,23}$/;
const longestLabel = 64;

export function invalid(message: string, field: string): GatewayError {
  return new GatewayError('invalid_request', message, { field, shouldRetry: false });
}

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
  server: { readonly url: unknown; readonly label: unknown; readonly secret: unknown },
  field: { readonly url: string; readonly label: string; readonly secret: string },
  host: string | undefined,
): Pick<Wanted, 'label' | 'path' | 'words' | 'field'> | undefined {
  const place = placeOf(server.url, host);
  if (place === undefined) return undefined;
  if (place.path === '')
    throw invalid(`Tools of this gateway are at ${scheme}NAME of a server or a bundle.`, field.url);
  const label = textOf(server.label);
  if (label === undefined || label.length > longestLabel)
    throw invalid(`The name of a server has 1 to ${longestLabel} characters.`, field.label);
  if (server.secret !== undefined && server.secret !== null)
    throw invalid('Tools of this gateway are called with the key of the request: leave this out.', field.secret);
  return { ...place, label, field: field.url };
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
export function wantedTools(tools: unknown, host: string | undefined, asks: 'always' | 'never'): Wanted[] {
  return listOf(tools).flatMap((tool, index): Wanted[] => {
    if (!isObject(tool) || tool['type'] !== 'mcp') return [];
    const field = `tools[${index}]`;
    const secret = tool['authorization'] === undefined || tool['authorization'] === null ? 'headers' : 'authorization';
    const found = wantedAt(
      { url: tool['server_url'], label: tool['server_label'], secret: tool[secret] },
      { url: `${field}.server_url`, label: `${field}.server_label`, secret: `${field}.${secret}` },
      host,
    );
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
