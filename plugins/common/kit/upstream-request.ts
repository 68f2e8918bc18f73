/** The upstream request: address, headers by allow-list, body, and the target's time-outs. Pure. */

import type { UpstreamRequest } from '../../../core/contract/contract.ts';
import type { ClientRequest, Headers } from '../../../core/contract/message.ts';
import type { Target, UpstreamTraits } from '../domain/upstreams.ts';
import { withKey } from '../wire/credentials.ts';

/** How an upstream's protocol travels: its key, and the headers that go with each request. */
export interface WireHeaders {
  /** The header of the upstream's key unless the provider configures another; `{key}` is replaced. */
  readonly auth: { readonly header: string; readonly value: string };
  /** Client headers that are forwarded, beside content-type and accept. */
  readonly passedHeaders: readonly string[];
  /** Headers that the upstream needs although the client may not have sent them. */
  readonly defaultHeaders: Readonly<Record<string, string>>;
  /** Headers that are the same for each request, whatever the client sent. */
  readonly fixedHeaders?: Readonly<Record<string, string>>;
}

/**
 * Only headers of the protocol and of the provider's configuration are sent; no other header of the client is
 * forwarded.
 */
export function buildUpstreamRequest(
  protocol: WireHeaders,
  request: Pick<ClientRequest, 'headers'>,
  prepared: { readonly path: string } & Pick<UpstreamRequest, 'body'>,
  target: Target,
  stream: boolean,
): UpstreamRequest {
  const { upstream } = target;
  const auth = upstream.auth ?? protocol.auth;
  const base = target.baseUrl.includes(modelMark) ? baseUrlOf(target) : target.baseUrl;
  const built: UpstreamRequest = {
    url: base.includes('?') ? addressBelow(base, prepared.path) : base + prepared.path,
    method: 'POST',
    headers: headersFor(protocol, request.headers, target, stream),
    body: prepared.body,
    credential: target.credential,
    stream,
    connectTimeoutMs: upstream.connectTimeoutMs,
    firstByteTimeoutMs: upstream.firstByteTimeoutMs,
    idleTimeoutMs: upstream.idleTimeoutMs,
    drain: upstream.drain,
    network: target.network,
  };
  if (!('header' in auth)) addCredential(built, auth, target);
  return built;
}

/** Any other credential than the key in a header. */
function addCredential(
  request: UpstreamRequest,
  auth: Exclude<Auth, { readonly header: string }>,
  target: Target,
): void {
  if ('query' in auth) request.url = withKey(request.url, auth.query, target.key);
  else {
    request.authorize = (final) => auth.authorize(target, final);
    request.refused = (final) => auth.refused?.(target, final) === true;
  }
}

/** With the model in its place, where the base URL has one: some vendors give each model an address of its own. */
export function baseUrlOf({ baseUrl, model }: Pick<Target, 'baseUrl' | 'model'>): string {
  return baseUrl.includes(modelMark) ? baseUrl.replace(modelMark, () => encodeURIComponent(model)) : baseUrl;
}

/** The query of a base URL is kept on every address below it. */
export function addressBelow(baseUrl: string, path: string): string {
  const at = baseUrl.indexOf('?');
  if (at === -1) return baseUrl + path;
  const query = baseUrl.slice(at + 1);
  return `${baseUrl.slice(0, at)}${path}${path.includes('?') ? '&' : '?'}${query}`;
}

/** Where the model stands in a base URL. */
export const modelMark = '{model}';

type Auth = NonNullable<Target['upstream']['auth']>;

function headersFor(protocol: WireHeaders, client: Readonly<Headers>, target: Target, stream: boolean): Headers {
  const headers: Headers = { ...protocol.defaultHeaders, 'content-type': client['content-type'] ?? 'application/json' };
  headers['accept'] = client['accept'] ?? (stream ? 'text/event-stream' : 'application/json');
  for (const name of protocol.passedHeaders) {
    const value = client[name];
    if (value !== undefined && value !== '') headers[name] = value;
  }
  if (protocol.fixedHeaders !== undefined) Object.assign(headers, protocol.fixedHeaders);
  const known = prepared.get(target.upstream);
  const { configured, auth } = known?.protocol === protocol ? known : fixedHeaders(target.upstream, protocol);
  for (let index = 0; index < configured.length; index += 2) headers[configured[index]!] = configured[index + 1]!;
  if (target.headers !== undefined) Object.assign(headers, target.headers);
  if (auth !== undefined)
    headers[auth.name] = auth.after === undefined ? auth.before : auth.before + target.key.reveal() + auth.after;
  // An encoded stream could not be read as it passes.
  headers['accept-encoding'] = 'identity';
  return headers;
}

const keyMark = '{key}';

/** Headers that all requests to an upstream share. */
interface FixedHeaders {
  readonly protocol: WireHeaders;
  /** Names in lower case and values in turn. */
  readonly configured: readonly string[];
  /** The text around the key in its header; without `after` it is not in the value. undefined: the key is in no header. */
  readonly auth: { readonly name: string; readonly before: string; readonly after: string | undefined } | undefined;
}

/** Headers of the protocol in which the upstream was used last, which is nearly always the only one. */
const prepared = new WeakMap<UpstreamTraits, FixedHeaders>();

function fixedHeaders(upstream: UpstreamTraits, protocol: WireHeaders): FixedHeaders {
  const fixed = {
    protocol,
    configured: Object.entries(upstream.headers).flatMap(([name, text]) => [name.toLowerCase(), text]),
    auth: keyHeader(upstream.auth ?? protocol.auth),
  };
  prepared.set(upstream, fixed);
  return fixed;
}

function keyHeader(auth: Auth): FixedHeaders['auth'] {
  if (!('header' in auth)) return undefined;
  const { header, value } = auth;
  const at = value.indexOf(keyMark);
  const after = at === -1 ? undefined : value.slice(at + keyMark.length);
  return { name: header.toLowerCase(), before: at === -1 ? value : value.slice(0, at), after };
}
