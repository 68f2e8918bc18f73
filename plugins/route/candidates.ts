/** Which targets a request may go to, and in what order. Pure but for the draw. */
import type { Random } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { mergeTraits, type Traits } from '../../core/traits.ts';
import type { Model, ModelTarget, Provider, Providers, Translations } from '../../core/vocabulary.ts';

export interface Candidate {
  readonly provider: Provider;
  /** The upstream's name of the model. */
  readonly model: string;
  /** What will be spoken with it. */
  readonly protocol: string;
  readonly traits: Traits;
  readonly weight: number;
  /** Credentials that this request has used here already; made at the first failure. */
  tried?: Set<string>;
}

/** Where our own endpoints of each protocol are, for the message that tells which of them serves a model. */
const endpointOf: Record<string, string> = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
  gemini: '/v1beta/models/{model}:generateContent',
};

/**
 * The usable targets. Those that speak `protocol` come before those for which the call must be translated, which speak the
 * first protocol of their list that serves. In the listed order; but where targets carry weights, one of these is drawn by
 * its share to go first, and those without a weight stay behind as fallbacks.
 * Throws GatewayError `unsupported` when no target can be spoken with, `overloaded` when those that could are out of use.
 */
export function candidatesFor(
  model: Model,
  protocol: string,
  providers: Providers,
  random: Random,
  translations: Translations | undefined,
): Candidate[] {
  const native: Candidate[] = [];
  const foreign: Candidate[] = [];
  for (const target of model.targets) {
    const provider = providers.find(target.provider);
    if (provider === undefined || providers.isDisabled?.(target.provider) === true) continue;
    if (protocol in provider.speaks) {
      native.push(candidate(model, target, provider, protocol));
      continue;
    }
    const spoken = Object.keys(provider.speaks).find((name) => translations?.can(protocol, name));
    if (spoken !== undefined) foreign.push(candidate(model, target, provider, spoken));
  }
  if (native.length + foreign.length === 0) {
    if (model.targets.some((target) => providers.isDisabled?.(target.provider) === true)) throw outOfService();
    throw noneSpeaks(model, protocol, providers);
  }
  if (native.length > 1) drawFirst(native, random);
  if (foreign.length > 1) drawFirst(foreign, random);
  return native.concat(foreign);
}

function candidate(model: Model, target: ModelTarget, provider: Provider, protocol: string): Candidate {
  return {
    provider,
    model: target.model,
    protocol,
    traits: mergeTraits(mergeTraits(provider.dialect?.[protocol], model.traits), target.traits),
    weight: target.weight,
  };
}

function drawFirst(candidates: Candidate[], random: Random): void {
  let sum = 0;
  for (const candidate of candidates) sum += candidate.weight;
  if (sum === 0) return;
  let left = random.fraction() * sum;
  const drawn = candidates.findIndex((candidate) => {
    left -= candidate.weight;
    return left < 0;
  });
  // -1: the sum was rounded, and the draw fell behind the last one.
  const first = candidates.splice(drawn === -1 ? candidates.findLastIndex(({ weight }) => weight > 0) : drawn, 1)[0]!;
  candidates.sort((one, other) => Number(other.weight > 0) - Number(one.weight > 0));
  candidates.unshift(first);
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
