/** Base URLs of vendors: validation, and resolution of vendors inside this process. */
import type { LocalUpstreams } from '../common/domain/upstreams.ts';

const localPattern = /^([a-z][a-z0-9-]{0,62}):((?:\/(?!\/)[^?#\s\\]*)?)$/;

/** `sandbox:/v1` → its parts; undefined for text of another form. */
export function parseLocal(text: string): { name: string; path: string } | undefined {
  const match = localPattern.exec(text);
  if (match === null || match[1] === 'http' || match[1] === 'https') return undefined;
  return { name: match[1]!, path: match[2]! };
}

const credentialNames = /^(?:key|api[-_]?key|(?:access[-_]?)?token|secret|password|sig|signature)$/i;

/** Why a text is no valid base URL; undefined: it is. */
export function baseUrlProblem(text: string): string | undefined {
  if (parseLocal(text) !== undefined) return undefined;
  if (!/^https?:\/\//.test(text) || !URL.canParse(text))
    return 'must be an http(s) URL, or NAME:/path for a vendor inside this process';
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') return 'must not contain credentials; write them under keys';
  if ([...url.searchParams.keys()].some((name) => credentialNames.test(name)))
    return 'must not contain credentials; write them under keys';
  if (url.hash !== '' || text.includes('#')) return 'must not have a fragment';
  return undefined;
}

/**
 * The map for other plugins. A vendor inside this process gets its port when it starts, so its address is resolved on
 * each read.
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
