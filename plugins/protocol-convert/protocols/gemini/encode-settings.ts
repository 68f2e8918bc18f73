/** Words `generationConfig` for an upstream. Pure. */
import type { Prompt, ReasoningWish, Setting } from '../../canon.ts';
import type { EncodeContext } from '../../codec.ts';
import { type JsonObject, objectOf, textOf } from '../../json.ts';
import { budgetOf, effortOf, nearestEffort } from '../../wording/reasoning.ts';
import { describedSchema, openApiSubset, withoutConst } from '../../wording/schemas.ts';

const maxStops = 5;
const maxChoices = 8;
/** Smallest budget of models that always think. */
const leastBudget = 128;
const ratios = ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9'];

export interface WordedSettings {
  readonly generationConfig: JsonObject;
  /** Texts at which the gateway stops the answer, beyond what the upstream takes. */
  readonly stop: readonly string[];
}

/** `structured`: the schema goes with the request; else it was asked for in words. */
export function encodeSettings(
  prompt: Prompt,
  context: EncodeContext,
  { structured, makesImages }: { readonly structured: boolean; readonly makesImages: boolean },
): WordedSettings {
  const { losses } = context;
  for (const setting of ['logitBias', 'verbosity', 'user', 'metadata', 'cacheKey'] as const)
    if (prompt[setting] !== undefined) losses.drop(setting);
  const { choices = 1, stop = [] } = prompt;
  if (choices > maxChoices) losses.refuse('choices', `gives at most ${maxChoices} answers at a time`);
  const thinkingConfig = thinking(prompt, context);
  const generationConfig = {
    ...sampling(prompt, context),
    ...bound(prompt, context),
    ...(stop.length === 0 ? {} : { stopSequences: stop.slice(0, maxStops) }),
    ...(choices > 1 ? { candidateCount: choices } : {}),
    ...(prompt.seed === undefined ? {} : { seed: prompt.seed }),
    ...(prompt.logprobs === undefined ? {} : { responseLogprobs: true }),
    ...(prompt.logprobs ? { logprobs: prompt.logprobs } : {}),
    ...(thinkingConfig === undefined ? {} : { thinkingConfig }),
    ...(structured ? outputForm(prompt, context) : {}),
    ...outputKinds(prompt, makesImages, context),
  };
  return { generationConfig, stop: stop.slice(maxStops) };
}

const samplers = ['temperature', 'topP', 'topK', 'presencePenalty', 'frequencyPenalty'] as const satisfies Setting[];

function sampling(prompt: Prompt, { losses, traits }: EncodeContext): JsonObject {
  const settings: Record<string, number> = {};
  const { max_temperature: highest = 2 } = traits;
  for (const name of samplers) {
    const value = prompt[name];
    if (value === undefined) continue;
    if (traits.sampling === false) losses.drop(name);
    else settings[name] = name === 'temperature' ? Math.min(value, highest) : value;
    if (name === 'temperature' && value > highest) losses.drop(name);
  }
  return settings;
}

function bound({ maxOutputTokens }: Prompt, context: EncodeContext): JsonObject {
  if (maxOutputTokens === undefined) return {};
  return { maxOutputTokens: Math.min(maxOutputTokens, context.maxOutputTokens ?? Infinity) };
}

function thinking(prompt: Prompt, context: EncodeContext): JsonObject | undefined {
  const { reasoning: wish } = prompt;
  if (wish === undefined) return undefined;
  const { losses, traits } = context;
  const { reasoning: form = 'level' } = traits;
  if (form === 'none') {
    if (effortOf(wish) !== undefined && effortOf(wish) !== 'none') losses.drop('reasoning');
    return undefined;
  }
  const shown = wish.visible === undefined ? {} : { includeThoughts: wish.visible && effortOf(wish) !== 'none' };
  const config = { ...shown, ...(form === 'budget' ? budget(wish, prompt, context) : level(wish, context)) };
  return Object.keys(config).length === 0 ? undefined : config;
}

/** Models with levels cannot be kept from thinking: the least of them stands for that. */
function level(wish: ReasoningWish, { traits }: EncodeContext): JsonObject {
  const effort = effortOf(wish);
  if (effort === undefined) return {};
  const known = (traits.efforts ?? ['low', 'medium', 'high']).filter((name) => name !== 'none');
  const nearest = nearestEffort(effort === 'none' ? 'minimal' : effort, known);
  return { thinkingLevel: nearest.toUpperCase() };
}

/** A budget that was named may exceed the answer's bound, as the vendor takes it; one made of an effort leaves room. */
function budget(wish: ReasoningWish, prompt: Prompt, { traits, maxOutputTokens }: EncodeContext): JsonObject {
  const most = wish.budgetTokens === undefined ? (prompt.maxOutputTokens ?? maxOutputTokens) : undefined;
  const tokens = budgetOf(wish, {
    ...(most === undefined ? {} : { maxOutputTokens: most }),
    ...(traits.max_budget === undefined ? {} : { maxBudget: traits.max_budget }),
    minBudget: leastBudget,
  });
  if (tokens === undefined) return {};
  return { thinkingBudget: tokens === 0 && traits.reasoning_off === false ? leastBudget : tokens };
}

function outputForm({ output }: Prompt, { traits }: EncodeContext): JsonObject {
  if (output === undefined) return {};
  const responseMimeType = 'application/json';
  if (output.form === 'json') return { responseMimeType };
  return traits.json_schema_tools === false
    ? { responseMimeType, responseSchema: openApiSubset(describedSchema(output)) }
    : { responseMimeType, responseJsonSchema: withoutConst(describedSchema(output)) };
}

/** The kinds of answer that were asked for, with the client's options as far as they have a counterpart. */
function outputKinds(prompt: Prompt, makesImages: boolean, { losses }: EncodeContext): JsonObject {
  const kinds = new Set(prompt.outputKinds);
  if (makesImages) kinds.add('image');
  const isImage = kinds.has('image');
  const modalities = [...(isImage ? ['TEXT', 'IMAGE'] : []), ...(kinds.has('audio') ? ['AUDIO'] : [])];
  const imageConfig = imageConfigOf(prompt.imageOptions ?? {});
  const voiceName = textOf(prompt.audioOptions?.['voice']);
  const wanted = Object.keys(prompt.imageOptions ?? {});
  const isWhole = wanted.every((name) => ['aspectRatio', 'imageSize', 'imageConfig', 'size'].includes(name));
  if (wanted.length > 0 && (imageConfig === undefined || !isWhole)) losses.drop('imageOptions');
  if (prompt.audioOptions !== undefined && voiceName === undefined) losses.drop('audioOptions');
  return {
    ...(modalities.length === 0 ? {} : { responseModalities: modalities }),
    ...(imageConfig === undefined ? {} : { imageConfig }),
    ...(voiceName === undefined ? {} : { speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName } } } }),
  };
}

/** The protocol's own members, or the shape of a size in pixels (`1536x1024`). */
function imageConfigOf(options: JsonObject): JsonObject | undefined {
  const own = Object.entries(options).filter(([name]) => name === 'aspectRatio' || name === 'imageSize');
  if (own.length > 0) return Object.fromEntries(own);
  const nested = objectOf(options['imageConfig']);
  if (nested !== undefined) return nested;
  const size = /^(\d+)x(\d+)$/.exec(textOf(options['size']) ?? '');
  if (size === null) return undefined;
  const [width, height] = [Number(size[1]), Number(size[2])];
  const aspectRatio = ratios.find((ratio) => {
    const [across, down] = ratio.split(':').map(Number);
    return Math.abs(width / height - across! / down!) < 0.02;
  });
  return aspectRatio === undefined ? undefined : { aspectRatio };
}
