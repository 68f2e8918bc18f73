/** Words the settings of a Prompt that stand alone: bounds, sampling, names, kinds of answer. */
import type { Prompt, Setting } from '../../canon.ts';
import type { EncodeContext } from '../../codec.ts';
import type { JsonObject } from '../../json.ts';
import { textOf } from '../../json.ts';
import { shortHash } from '../../wording/hash.ts';

const defaultMaxTemperature = 2;
/** Longest name of an end user that the protocol's servers take. */
const maxUserLength = 64;
const serviceTiers = ['auto', 'default', 'flex', 'scale', 'priority', 'fast'];

export function encodeSettings(prompt: Prompt, context: EncodeContext): JsonObject {
  const { losses } = context;
  if (prompt.topK !== undefined) losses.drop('topK');
  // Officially for answers that the vendor keeps, which translated ones never are.
  if (prompt.metadata !== undefined) losses.drop('metadata');
  return {
    ...bound(prompt, context),
    ...sampling(prompt, context),
    ...(prompt.choices === undefined || prompt.choices === 1 ? {} : { n: prompt.choices }),
    ...(prompt.seed === undefined ? {} : { seed: prompt.seed }),
    ...(prompt.verbosity === undefined ? {} : { verbosity: prompt.verbosity }),
    ...(prompt.user === undefined ? {} : { user: userName(prompt.user) }),
    ...(prompt.cacheKey === undefined ? {} : { prompt_cache_key: prompt.cacheKey }),
    ...tier(prompt, context),
    ...kinds(prompt, context),
  };
}

/** What the client asked for, as far as the model can give it; nothing where it did not ask. */
function bound({ maxOutputTokens }: Prompt, { traits, maxOutputTokens: most }: EncodeContext): JsonObject {
  if (maxOutputTokens === undefined) return {};
  const tokens = most === undefined ? maxOutputTokens : Math.min(maxOutputTokens, most);
  return { [traits.max_tokens_field ?? 'max_tokens']: tokens };
}

/** Models that reason refuse all of them together. */
function sampling(prompt: Prompt, { traits, losses }: EncodeContext): JsonObject {
  const { temperature, logprobs } = prompt;
  const highest = traits.max_temperature ?? defaultMaxTemperature;
  const members: [Setting, JsonObject | undefined][] = [
    ['temperature', wrap('temperature', temperature === undefined ? undefined : Math.min(temperature, highest))],
    ['topP', wrap('top_p', prompt.topP)],
    ['frequencyPenalty', wrap('frequency_penalty', prompt.frequencyPenalty)],
    ['presencePenalty', wrap('presence_penalty', prompt.presencePenalty)],
    ['logitBias', wrap('logit_bias', prompt.logitBias)],
    ['logprobs', logprobs === undefined ? undefined : { logprobs: true, top_logprobs: logprobs }],
  ];
  const asked = members.filter(([, member]) => member !== undefined);
  if (traits.sampling === false) {
    for (const [setting] of asked) losses.drop(setting);
    return {};
  }
  if (temperature !== undefined && temperature > highest) losses.drop('temperature');
  return Object.assign({}, ...asked.map(([, member]) => member)) as JsonObject;
}

function wrap(name: string, value: unknown): JsonObject | undefined {
  return value === undefined ? undefined : { [name]: value };
}

/** A name that is too long goes as what follows from it alone. */
function userName(user: string): string {
  return user.length <= maxUserLength ? user : `user_${shortHash(user, 40)}`;
}

function tier({ serviceTier }: Prompt, { losses }: EncodeContext): JsonObject {
  if (serviceTier === undefined) return {};
  if (serviceTier === 'standard') return { service_tier: 'default' };
  if (serviceTiers.includes(serviceTier)) return { service_tier: serviceTier };
  losses.drop('serviceTier');
  return {};
}

/** Sounds come in a form that streams (raw samples) or as a file. */
function kinds({ outputKinds, audioOptions, imageOptions }: Prompt, { stream }: EncodeContext): JsonObject {
  if (outputKinds === undefined || outputKinds.length === 0) return {};
  const voice = textOf(audioOptions?.['voice']) ?? audioOptions?.['voice'] ?? 'alloy';
  const format = textOf(audioOptions?.['format']) ?? (stream ? 'pcm16' : 'wav');
  return {
    modalities: [...outputKinds, 'text'],
    ...(outputKinds.includes('audio') ? { audio: { voice, format } } : {}),
    ...(outputKinds.includes('image') && imageOptions !== undefined ? { image_config: imageOptions } : {}),
  };
}
