/** Names where a request has U+0000 in a text, which no database keeps; searched for once such a text was refused. Pure. */
import { GatewayError } from '../contract/errors.ts';
import { asBuffer, isObject, tryParseBytes } from './json.ts';

/** Values that are looked at, and bytes of a body that is read. */
const mostValues = 100_000;
const mostBytes = 8 * 2 ** 20;

interface Searched {
  readonly query: URLSearchParams;
  readonly body: Uint8Array;
}

/** The error with the field that it is about, where that can be found. */
export function withNulField(error: GatewayError, { query, body }: Searched): GatewayError {
  if (error.code !== 'invalid_text' || error.field !== undefined) return error;
  const field = inQuery(query) ?? inBody(body);
  if (field === undefined) return error;
  const message = `The field "${field}" has the character U+0000, which cannot be stored.`;
  return new GatewayError(error.kind, message, { field, code: error.code, cause: error });
}

function inQuery(query: URLSearchParams): string | undefined {
  for (const [name, value] of query) if (value.includes('\0')) return name;
  return undefined;
}

function inBody(body: Uint8Array): string | undefined {
  if (body.length > mostBytes || !asBuffer(body).includes('\\u0000')) return undefined;
  const left: [path: string, value: unknown][] = [['', tryParseBytes(body)]];
  for (let seen = 0; left.length > 0 && seen < mostValues; seen += 1) {
    const [path, value] = left.pop()!;
    if (typeof value === 'string' && value.includes('\0')) return path;
    const inner = within(path, value);
    const named = inner.find(([name]) => name.includes('\0'));
    if (named !== undefined) return path === '' ? undefined : path;
    left.push(...inner.reverse());
  }
  return undefined;
}

function within(path: string, value: unknown): [path: string, value: unknown][] {
  if (Array.isArray(value)) return value.map((item, index) => [`${path}[${index}]`, item]);
  if (!isObject(value)) return [];
  return Object.entries(value).map(([name, item]) => [path === '' ? name : `${path}.${name}`, item]);
}
