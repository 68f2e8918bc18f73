/** Servers of tools at public addresses that a request names itself, with the client's own secrets for them. Pure. */
import { GatewayError } from '../../core/contract/errors.ts';
import { isObject } from '../../core/json/json.ts';
import type { NamedServer } from '../common/wire/hosted-tools.ts';

export function invalid(message: string, field: string): GatewayError {
  return new GatewayError('invalid_request', message, { field, shouldRetry: false });
}

export interface NamedSecrets {
  readonly token?: unknown;
  readonly headers?: unknown;
}

const longestAddress = 2_048;
const mostHeaders = 16;
const headerName = /^[a-z0-9-]{1,100}$/;
const headerValue = /^[\t\x20-\x7e]{1,4096}$/;
/** Those of the connection and of the protocol are the gateway's own. */
const ownHeaders =
  /^(?:host|connection|content-.*|transfer-encoding|accept.*|mcp-.*|te|upgrade|expect|cookie|proxy-.*|keep-alive|trailer)$/;

/** undefined: the address is none of the web. Throws invalid_request. `index`: its place in the request, of which its tools are named. */
export function namedAt(
  { url, token, headers }: NamedSecrets & { readonly url: unknown },
  field: { readonly url: string; readonly token: string; readonly headers: string },
  index: number,
): NamedServer | undefined {
  if (typeof url !== 'string' || !/^https?:\/\//i.test(url)) return undefined;
  if (url.length > longestAddress || !URL.canParse(url) || new URL(url).username !== '')
    throw invalid('The address of a server is one of the web, without a name and a password.', field.url);
  const given = headersIn(headers, field.headers);
  const authorization = token === undefined || token === null ? {} : { authorization: bearer(token, field.token) };
  return { name: `server${index}`, url, headers: { ...given, ...authorization } };
}

function bearer(token: unknown, field: string): string {
  if (typeof token === 'string' && headerValue.test(token)) return `Bearer ${token}`;
  throw invalid('The token of a server is a text.', field);
}

function headersIn(value: unknown, field: string): Record<string, string> {
  if (value === undefined || value === null) return {};
  const pairs = isObject(value) ? Object.entries(value).map(([name, text]) => [name.toLowerCase(), text] as const) : [];
  const isRight = ([name, text]: readonly [string, unknown]) =>
    headerName.test(name) && !ownHeaders.test(name) && typeof text === 'string' && headerValue.test(text);
  if (!isObject(value) || pairs.length > mostHeaders || !pairs.every(isRight))
    throw invalid(`Headers of a server are at most ${mostHeaders} texts, and none of the connection.`, field);
  return Object.fromEntries(pairs) as Record<string, string>;
}
