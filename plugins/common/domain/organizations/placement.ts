/** Which providers may serve a call: those that keep nothing, and those in the regions of its plan, project and key. None is asked beside them. */
import type { Exchange } from '../../../../core/contract/contract.ts';
import { GatewayError } from '../../../../core/contract/errors.ts';
import { type Caller, caller } from '../accounts.ts';
import type { Model } from '../models.ts';
import { type PlanTerms, plan } from '../plans.ts';
import type { Provider, Providers } from '../upstreams.ts';

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
  const among = placed(placement, providers);
  const names = bound === undefined ? wanted.targets.map(({ provider }) => provider) : [bound];
  const configured = names.filter((name) => providers.find(name) !== undefined);
  if (configured.length > 0 && configured.every((name) => among.find(name) === undefined))
    throw servedNowhere(placement, wanted.id);
  return among;
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
