/** Encodes `generationConfig` for an upstream. Pure. */

import { type JsonObject, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { EncodeContext } from '../../../../common/canonical/codec.ts';
import type { Prompt, ReasoningSettings, Setting } from '../../../../common/canonical/prompt.ts';
import { budgetOf, effortOf, nearestEffort } from '../../../../common/encoding/reasoning.ts';
import { describedSchema, openApiSubset, withoutConst } from '../../../encoding/schemas.ts';

const maxStops = 5;
const maxChoices = 8;
/** Smallest budget of models that always reason. */
const leastBudget = 128;
const ratios = ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9'];

export interface EncodedSettings {
  readonly generationConfig: JsonObject;
  /** Stop sequences beyond the upstream's maximum, which the gateway matches itself. */
  readonly stop: readonly string[];
}

/** `structured`: the schema is a member of the request; otherwise an instruction asks for it. */
export function encodeSettings(
  prompt: Prompt,
  context: EncodeContext,
  { structured, makesImages }: { readonly structured: boolean; readonly makesImages: boolean },
): EncodedSettings {
  const { dropped } = context;
  for (const setting of ['logitBias', 'verbosity', 'user', 'metadata', 'cacheKey'] as const)
    if (prompt[setting] !== undefined) dropped.drop(setting);
  const { choices = 1, stop = [] } = prompt;
  if (choices > maxChoices) dropped.refuse('choices', `gives at most ${maxChoices} answers at a time`);
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

function sampling(prompt: Prompt, { dropped, traits }: EncodeContext): JsonObject {
  const settings: Record<string, number> = {};
  const { max_temperature: highest = 2 } = traits;
  for (const name of samplers) {
    const value = prompt[name];
    if (value === undefined) continue;
    if (traits.sampling === false) dropped.drop(name);
    else settings[name] = name === 'temperature' ? Math.min(value, highest) : value;
    if (name === 'temperature' && value > highest) dropped.drop(name);
  }
  return settings;
}

function bound({ maxOutputTokens }: Prompt, context: EncodeContext): JsonObject {
  if (maxOutputTokens === undefined) return {};
  return { maxOutputTokens: Math.min(maxOutputTokens, context.maxOutputTokens ?? Infinity) };
}

function thinking(prompt: Prompt, context: EncodeContext): JsonObject | undefined {
  const { reasoning } = prompt;
  if (reasoning === undefined) return undefined;
  const { dropped, traits } = context;
  const { reasoning: form = 'level' } = traits;
  if (form === 'none') {
    if (effortOf(reasoning) !== undefined && effortOf(reasoning) !== 'none') dropped.drop('reasoning');
    return undefined;
  }
  const shown =
    reasoning.visible === undefined ? {} : { includeThoughts: reasoning.visible && effortOf(reasoning) !== 'none' };
  const config = { ...shown, ...(form === 'budget' ? budget(reasoning, prompt, context) : level(reasoning, context)) };
  return Object.keys(config).length === 0 ? undefined : config;
}

/** Models with levels cannot switch reasoning off: the lowest level stands in for it. */
function level(reasoning: ReasoningSettings, { traits }: EncodeContext): JsonObject {
  const effort = effortOf(reasoning);
  if (effort === undefined) return {};
  const known = (traits.efforts ?? ['low', 'medium', 'high']).filter((name) => name !== 'none');
  const nearest = nearestEffort(effort === 'none' ? 'minimal' : effort, known);
  return { thinkingLevel: nearest.toUpperCase() };
}

/** The client's own budget may exceed the answer's limit, as at the vendor; a budget derived from an effort leaves room. */
function budget(reasoning: ReasoningSettings, prompt: Prompt, { traits, maxOutputTokens }: EncodeContext): JsonObject {
  const most = reasoning.budgetTokens === undefined ? (prompt.maxOutputTokens ?? maxOutputTokens) : undefined;
  const tokens = budgetOf(reasoning, {
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

/** The requested output kinds, with the client's options as far as they have a counterpart. */
function outputKinds(prompt: Prompt, makesImages: boolean, { dropped }: EncodeContext): JsonObject {
  const kinds = new Set(prompt.outputKinds);
  if (makesImages) kinds.add('image');
  const isImage = kinds.has('image');
  const modalities = [...(isImage ? ['TEXT', 'IMAGE'] : []), ...(kinds.has('audio') ? ['AUDIO'] : [])];
  const imageConfig = imageConfigOf(prompt.imageOptions ?? {});
  const voiceName = textOf(prompt.audioOptions?.['voice']);
  const wanted = Object.keys(prompt.imageOptions ?? {});
  const isWhole = wanted.every((name) => ['aspectRatio', 'imageSize', 'imageConfig', 'size'].includes(name));
  if (wanted.length > 0 && (imageConfig === undefined || !isWhole)) dropped.drop('imageOptions');
  if (prompt.audioOptions !== undefined && voiceName === undefined) dropped.drop('audioOptions');
  return {
    ...(modalities.length === 0 ? {} : { responseModalities: modalities }),
    ...(imageConfig === undefined ? {} : { imageConfig }),
    ...(voiceName === undefined ? {} : { speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName } } } }),
  };
}

/** The protocol's own members, or the aspect ratio of a size in pixels (`1536x1024`). */
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
