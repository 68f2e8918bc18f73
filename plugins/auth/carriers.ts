/** The headers and parameters that may carry a key. Pure. */
import type { ClientRequest } from '../../core/contract/message.ts';

export const carriers = ['bearer', 'x-api-key', 'x-goog-api-key', 'query'] as const;
export type Carrier = (typeof carriers)[number];

const bearerPattern = /^bearer[ \t]/i;

/** The distinct keys of a request; none is an error, and so are two. Empty values are ignored. */
export function presentedKeys(request: ClientRequest, allowed: readonly Carrier[]): string[] {
  let found: string[] | undefined;
  for (const carrier of allowed) {
    if (carrier !== 'query') found = withKey(found, headerValue(request, carrier));
    else if (request.query.size > 0) for (const value of request.query.getAll('key')) found = withKey(found, value);
  }
  return found ?? [];
}

/** The carriers among these that have a key in the request. */
export function carriersIn(request: ClientRequest, allowed: readonly Carrier[]): Carrier[] {
  return allowed.filter((carrier) => presentedKeys(request, [carrier]).length > 0);
}

function headerValue(request: ClientRequest, carrier: Exclude<Carrier, 'query'>): string | undefined {
  if (carrier !== 'bearer') return request.headers[carrier];
  const authorization = request.headers['authorization'];
  return authorization !== undefined && bearerPattern.test(authorization)
    ? authorization.slice('bearer '.length)
    : undefined;
}

function withKey(found: string[] | undefined, value: string | undefined): string[] | undefined {
  const key = value?.trim() ?? '';
  if (key === '') return found;
  // Nearly always the only one.
  if (found === undefined) return [key];
  if (!found.includes(key)) found.push(key);
  return found;
}
