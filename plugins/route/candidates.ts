/** Which targets a request may go to. */
import { GatewayError } from '../../core/errors.ts';
import { mergeTraits, type Traits } from '../../core/traits.ts';
import type { Model, ModelTarget, Provider, Providers, Secret, Target, Translations } from '../../core/vocabulary.ts';
import type { HealthBook, TargetHealth } from './health.ts';

export interface Candidate {
  readonly provider: Provider;
  /** The upstream's name of the model. */
  readonly model: string;
  /** What will be spoken with it. */
  readonly protocol: string;
  readonly traits: Traits;
  readonly weight: number;
  readonly health: TargetHealth;
  /** Credentials that this request has used here already; made at the first failure. */
  tried?: Set<string>;
}

/** A key that was taken for an attempt. */
export interface Taken {
  readonly key: Secret;
  readonly credential: string;
}

export function targetOf({ provider, protocol, model: name, traits }: Candidate, { key, credential }: Taken): Target {
  return {
    provider: provider.name,
    model: name,
    protocol,
    baseUrl: provider.speaks[protocol]!,
    key,
    credential,
    upstream: provider.protocolTraits?.[protocol] ?? provider.traits,
    traits,
  };
}

/** Where our own endpoints of each protocol are, for the message that tells which of them serves a model. */
const endpointOf: Record<string, string> = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
  gemini: '/v1beta/models/{model}:generateContent',
};

/** Of equal worth to the client's protocol, in the listed order. */
export interface Candidates {
  /** Those that speak it. */
  readonly native: Candidate[];
  /** Those for which the call must be translated; they speak the first protocol of their list that serves. */
  readonly foreign: Candidate[];
}

/**
 * The usable targets. Throws GatewayError `unsupported` when no target can be spoken with, `overloaded` when those that
 * could are out of use.
 */
export function candidatesFor(
  model: Model,
  protocol: string,
  providers: Providers,
  translations: Translations | undefined,
  book: HealthBook,
): Candidates {
  const native: Candidate[] = [];
  const foreign: Candidate[] = [];
  for (const target of model.targets) {
    const provider = providers.find(target.provider);
    if (provider === undefined || providers.isDisabled?.(target.provider) === true) continue;
    if (protocol in provider.speaks) {
      native.push(candidate(model, target, provider, protocol, book));
      continue;
    }
    const spoken = Object.keys(provider.speaks).find((name) => translations?.can(protocol, name));
    if (spoken !== undefined) foreign.push(candidate(model, target, provider, spoken, book));
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
  book: HealthBook,
): Candidate {
  return {
    provider,
    model: target.model,
    protocol,
    traits: mergeTraits(mergeTraits(provider.dialect?.[protocol], model.traits), target.traits),
    weight: target.weight,
    health: book.of(target),
  };
}

/** An operator has taken all that could serve it out of use. */
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
