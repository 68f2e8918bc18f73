/** Encodes independent settings of a prompt: limits, sampling, names, output kinds. */

import { type JsonObject, textOf } from '../../../../../core/json/json.ts';
import type { EncodeContext } from '../../../../common/canonical/codec.ts';
import type { Prompt, Setting } from '../../../../common/canonical/prompt.ts';
import { shortHash } from '../../../../common/encoding/hash.ts';

const defaultMaxTemperature = 2;
/** Maximum length of an end user's name that servers accept. */
const maxUserLength = 64;
const serviceTiers = ['auto', 'default', 'flex', 'scale', 'priority', 'fast'];

export function encodeSettings(prompt: Prompt, context: EncodeContext): JsonObject {
  const { dropped } = context;
  if (prompt.topK !== undefined) dropped.drop('topK');
  // Official servers accept it only for stored answers; translated answers are never stored.
  if (prompt.metadata !== undefined) dropped.drop('metadata');
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

/** The requested settings that the model supports; nothing if the client did not request any. */
function bound({ maxOutputTokens }: Prompt, { traits, maxOutputTokens: most }: EncodeContext): JsonObject {
  if (maxOutputTokens === undefined) return {};
  const tokens = most === undefined ? maxOutputTokens : Math.min(maxOutputTokens, most);
  return { [traits.max_tokens_field ?? 'max_tokens']: tokens };
}

/** Reasoning models refuse all of them. */
function sampling(prompt: Prompt, { traits, dropped }: EncodeContext): JsonObject {
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
  const requested = members.filter(([, member]) => member !== undefined);
  if (traits.sampling === false) {
    for (const [setting] of requested) dropped.drop(setting);
    return {};
  }
  if (temperature !== undefined && temperature > highest) dropped.drop('temperature');
  return Object.assign({}, ...requested.map(([, member]) => member)) as JsonObject;
}

function wrap(name: string, value: unknown): JsonObject | undefined {
  return value === undefined ? undefined : { [name]: value };
}

/** A name that is too long is replaced by its hash. */
function userName(user: string): string {
  return user.length <= maxUserLength ? user : `user_${shortHash(user, 40)}`;
}

function tier({ serviceTier }: Prompt, { dropped }: EncodeContext): JsonObject {
  if (serviceTier === undefined) return {};
  if (serviceTier === 'standard') return { service_tier: 'default' };
  if (serviceTiers.includes(serviceTier)) return { service_tier: serviceTier };
  dropped.drop('serviceTier');
  return {};
}

/** Members of `image_config`, by canonical option. */
const imageMembers = new Map([
  ['aspectRatio', 'aspect_ratio'],
  ['imageSize', 'image_size'],
]);

/** These servers' schema has no other options. */
function imageConfig(options: JsonObject, dropped: EncodeContext['dropped']): JsonObject {
  const members = Object.entries(options).flatMap(([name, value]): [string, unknown][] => {
    const member = imageMembers.get(name);
    if (member === undefined) dropped.drop('imageOptions');
    return member === undefined ? [] : [[member, value]];
  });
  return members.length === 0 ? {} : { image_config: Object.fromEntries(members) };
}

/** Audio is requested in a streamable form (raw samples) or as a file. */
function kinds({ outputKinds, audioOptions, imageOptions }: Prompt, { stream, dropped }: EncodeContext): JsonObject {
  if (imageOptions !== undefined && outputKinds?.includes('image') !== true) dropped.drop('imageOptions');
  if (outputKinds === undefined || outputKinds.length === 0) return {};
  const voice = textOf(audioOptions?.['voice']) ?? audioOptions?.['voice'] ?? 'alloy';
  const format = textOf(audioOptions?.['format']) ?? (stream ? 'pcm16' : 'wav');
  return {
    modalities: [...outputKinds, 'text'],
    ...(outputKinds.includes('audio') ? { audio: { voice, format } } : {}),
    ...(outputKinds.includes('image') ? imageConfig(imageOptions ?? {}, dropped) : {}),
  };
}
