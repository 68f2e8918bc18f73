/** The targets that can make an order: those of the model with vendors that speak a protocol of its kind, in their order. */

import { GatewayError } from '../../../core/contract/errors.ts';
import type { Random } from '../../../core/contract/host-tools.ts';
import type { Secret } from '../../../core/contract/secret.ts';
import type { Attempt } from '../../common/domain/calls.ts';
import { type Model, type ModelTarget, protocolsOf } from '../../common/domain/models.ts';
import { mergeTraits } from '../../common/domain/traits.ts';
import type { Provider, Providers, Target } from '../../common/domain/upstreams.ts';
import type { Bounds, MediaAdapter, MediaKind, Order, VendorRequest } from '../../common/media/adapters.ts';
import { unsupported } from '../../common/media/refuse.ts';
import { isToolPriced } from '../../common/wire/hosted-tools.ts';
import type { Adapters } from '../contract.ts';
import { callsFor } from '../engine/calls.ts';

export interface Candidate {
  readonly adapter: MediaAdapter;
  readonly provider: Provider;
  readonly target: ModelTarget;
}

/** A key, and the network for calls with it. */
export type TakenKey = Pick<Target, 'key' | 'credential' | 'network'>;

/** In the configured order. */
export function candidatesFor(model: Model, kind: MediaKind, providers: Providers, adapters: Adapters): Candidate[] {
  return model.targets.flatMap((target) => {
    const provider = providers.find(target.provider);
    const protocol = protocolsOf(target, provider).find((name) => adapters.get(name)?.kind === kind);
    return provider === undefined || protocol === undefined
      ? []
      : [{ adapter: adapters.get(protocol)!, provider, target }];
  });
}

/** With weights, one of these is drawn by its share to go first. */
export function weightedOrder(candidates: readonly Candidate[], random: Random): Candidate[] {
  const sum = candidates.reduce((total, { target }) => total + target.weight, 0);
  if (sum === 0) return [...candidates];
  let left = random.fraction() * sum;
  const drawn = candidates.find(({ target }) => {
    left -= target.weight;
    return left < 0;
  });
  const first = drawn ?? candidates[0]!;
  return [first, ...candidates.filter((candidate) => candidate !== first)];
}

export function targetAt(
  { provider, target, adapter }: Candidate,
  model: Model,
  { key, credential, network }: TakenKey,
): Target {
  const { name: protocol } = adapter;
  const upstream = provider.protocolTraits?.[protocol] ?? provider.traits;
  return {
    provider: provider.name,
    model: target.model,
    protocol,
    baseUrl: provider.speaks[protocol]!,
    key,
    credential,
    upstream: { ...upstream, auth: upstream.auth ?? adapter.auth },
    headers: target.headers,
    network,
    traits: mergeTraits(mergeTraits(provider.dialect?.[protocol], model.traits), target.traits),
  };
}

/** The target and key of an attempt; undefined: no longer configured. */
export function targetOf(
  { provider: name, protocol, credential, model: upstreamModel }: Attempt,
  model: Model | undefined,
  providers: Providers,
  adapters: Adapters,
): { readonly target: Target; readonly adapter: MediaAdapter } | undefined {
  const provider = providers.find(name);
  const adapter = adapters.get(protocol);
  const found = providers.findKey(name, credential);
  if (provider === undefined || adapter === undefined || found === undefined || !(protocol in provider.speaks))
    return undefined;
  const listed = model?.targets.find((each) => each.provider === name && each.model === upstreamModel);
  const target = listed ?? { provider: name, model: upstreamModel, weight: 0 };
  const entry = model ?? ({ targets: [] } as Pick<Model, 'targets'> as Model);
  return { adapter, target: targetAt({ provider, target, adapter }, entry, { ...found, credential }) };
}

/** The most that the order can cost at any of the targets. */
export function boundsOf(candidates: readonly Candidate[], order: Order): Omit<Bounds, 'media' | 'writes'> {
  const bounds = candidates.map(({ adapter }) => adapter.bounds(order));
  const most = (name: 'inputTokens' | 'outputTokens' | 'images' | 'seconds') =>
    bounds.reduce((highest, bound) => Math.max(highest, bound[name]), 0);
  return {
    inputTokens: most('inputTokens'),
    outputTokens: most('outputTokens'),
    images: most('images'),
    seconds: most('seconds'),
  };
}

/** Throws for an order of which a language model would write the result, where its tokens have no price. */
export function requirePrices(candidates: readonly Candidate[], { prices }: Model, order: Order, at: number): void {
  const field = candidates.map(({ adapter }) => adapter.bounds(order).writes).find((name) => name !== undefined);
  if (field === undefined || prices === undefined || isToolPriced(prices, at, 'output')) return;
  const message = `The field "${field}" asks for a text, and text has no price for this model. Choose another format.`;
  throw new GatewayError('invalid_request', message, { field, code: 'tool_not_priced', shouldRetry: false });
}

/**
 * Throws the first target's error if no target can make this order. Sends nothing. Returns what the first target that
 * can leaves out and makes otherwise.
 */
export function checkOrder(
  all: readonly Candidate[],
  model: Model,
  order: Order,
): Pick<VendorRequest, 'dropped' | 'clamped'> {
  const candidates = order.previews === undefined ? all : all.filter(({ adapter }) => adapter.streams !== undefined);
  if (candidates.length < all.length && candidates.length === 0)
    throw unsupported('The model does not stream its images: leave "stream" out.', 'stream');
  let reason: unknown = new GatewayError('unsupported', `The model \`${model.id}\` cannot be called at the moment.`, {
    field: 'model',
    code: 'protocol_unsupported',
  });
  for (const [index, candidate] of candidates.entries()) {
    try {
      const [call] = callsFor(candidate.adapter, order, targetAt(candidate, model, noKey));
      return call?.wanted ?? {};
    } catch (error) {
      if (index === 0) reason = error;
    }
  }
  throw reason;
}

/** Encoding a request needs no key: the key goes into a header. */
const noKey: TakenKey = { key: { reveal: () => '' } as Secret, credential: 'none' };
