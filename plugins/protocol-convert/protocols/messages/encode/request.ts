/** Encodes a Prompt as a request for an upstream of the messages protocol. Pure. */
import { table } from '../../../../../core/contract/table.ts';
import type { JsonObject } from '../../../../../core/json/json.ts';
import type { EncodeContext, EncodedRequest, ResponseMapping } from '../../../../common/canonical/codec.ts';
import type { Prompt, Setting } from '../../../../common/canonical/prompt.ts';
import { ToolNamer } from '../../../../common/encoding/tool-names.ts';
import { placeCacheMarks } from './cache-marks.ts';
import { encodeOutput } from './output.ts';
import { encodeReasoning } from './reasoning.ts';
import { type EncodedChoice, encodeTools, stubTools, toolNameLimits } from './tools.ts';
import { encodeTurns } from './turns.ts';

/** The protocol requires a limit for every answer; this one is for models with an unknown limit. */
const defaultMaxTokens = 8_192;
/** Upstreams refuse longer user names. */
const maxUserLength = 256;

/** Throws what `DroppedParameters.refuse` throws. */
export function encodeRequest(prompt: Prompt, context: EncodeContext): EncodedRequest {
  const { traits, target } = context;
  refuseRequiredParameters(prompt, context);
  dropSoftParameters(prompt, context);
  const namer = new ToolNamer(toolNameLimits);
  const declared = encodeTools(prompt, namer, context);
  const maxTokens = maxTokensOf(prompt, context);
  const wantsThinking = prompt.reasoning !== undefined && prompt.reasoning.effort !== 'none';
  const mayPrefill = traits.prefill === true && !wantsThinking;
  const turns = encodeTurns(prompt.turns, { target: context, namer }, mayPrefill);
  const reasoning = encodeReasoning(prompt.reasoning, context, maxTokens, turns.messages);
  const output = encodeOutput(prompt, declared, reasoning, namer, context);
  const stubs = output.tools.length === 0 ? stubTools(prompt, namer) : [];
  const marks = placeCacheMarks({ ...turns, tools: [...output.tools, ...stubs] }, marksFor(context));
  if (marks.lost) context.dropped.drop('cacheMarks');
  const { messages, tools } = marks.request;
  // After the last mark: instructions for this answer alone must not change the cached prefix.
  const system = [...marks.request.system, ...output.instructions.map((text) => ({ type: 'text', text }))];
  const [stop, blankStop] = stopsOf(prompt);
  const body = {
    model: target.model,
    max_tokens: maxTokens,
    ...(system.length === 0 ? {} : { system }),
    messages,
    ...(tools.length === 0 ? {} : { tools }),
    ...choiceJson(stubs.length > 0 ? { type: 'none' } : output.choice, prompt, tools.length > 0),
    ...(reasoning.thinking === undefined ? {} : { thinking: reasoning.thinking }),
    ...configJson(reasoning.effort, output.format),
    ...(stop.length === 0 ? {} : { stop_sequences: stop }),
    ...samplingOf(prompt, reasoning.isOn, context),
    ...userOf(prompt, context),
    ...serviceTierOf(prompt, context),
    ...(context.stream ? { stream: true } : {}),
  };
  const mustHide = prompt.reasoning?.visible === false && reasoning.thinking?.['display'] !== 'omitted';
  const mapping: ResponseMapping = {
    names: namer.names,
    wrapped: namer.wrapped,
    ...(output.answerTool === undefined ? {} : { answerTool: output.answerTool }),
    ...(blankStop.length === 0 ? {} : { stop: blankStop }),
    ...(mustHide ? { hideReasoning: true } : {}),
  };
  return { path: '/v1/messages', body: withoutFields(body, context), responseMapping: mapping };
}

/** Stop sequences for the upstream, and sequences of white space alone, which it refuses. */
function stopsOf({ stop = [] }: Prompt): [kept: string[], blank: string[]] {
  return [stop.filter((text) => text.trim() !== ''), stop.filter((text) => text.trim() === '')];
}

function configJson(effort: string | undefined, format: JsonObject | undefined): JsonObject {
  if (effort === undefined && format === undefined) return {};
  return {
    output_config: { ...(effort === undefined ? {} : { effort }), ...(format === undefined ? {} : { format }) },
  };
}

function refuseRequiredParameters({ choices = 1, outputKinds = [] }: Prompt, { dropped }: EncodeContext): void {
  if (choices > 1) dropped.refuse('choices', 'gives one answer at a time');
  if (outputKinds.length > 0) dropped.refuse('outputKinds', 'answers in text alone');
}

const softParameters = [
  'seed',
  'frequencyPenalty',
  'presencePenalty',
  'logitBias',
  'logprobs',
  'verbosity',
  'metadata',
  'imageOptions',
] as const;

function dropSoftParameters(prompt: Prompt, { dropped, traits }: EncodeContext): void {
  for (const parameter of softParameters) if (prompt[parameter] !== undefined) dropped.drop(parameter);
  // Cache marks serve the same purpose as a cache key.
  if (prompt.cacheKey !== undefined && traits.cache_marks === false) dropped.drop('cacheKey');
}

/** The client's limit within the model's; otherwise the model's own. */
function maxTokensOf({ maxOutputTokens }: Prompt, context: EncodeContext): number {
  const most = context.maxOutputTokens;
  if (maxOutputTokens === undefined) return most ?? defaultMaxTokens;
  return most === undefined ? maxOutputTokens : Math.min(maxOutputTokens, most);
}

function choiceJson(choice: EncodedChoice | undefined, { parallelTools }: Prompt, hasTools: boolean): JsonObject {
  if (!hasTools) return {};
  if (parallelTools === false && choice?.type !== 'none')
    return { tool_choice: { ...(choice ?? { type: 'auto' }), disable_parallel_tool_use: true } };
  return choice === undefined ? {} : { tool_choice: choice };
}

/**
 * Temperature takes precedence over top_p, as models accept only one; models with reasoning accept neither, except for a
 * top_p close to 1.
 */
function samplingOf(prompt: Prompt, isThinking: boolean, { traits, dropped }: EncodeContext): JsonObject {
  const { temperature, topP, topK } = prompt;
  const isTaken = traits.sampling ?? true;
  const bounded = temperature === undefined ? undefined : Math.min(temperature, traits.max_temperature ?? 1);
  const takesTopP = isTaken && temperature === undefined && (!isThinking || (topP ?? 0) >= leastThinkingTopP);
  const sampling = {
    ...sampled('temperature', bounded, isTaken && (!isThinking || bounded === 1)),
    ...sampled('top_p', topP, takesTopP),
    ...sampled('top_k', topK, isTaken && !isThinking),
  };
  if (sampling['temperature'] !== temperature) dropped.drop('temperature');
  if (sampling['top_p'] !== topP) dropped.drop('topP');
  if (sampling['top_k'] !== topK) dropped.drop('topK');
  return sampling;
}
const leastThinkingTopP = 0.95;

function sampled(name: string, value: number | undefined, isTaken: boolean): Readonly<Record<string, number>> {
  return value === undefined || !isTaken ? {} : { [name]: value };
}

function userOf({ user }: Prompt, { dropped }: EncodeContext): JsonObject {
  if (user === undefined) return {};
  if (user.length <= maxUserLength) return { metadata: { user_id: user } };
  dropped.drop('user');
  return {};
}

const serviceTiers: Readonly<Record<string, JsonObject>> = table({
  auto: { service_tier: 'auto' },
  // Accounts with priority capacity use it by default here; the protocol has no value that requests it.
  priority: { service_tier: 'auto' },
  default: { service_tier: 'standard_only' },
  standard: { service_tier: 'standard_only' },
  fast: { speed: 'fast' },
});

function serviceTierOf({ serviceTier }: Prompt, { dropped }: EncodeContext): JsonObject {
  if (serviceTier === undefined) return {};
  if (Object.hasOwn(serviceTiers, serviceTier)) return serviceTiers[serviceTier]!;
  dropped.drop('serviceTier');
  return {};
}

/** Client names of the members that a provider may not accept. */
const settings: Readonly<Record<string, Setting>> = table({
  tools: 'tools',
  tool_choice: 'toolChoice',
  thinking: 'reasoning',
  output_config: 'output',
  stop_sequences: 'stop',
  temperature: 'temperature',
  top_p: 'topP',
  top_k: 'topK',
  metadata: 'user',
  service_tier: 'serviceTier',
  speed: 'serviceTier',
});

function withoutFields(body: JsonObject, { target, dropped }: EncodeContext): JsonObject {
  const fields = target.upstream.dropFields['messages'] ?? [];
  if (fields.length === 0) return body;
  for (const name of fields) if (body[name] !== undefined && settings[name]) dropped.drop(settings[name]);
  return Object.fromEntries(Object.entries(body).filter(([name]) => !fields.includes(name)));
}

/** What the provider's setting says, else its trait. */
function marksFor({ target, traits }: EncodeContext): 'auto' | 'client' | 'off' {
  return target.upstream.cacheMarks ?? (traits.cache_marks === false ? 'off' : 'auto');
}
