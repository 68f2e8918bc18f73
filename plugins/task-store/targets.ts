/** Where an order can be made: the model's targets whose vendors speak a protocol of its kind, in their order. */
import type { Random } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { mergeTraits } from '../../core/traits.ts';
import type { Attempt, Model, ModelTarget, Provider, Providers, Secret, Target } from '../../core/vocabulary.ts';
import { unsupported } from './adapters/refuse.ts';
import { callsFor } from './calls.ts';
import type { Adapter, Bounds, MediaKind, Order } from './contract.ts';

export interface Place {
  readonly adapter: Adapter;
  readonly provider: Provider;
  readonly target: ModelTarget;
}

export type Adapters = ReadonlyMap<string, Adapter>;

/** In the listed order. */
export function placesFor(model: Model, kind: MediaKind, providers: Providers, adapters: Adapters): Place[] {
  return model.targets.flatMap((target) => {
    const provider = providers.find(target.provider);
    const spoken = Object.keys(provider?.speaks ?? {}).find((name) => adapters.get(name)?.kind === kind);
    return provider === undefined || spoken === undefined ? [] : [{ adapter: adapters.get(spoken)!, provider, target }];
  });
}

/** Where targets carry weights, one of these is drawn by its share to go first. */
export function inTurn(places: readonly Place[], random: Random): Place[] {
  const sum = places.reduce((total, { target }) => total + target.weight, 0);
  if (sum === 0) return [...places];
  let left = random.fraction() * sum;
  const drawn = places.find(({ target }) => {
    left -= target.weight;
    return left < 0;
  });
  const first = drawn ?? places[0]!;
  return [first, ...places.filter((place) => place !== first)];
}

export function targetAt({ provider, target, adapter }: Place, model: Model, key: Secret, credential: string): Target {
  const { protocol } = adapter;
  const upstream = provider.protocolTraits?.[protocol] ?? provider.traits;
  return {
    provider: provider.name,
    model: target.model,
    protocol,
    baseUrl: provider.speaks[protocol]!.replace(/\/+$/, ''),
    key,
    credential,
    upstream: { ...upstream, auth: upstream.auth ?? adapter.auth },
    traits: mergeTraits(mergeTraits(provider.dialect?.[protocol], model.traits), target.traits),
  };
}

/** The place that an attempt went to, by the key that it was made with; undefined: it is no longer configured. */
export function targetOf(
  { provider: name, protocol, credential, model: upstreamModel }: Attempt,
  model: Model | undefined,
  providers: Providers,
  adapters: Adapters,
): { readonly target: Target; readonly adapter: Adapter } | undefined {
  const provider = providers.find(name);
  const adapter = adapters.get(protocol);
  const key = providers.keyNamed(name, credential)?.key;
  if (provider === undefined || adapter === undefined || key === undefined || !(protocol in provider.speaks))
    return undefined;
  const listed = model?.targets.find((each) => each.provider === name && each.model === upstreamModel);
  const target = listed ?? { provider: name, model: upstreamModel, weight: 0 };
  const entry = model ?? ({ targets: [] } as Pick<Model, 'targets'> as Model);
  return { adapter, target: targetAt({ provider, target, adapter }, entry, key, credential) };
}

/** The most that the order can cost at any of the places. */
export function boundsOf(places: readonly Place[], order: Order): Omit<Bounds, 'media'> {
  const bounds = places.map(({ adapter }) => adapter.bounds(order));
  const most = (name: 'inputTokens' | 'outputTokens' | 'images' | 'seconds') =>
    bounds.reduce((highest, bound) => Math.max(highest, bound[name]), 0);
  return {
    inputTokens: most('inputTokens'),
    outputTokens: most('outputTokens'),
    images: most('images'),
    seconds: most('seconds'),
  };
}

/**
 * Throws what the client is told when no place can make this: the first one's reason. Nothing is sent. Returns the
 * client's hints that the first place which can does not take.
 */
export function checkOrder(all: readonly Place[], model: Model, order: Order): readonly string[] {
  const places = order.previews === undefined ? all : all.filter(({ adapter }) => adapter.streams !== undefined);
  if (places.length < all.length && places.length === 0)
    throw unsupported('The model does not stream its images: leave "stream" out.', 'stream');
  let reason: unknown = new GatewayError('unsupported', `The model \`${model.id}\` cannot be called at the moment.`, {
    field: 'model',
    code: 'protocol_unsupported',
  });
  for (const [index, place] of places.entries()) {
    try {
      const [call] = callsFor(place.adapter, order, targetAt(place, model, wordless, 'none'));
      return call?.wanted.dropped ?? [];
    } catch (error) {
      if (index === 0) reason = error;
    }
  }
  throw reason;
}

/** Whoever words a request needs no key: it goes into a header. */
const wordless = { reveal: () => '' } as Secret;
