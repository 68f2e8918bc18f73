/** Base URLs of vendors: which ones are accepted, and how one inside this process is resolved. */
import type { LocalUpstreams } from '../../core/vocabulary.ts';

const localPattern = /^([a-z][a-z0-9-]{0,62}):((?:\/(?!\/)[^?#\s\\]*)?)$/;

/** `sandbox:/v1` → its parts; undefined when the text is not of that form. */
export function parseLocal(text: string): { name: string; path: string } | undefined {
  const match = localPattern.exec(text);
  if (match === null || match[1] === 'http' || match[1] === 'https') return undefined;
  return { name: match[1]!, path: match[2]! };
}

/** Why a text cannot be a base URL, or undefined when it can. */
export function baseUrlProblem(text: string): string | undefined {
  if (parseLocal(text) !== undefined) return undefined;
  if (!/^https?:\/\//.test(text) || !URL.canParse(text))
    return 'must be an http(s) URL, or NAME:/path for a vendor inside this process';
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') return 'must not contain credentials; write them under keys';
  if (url.search !== '' || url.hash !== '' || /[?#]/.test(text)) return 'must not have a query or a fragment';
  return undefined;
}

/**
 * The map that other plugins read. A vendor inside this process gets its port when it starts, so its address is looked up
 * each time it is read.
 */
export function resolvingMap(
  speaks: Readonly<Record<string, string>>,
  local: () => LocalUpstreams | undefined,
): Readonly<Record<string, string>> {
  const resolved: Record<string, string> = Object.create(null);
  for (const [protocol, baseUrl] of Object.entries(speaks)) {
    const address = parseLocal(baseUrl);
    if (address === undefined) resolved[protocol] = baseUrl;
    else Object.defineProperty(resolved, protocol, { enumerable: true, get: () => resolve(address, local()) });
  }
  return resolved;
}

function resolve(address: { name: string; path: string }, local: LocalUpstreams | undefined): string {
  const origin = local?.origin(address.name);
  if (origin === undefined) throw new Error(`no vendor "${address.name}" runs inside this process`);
  return origin + address.path;
}
