/** Which providers may serve a call: those that keep nothing, and those in the regions of its plan, project and key. None is asked beside them. */
import type { Exchange } from '../../../../core/contract/contract.ts';
import { GatewayError } from '../../../../core/contract/errors.ts';
import { type Caller, caller } from '../accounts.ts';
import { type Model, type ModelTarget, protocolsOf } from '../models.ts';
import { type PlanTerms, plan } from '../plans.ts';
import type { Provider, Providers, Translations } from '../upstreams.ts';

/** How regions are named, in settings and terms. */
export const regionName = /^[a-z][a-z0-9-]{0,31}$/;
export const mostRegions = 20;

export interface Placement {
  readonly keepsNothing: boolean;
  /** undefined: anywhere; empty: the plan, the project and the key have none in common. */
  readonly regions: ReadonlySet<string> | undefined;
}

/** undefined: any provider may serve it. */
export function placementOf(who: Caller | undefined, terms: PlanTerms | undefined): Placement | undefined {
  const keepsNothing = who?.retention === 'none';
  const regions = inBoth(who?.regions, terms?.regions);
  return keepsNothing || regions !== undefined ? { keepsNothing, regions } : undefined;
}

export const placementIn = (exchange: Exchange) => placementOf(exchange.find(caller), exchange.find(plan));

/** undefined: all. */
export function inBoth(
  one: ReadonlySet<string> | undefined,
  other: ReadonlySet<string> | undefined,
): ReadonlySet<string> | undefined {
  return one === undefined || other === undefined ? (one ?? other) : one.intersection(other);
}

/** A provider without a label is one of which nothing is known. Of several regions, its calls may be in each. */
export function mayServe({ keepsNothing, regions }: Placement, provider: Provider): boolean {
  if (keepsNothing && provider.zdr !== true) return false;
  if (regions === undefined) return true;
  return (provider.regions ?? []).length > 0 && provider.regions!.every((region) => regions.has(region));
}

/** Finds only those that may serve the call. */
export function placed(placement: Placement, providers: Providers): Providers {
  const allowed = (provider: Provider | undefined) =>
    provider !== undefined && mayServe(placement, provider) ? provider : undefined;
  return {
    ...providers,
    find: (name) => allowed(providers.find(name)),
    list: () => providers.list().filter((provider) => mayServe(placement, provider)),
  };
}

/** For a call that another provider can take as well. */
export function placedIn(exchange: Exchange, providers: Providers): Providers {
  const placement = placementIn(exchange);
  return placement === undefined ? providers : placed(placement, providers);
}

/** As `placed` does. Throws if the model, or the provider that the call is bound to, is none of theirs. */
export function placedFor(
  placement: Placement,
  providers: Providers,
  wanted: Pick<Model, 'id' | 'targets'>,
  bound?: string,
): Providers {
  const names = bound === undefined ? wanted.targets.map(({ provider }) => provider) : [bound];
  if (!servedByOneOf(placement, providers, names)) throw servedNowhere(placement, wanted.id);
  return placed(placement, providers);
}

/** Where none of them is configured it is not their labels that the call lacks. */
function servedByOneOf(placement: Placement, providers: Providers, names: readonly string[]): boolean {
  const configured = names.flatMap((name) => providers.find(name) ?? []);
  return configured.length === 0 || configured.some((provider) => mayServe(placement, provider));
}

/** What decides who can serve a model. */
export interface Serving {
  readonly providers: Providers;
  /** Absent: nothing is translated or relayed by variants. */
  readonly translations?: Translations | undefined;
}

/** Whether any call of the model can be served: for lists of models. */
export function isServed(placement: Placement, serving: Serving, { kind, targets }: Model): boolean {
  const names = targets.map(({ provider }) => provider);
  if (!servedByOneOf(placement, serving.providers, names)) return false;
  if (!placement.keepsNothing || (kind !== 'image' && kind !== 'video')) return true;
  return kind === 'image' && targets.some((target) => answersAtOnce(placement, serving, target));
}

/** Orders are kept with what is made for them: images are made without one where their provider itself speaks generate-content. */
function answersAtOnce(placement: Placement, { providers, translations }: Serving, target: ModelTarget): boolean {
  const provider = providers.find(target.provider);
  if (provider === undefined || !mayServe(placement, provider)) return false;
  return protocolsOf(target, provider).some(
    (name) => name === 'gemini' || translations?.relays?.('gemini', name) === true,
  );
}

/** Throws what a call of the model is refused with, if none can be served. */
export function checkServed(placement: Placement, serving: Serving, wanted: Model): void {
  if (!isServed(placement, serving, wanted)) throw servedNowhere(placement, wanted.id);
}

function servedNowhere({ keepsNothing, regions }: Placement, model: string): GatewayError {
  const places = regions === undefined ? '' : [...regions].sort().join(', ') || 'no region';
  const where = regions === undefined ? '' : ` in the regions of this key (${places})`;
  const how = keepsNothing ? ' without anything being kept' : '';
  return new GatewayError('forbidden', `The model "${model.slice(0, 200)}" is not served${where}${how}.`, {
    field: 'model',
    code: regions === undefined ? 'retention_none' : 'region_unavailable',
    shouldRetry: false,
  });
}
