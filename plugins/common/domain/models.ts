/** The model catalogue: entries, their targets, the ratios on their prices, and models that serve instead of others. */

import { defineContextKey, defineService, type Exchange } from '../../../core/contract/contract.ts';
import type { Ratio } from './money.ts';
import type { PriceBook } from './prices.ts';
import type { ModelLimits, Traits } from './traits.ts';
import type { Provider, TargetStrategy } from './upstreams.ts';

/** One way to serve a model. */
export interface ModelTarget {
  readonly provider: string;
  /** The name the provider knows the model by. */
  readonly model: string;
  /** Share of the first tries among the targets that have one; 0: no share, tried in the listed order. */
  readonly weight: number;
  /** The protocols in which the provider serves this model, the preferred one first; absent: all of the provider's. */
  readonly speaks?: readonly string[];
  /** Headers sent there with this model's requests, by lower-case name; over the provider's. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Traits of the model at this provider; over the model's own traits. */
  readonly traits?: Traits;
  /** The operator's price there; absent: the model's. */
  readonly cost?: PriceBook;
  /** Largest input there, in tokens; absent: the model's. */
  readonly contextTokens?: number;
}

type Spoken = Pick<ModelTarget, 'speaks'>;

/** The protocols that can be spoken with a target, in order of preference; none where its provider has no key. */
export function protocolsOf({ speaks }: Spoken, provider: Provider | undefined): readonly string[] {
  if (provider === undefined) return [];
  // A reload may have taken a protocol from the provider.
  return speaks?.filter((name) => name in provider.speaks) ?? Object.keys(provider.speaks);
}

export function speaksProtocol({ speaks }: Spoken, provider: Provider, protocol: string): boolean {
  return protocol in provider.speaks && (speaks === undefined || speaks.includes(protocol));
}

/** Kind of a model; endpoints accept models of one kind. */
export const modelKinds = [
  'chat',
  'image',
  'video',
  'embedding',
  'rerank',
  'decision',
  'speech',
  'transcription',
  'moderation',
  'realtime',
] as const;
export type ModelKind = (typeof modelKinds)[number];

/** A model of the catalogue, as it is configured. */
export interface Model {
  readonly id: string;
  readonly ownedBy: string;
  readonly created: number;
  readonly displayName: string;
  readonly kind: ModelKind;
  readonly targets: readonly ModelTarget[];
  /** Tokens; undefined: unknown. */
  readonly contextTokens: number | undefined;
  readonly maxOutputTokens: number | undefined;
  /** Absent: nothing is known. */
  readonly limits?: ModelLimits;
  /** undefined: not priced, so not sold; nor is it at a time at which no version holds. */
  readonly prices: PriceBook | undefined;
  /** The operator's price; absent: not known. */
  readonly cost?: PriceBook;
  /** Price ratio of the model, on top of plan and account; absent: 1. */
  readonly multiplier?: Ratio;
  /** Price ratio of lines of batches, on top of the others; absent: 1. */
  readonly batch?: Ratio;
  /** Traits for translated requests. */
  readonly traits?: Traits;
  /** How its first target is chosen, where it is not as the route says. */
  readonly strategy?: TargetStrategy;
  /** Silence of its target after which a hedged attempt starts; 0: never; absent: the route's setting. */
  readonly hedgeAfterMs?: number;
  /** Models that serve a call when this one cannot; absent: none. */
  readonly instead?: InsteadNames;
}

/** The catalogue entry of `call.model`. */
export const model = defineContextKey<Model>('model');

/** The prompt is too long for it; none of its targets can be asked; its vendor's content rules refuse the call. */
export const insteadReasons = ['context_length', 'unavailable', 'content_filter'] as const;
export type InsteadReason = (typeof insteadReasons)[number];

/** Ids by reason, in the order in which they are asked. */
export type InsteadNames = { readonly [R in InsteadReason]?: readonly string[] | undefined };

/** Set by `models` for calls of models with such settings. */
export interface Instead {
  /** Models that the caller may call, that are sold now, and that were not tried yet. */
  models(reason: InsteadReason): readonly Model[];
  /** Each of them once. */
  all(): readonly Model[];
  /** They are not offered any more. */
  withdraw(): void;
  /** The call goes on with this one. */
  serve(entry: Model): void;
}

export const instead = defineContextKey<Instead>('instead');

/** Lets calls go on with another model before any attempt. Provided by `models`. */
export interface ModelSwitch {
  /** false: this one cannot serve the call, or its caller may not call it; nothing has changed. */
  serve(exchange: Exchange, id: string): boolean;
}

export const modelSwitch = defineService<ModelSwitch>('switch of models');

export interface Catalog {
  find(id: string): Model | undefined;
  list(): readonly Model[];
}

export const catalog = defineService<Catalog>('catalog');

/** Checks whether an account's price ratio would sell below cost. */
export interface PriceFloor {
  /** One sentence for each model that would be sold below its cost with this ratio on top of the lowest. */
  losses(multiplier: Ratio): readonly string[];
}

export const priceFloor = defineService<PriceFloor>('price floor');
