/** Requests for a stored answer to the upstream that stores it, with the key that created it. Never billed. */

import { type Exchange, type Next, upstreamRequest } from '../../../core/contract/contract.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { mayServe, placementIn } from '../../common/domain/organizations/placement.ts';
import type { Provider, Providers, Target } from '../../common/domain/upstreams.ts';
import { classify } from '../../common/kit/upstream-errors.ts';
import { buildUpstreamRequest } from '../../common/kit/upstream-request.ts';
import type { Protocol } from '../../common/wire/protocols.ts';
import { responseNotFound } from './not-found.ts';
import type { RelayedResponse } from './record.ts';

/** Query parameters that are forwarded. */
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
  /** Called for each request: providers may be set up later. */
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
   * Sends the client's method to the answer's own address at the upstream, followed by `suffix`. Throws not_found when
   * the key that created it was removed, and an UpstreamRefusal when the upstream refuses.
   */
  async ask(exchange: Exchange, record: RelayedResponse, suffix: string, forward: Next): Promise<Answer> {
    const { protocol, clock } = this.#options;
    const placement = placementIn(exchange);
    const provider = this.#options.providers()?.find(record.provider);
    const isAllowed = placement === undefined || (provider !== undefined && mayServe(placement, provider));
    const target = isAllowed ? this.#targetOf(record) : undefined;
    if (target === undefined) throw responseNotFound(record.id);
    const { method, query } = exchange.request;
    const path = `/responses/${encodeURIComponent(record.id)}${suffix}${queryOf(query)}`;
    const stream = query.get('stream') === 'true';
    const prepared = { path, body: new Uint8Array(), dropped: [] };
    const request = buildUpstreamRequest(protocol, exchange.request, prepared, target, stream);
    const { 'content-type': _none, ...headers } = request.headers;
    exchange.set(upstreamRequest, { ...request, method, headers, body: undefined });
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
    const named = providers?.findKey(name, credential);
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
      network: named.network,
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

/** The core reads refusals completely. */
async function bytesOf({ body }: Answer): Promise<Uint8Array> {
  if (typeof body === 'string') return Buffer.from(body);
  if (body instanceof Uint8Array) return body;
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}
