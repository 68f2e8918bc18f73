/** The targets that can serve a request. Pinned requests refer to state that one upstream stores: they go there with its key, or fail. */

import type { Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { UpstreamNetwork } from '../../core/contract/exchange.ts';
import type { Secret } from '../../core/contract/secret.ts';
import type { Call, Pinned } from '../common/domain/calls.ts';
import { type Model, type ModelTarget, protocolsOf, speaksProtocol } from '../common/domain/models.ts';
import { mergeTraits, type Traits } from '../common/domain/traits.ts';
import {
  endpointProtocols,
  type Provider,
  type Providers,
  sessionProtocols,
  type Target,
  type Translations,
  translations,
} from '../common/domain/upstreams.ts';
import type { Session, SessionTarget } from './affinity.ts';
import type { HealthRegistry, TargetHealth } from './health.ts';

export interface Candidate {
  readonly provider: Provider;
  /** The upstream's name of the model. */
  readonly model: string;
  /** Protocol used with it. */
  readonly protocol: string;
  readonly traits: Traits;
  readonly headers: ModelTarget['headers'];
  readonly weight: number;
  readonly health: TargetHealth;
  /** Largest input there, in tokens, where the target names its own. */
  readonly contextTokens?: number | undefined;
  /** Credentials that this request has already tried here; created at the first failure. */
  tried?: Set<string>;
}

/** A key acquired for an attempt. */
export interface AcquiredKey {
  readonly key: Secret;
  readonly credential: string;
  readonly network?: UpstreamNetwork | undefined;
}

export function targetOf(
  { provider, protocol, model: name, traits, headers }: Candidate,
  { key, credential, network }: AcquiredKey,
): Target {
  return {
    provider: provider.name,
    model: name,
    protocol,
    baseUrl: provider.speaks[protocol]!,
    key,
    credential,
    upstream: provider.protocolTraits?.[protocol] ?? provider.traits,
    traits,
    headers,
    network,
  };
}

/** Usable targets in the listed order. */
export interface Candidates {
  /** Candidates that speak the client's protocol, or a variant of it. */
  readonly native: Candidate[];
  /**
   * Candidates that need a translation, with the first protocol of their list that can be translated to and gives as many answers as
   * are asked for.
   */
  readonly foreign: Candidate[];
}

/**
 * The usable targets. `endpoints`: the gateway's own, by the protocol of their clients. Throws GatewayError `unsupported` when no target speaks a usable protocol, `overloaded` when those that
 * do are disabled.
 */
export function candidatesFor(
  model: Model,
  { protocol, convertsTo, choices }: Pick<Call, 'protocol' | 'convertsTo' | 'choices'>,
  providers: Providers,
  known: Translations | undefined,
  registry: HealthRegistry,
  endpoints: () => readonly (readonly [string, string])[],
): Candidates {
  const can = (name: string) => convertsTo?.includes(name) ?? known?.can(protocol, name) === true;
  const tooFew = (name: string) => choices > 1 && known?.answersOnce?.(name) === true;
  const native: Candidate[] = [];
  const foreign: Candidate[] = [];
  for (const target of model.targets) {
    const provider = providers.find(target.provider);
    if (provider === undefined || providers.isDisabled?.(target.provider) === true) continue;
    if (speaksProtocol(target, provider, protocol)) {
      native.push(candidate(model, target, provider, protocol, registry));
      continue;
    }
    const names = protocolsOf(target, provider);
    const variant = names.find((name) => known?.relays?.(protocol, name));
    if (variant !== undefined) {
      native.push(candidate(model, target, provider, variant, registry));
      continue;
    }
    const usable = names.filter(can);
    const spoken = usable.find((name) => !tooFew(name)) ?? usable[0];
    if (spoken !== undefined) foreign.push(candidate(model, target, provider, spoken, registry));
  }
  if (native.length + foreign.length === 0) {
    if (model.targets.some((target) => providers.isDisabled?.(target.provider) === true)) throw outOfService();
    throw noneSpeaks(model, protocol, providers, known, endpoints());
  }
  return { native, foreign };
}

const noTraits: Traits = {};

function candidate(
  model: Model,
  target: ModelTarget,
  provider: Provider,
  protocol: string,
  registry: HealthRegistry,
): Candidate {
  const dialect = provider.dialect?.[protocol];
  const hasTraits = dialect !== undefined || model.traits !== undefined || target.traits !== undefined;
  return {
    provider,
    model: target.model,
    protocol,
    traits: hasTraits ? mergeTraits(mergeTraits(dialect, model.traits), target.traits) : noTraits,
    headers: target.headers,
    weight: target.weight,
    health: registry.of(target),
    contextTokens: target.contextTokens,
  };
}

/** An operator has disabled every target that could serve the model. */
function outOfService(): GatewayError {
  return new GatewayError('overloaded', 'The model is out of service at the moment; try again later.', {
    code: 'model_out_of_service',
  });
}

/** They name the gateway's endpoints for clients. */
export const endpointServices = [translations, endpointProtocols, sessionProtocols] as const;

export function endpointsOf(host: Pick<Host, 'find'>): readonly (readonly [string, string])[] {
  return endpointServices.flatMap((service) => [...(host.find(service)?.endpoints?.() ?? [])]);
}

/** Lists the endpoints at which the model can be called. */
function noneSpeaks(
  model: Model,
  protocol: string,
  providers: Providers,
  known: Translations | undefined,
  endpoints: readonly (readonly [string, string])[],
): GatewayError {
  const spoken = model.targets.flatMap((target) => protocolsOf(target, providers.find(target.provider)));
  const instead = endpoints
    .filter(([name]) => spoken.some((to) => name === to || known?.can(name, to) === true))
    .map(([name, path]) => `${name} (${path})`);
  const advice = instead.length === 0 ? '' : ` It can be called with: ${instead.join(', ')}.`;
  return new GatewayError('unsupported', `The model \`${model.id}\` cannot be called with ${protocol}.${advice}`, {
    field: 'model',
    code: 'protocol_unsupported',
  });
}

/** Whether the upstream that stores the state serves the model, with its key. */
export function canServe(pin: Pinned, model: Model, providers: Providers): boolean {
  const provider = providers.find(pin.provider);
  if (provider === undefined || providers.isDisabled?.(pin.provider) === true) return false;
  const served = model.targets.find((target) => target.provider === pin.provider);
  const key = served === undefined ? undefined : providers.findKey(pin.provider, pin.credential, served.model);
  return key !== undefined && key.disabled !== true;
}

/** Throws `lost` unless the model is served by the upstream that stores the state. */
export function checkPinned(pin: Pinned, model: Model, providers: Providers): void {
  const provider = providers.find(pin.provider);
  const isOff = providers.isDisabled?.(pin.provider) === true;
  if (provider === undefined || isOff) throw lost(pin);
  const { protocol } = pin;
  const serves = model.targets.some(
    (target) =>
      target.provider === pin.provider && (protocol === undefined || speaksProtocol(target, provider, protocol)),
  );
  if (!serves) throw lost(pin);
}

/** A key for an attempt, or for how long none is free. */
export function takeKey(
  { provider, model: name, tried }: Candidate,
  providers: Providers,
  pin: Pinned | undefined,
  session: Session | undefined,
  last: SessionTarget | undefined,
): ReturnType<Providers['acquireKey']> {
  if (pin !== undefined) return takePinned(pin, name, providers, tried);
  if (session === undefined) return providers.acquireKey(provider.name, name, tried);
  const credential = last?.provider === provider.name ? last.credential : undefined;
  return providers.acquireKey(provider.name, name, tried, { credential, session: session.hash });
}

/**
 * The key of the earlier answer, or for how long it cannot be used (0: it was tried already). Throws `lost` when it
 * is not configured any more or disabled: no other key can read the stored state.
 */
function takePinned(
  pin: Pinned,
  model: string,
  providers: Providers,
  tried: ReadonlySet<string> | undefined,
): { key: Secret; credential: string } | { retryAfterMs: number } {
  const { credential } = pin;
  const named = providers.findKey(pin.provider, credential, model);
  if (named === undefined || named.disabled === true) throw lost(pin);
  if (tried?.has(credential) === true) return { retryAfterMs: 0 };
  return named.restsMs > 0 ? { retryAfterMs: named.restsMs } : { key: named.key, credential };
}

/**
 * `previous_response_not_found` for earlier answers: clients react to exactly this code by sending the whole conversation
 * again. `resource_not_found` for files and other resources.
 */
function lost({ field }: Pinned): GatewayError {
  if (field !== undefined) {
    const message = `What the field "${field}" refers to cannot be used with this model.`;
    return new GatewayError('invalid_request', message, { field, code: 'resource_not_found' });
  }
  return new GatewayError('invalid_request', 'The previous response cannot be continued with this model.', {
    field: 'previous_response_id',
    code: 'previous_response_not_found',
  });
}

export const hasSeveralKeys = ({ keyCount }: Provider) => keyCount !== undefined && keyCount > 1;
