/** Which targets a request may go to, and in what order. Pure but for the draw. */
import type { Random } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import type { Model, Provider, Providers } from '../../core/vocabulary.ts';

export interface Candidate {
  readonly provider: Provider;
  /** The upstream's name of the model. */
  readonly model: string;
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
 * The usable targets that speak `protocol`. In the listed order; but where targets carry weights, one of these is drawn
 * by its share to go first, and those without a weight stay behind as fallbacks.
 * Throws GatewayError `unsupported` when no target speaks the protocol.
 */
export function candidatesFor(model: Model, protocol: string, providers: Providers, random: Random): Candidate[] {
  const candidates: Candidate[] = [];
  for (const target of model.targets) {
    const provider = providers.find(target.provider);
    if (provider === undefined || !(protocol in provider.speaks)) continue;
    candidates.push({ provider, model: target.model, weight: target.weight });
  }
  if (candidates.length === 0) throw noneSpeaks(model, protocol, providers);
  if (candidates.length > 1) drawFirst(candidates, random);
  return candidates;
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
