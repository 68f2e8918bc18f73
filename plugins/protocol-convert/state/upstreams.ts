/** Asks the upstream that keeps an answer, by the key it was given with. Nothing of it is billed. */
import { type Answer, type Clock, type Exchange, type Next, upstreamRequest } from '../../../core/contract.ts';
import { classify } from '../../../core/refusals.ts';
import type { Provider, Providers, Target } from '../../../core/vocabulary.ts';
import type { Protocol } from '../protocol.ts';
import { wordUpstreamRequest } from '../upstream-request.ts';
import { responseNotFound } from './lost.ts';
import type { RelayedResponse } from './record.ts';

/** Query parameters that are handed on. */
const passedQuery = [
  'include',
  'include[]',
  'include_obfuscation',
  'stream',
  'starting_after',
  'limit',
  'order',
  'after',
];

export interface UpstreamsOptions {
  /** Asked for when a request comes: providers may be set up later. */
  readonly providers: () => Providers | undefined;
  readonly protocol: Protocol;
  readonly clock: Clock;
}

export class Upstreams {
  readonly #options: UpstreamsOptions;

  constructor(options: UpstreamsOptions) {
    this.#options = options;
  }

  /**
   * Sends the client's method to the answer's own address there, `suffix` behind it. Throws not_found when the key it was
   * given with is gone, and an UpstreamRefusal when the upstream refuses.
   */
  async ask(exchange: Exchange, record: RelayedResponse, suffix: string, forward: Next): Promise<Answer> {
    const { protocol, clock } = this.#options;
    const target = this.#targetOf(record);
    if (target === undefined) throw responseNotFound(record.id);
    const { method, query } = exchange.request;
    const path = `/responses/${encodeURIComponent(record.id)}${suffix}${queryOf(query)}`;
    const stream = query.get('stream') === 'true';
    const prepared = { path, body: new Uint8Array(), dropped: [] };
    const worded = wordUpstreamRequest(protocol, exchange.request, prepared, target, stream);
    const { 'content-type': _none, ...headers } = worded.headers;
    exchange.set(upstreamRequest, { ...worded, method, headers, body: undefined });
    const answer = await forward();
    if (answer.status >= 300)
      throw classify(answer.status, answer.headers, await bytesOf(answer), clock.now(), target.key.reveal());
    return {
      status: answer.status,
      headers: { 'content-type': answer.headers['content-type'] ?? 'application/json' },
      body: answer.body,
    };
  }

  #targetOf({ provider: name, credential, protocol }: RelayedResponse): Target | undefined {
    const providers = this.#options.providers();
    const provider = providers?.find(name);
    const named = providers?.keyNamed(name, credential);
    if (provider === undefined || named === undefined || !(protocol in provider.speaks)) return undefined;
    return {
      provider: name,
      model: '',
      protocol,
      baseUrl: provider.speaks[protocol]!,
      key: named.key,
      credential,
      upstream: traitsOf(provider, protocol),
      traits: {},
    };
  }
}

function traitsOf(provider: Provider, protocol: string): Target['upstream'] {
  return provider.protocolTraits?.[protocol] ?? provider.traits;
}

function queryOf(query: URLSearchParams): string {
  const passed = new URLSearchParams();
  for (const name of passedQuery) for (const value of query.getAll(name)) passed.append(name, value);
  return passed.size === 0 ? '' : `?${passed}`;
}

/** The centre reads refusals whole. */
async function bytesOf({ body }: Answer): Promise<Uint8Array> {
  if (typeof body === 'string') return Buffer.from(body);
  if (body instanceof Uint8Array) return body;
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}
