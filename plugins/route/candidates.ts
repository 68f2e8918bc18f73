/** The targets that can serve a request. */

import { GatewayError } from '../../core/contract/errors.ts';
import type { UpstreamNetwork } from '../../core/contract/network.ts';
import type { Secret } from '../../core/contract/secret.ts';
import { table } from '../../core/contract/table.ts';
import type { Call } from '../common/domain/calls.ts';
import type { Model, ModelTarget } from '../common/domain/models.ts';
import { mergeTraits, type Traits } from '../common/domain/traits.ts';
import type { Provider, Providers, Target, Translations } from '../common/domain/upstreams.ts';
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

/** The gateway's endpoint of each protocol, for the error that names those that serve a model. */
const endpointOf: Record<string, string> = table({
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
  gemini: '/v1beta/models/{model}:generateContent',
  'openai-embeddings': '/v1/embeddings',
  'gemini-embeddings': '/v1beta/models/{model}:embedContent',
  'cohere-rerank': '/v2/rerank',
  'jina-rerank': '/v1/rerank',
  'voyage-rerank': '/v1/rerank',
  'openai-moderations': '/v1/moderations',
  'openai-speech': '/v1/audio/speech',
  'openai-transcriptions': '/v1/audio/transcriptions',
});

/** Usable targets in the listed order. */
export interface Candidates {
  /** Those that speak the client's protocol. */
  readonly native: Candidate[];
  /** Those that need a translation, with the first protocol of their list that can be translated to. */
  readonly foreign: Candidate[];
}

/**
 * The usable targets. Throws GatewayError `unsupported` when no target speaks a usable protocol, `overloaded` when those that
 * do are disabled.
 */
export function candidatesFor(
  model: Model,
  { protocol, convertsTo }: Pick<Call, 'protocol' | 'convertsTo'>,
  providers: Providers,
  translations: Translations | undefined,
  registry: HealthRegistry,
): Candidates {
  const can = (name: string) => convertsTo?.includes(name) ?? translations?.can(protocol, name) === true;
  const native: Candidate[] = [];
  const foreign: Candidate[] = [];
  for (const target of model.targets) {
    const provider = providers.find(target.provider);
    if (provider === undefined || providers.isDisabled?.(target.provider) === true) continue;
    if (protocol in provider.speaks) {
      native.push(candidate(model, target, provider, protocol, registry));
      continue;
    }
    const spoken = Object.keys(provider.speaks).find(can);
    if (spoken !== undefined) foreign.push(candidate(model, target, provider, spoken, registry));
  }
  if (native.length + foreign.length === 0) {
    if (model.targets.some((target) => providers.isDisabled?.(target.provider) === true)) throw outOfService();
    throw noneSpeaks(model, protocol, providers);
  }
  return { native, foreign };
}

function candidate(
  model: Model,
  target: ModelTarget,
  provider: Provider,
  protocol: string,
  registry: HealthRegistry,
): Candidate {
  return {
    provider,
    model: target.model,
    protocol,
    traits: mergeTraits(mergeTraits(provider.dialect?.[protocol], model.traits), target.traits),
    headers: target.headers,
    weight: target.weight,
    health: registry.of(target),
  };
}

/** An operator has disabled every target that could serve the model. */
function outOfService(): GatewayError {
  return new GatewayError('overloaded', 'The model is out of service at the moment; try again later.', {
    code: 'model_out_of_service',
  });
}

function noneSpeaks(model: Model, protocol: string, providers: Providers): GatewayError {
  const spoken = new Set<string>();
  for (const target of model.targets) {
    for (const name of Object.keys(providers.find(target.provider)?.speaks ?? {})) spoken.add(name);
  }
  const paths = Object.keys(endpointOf).filter((name) => spoken.has(name));
  const instead = paths.map((name) => `${name} (${endpointOf[name]})`).join(', ');
  const advice = instead === '' ? '' : ` It can be called with: ${instead}.`;
  return new GatewayError('unsupported', `The model \`${model.id}\` cannot be called with ${protocol}.${advice}`, {
    field: 'model',
    code: 'protocol_unsupported',
  });
}
