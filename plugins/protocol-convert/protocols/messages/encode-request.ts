/** Words a Prompt as a request for an upstream of the messages protocol. Pure. */
import type { Prompt, Setting } from '../../canon.ts';
import type { EncodeContext, EncodedRequest, WayBack } from '../../codec.ts';
import type { JsonObject } from '../../json.ts';
import { ToolNamer } from '../../wording/tool-names.ts';
import { placeCacheMarks } from './cache-marks.ts';
import { encodeOutput } from './encode-output.ts';
import { encodeReasoning } from './encode-reasoning.ts';
import { type EncodedChoice, encodeTools, stubTools, toolNameLimits } from './encode-tools.ts';
import { encodeTurns } from './encode-turns.ts';

/** The protocol wants a bound on every answer; this is for models of which nobody knows theirs. */
const defaultMaxTokens = 8_192;
/** Longer names of users are refused. */
const maxUserLength = 256;

/** Throws what `Losses.refuse` throws. */
export function encodeRequest(prompt: Prompt, context: EncodeContext): EncodedRequest {
  const { traits, target } = context;
  refusePromises(prompt, context);
  dropHints(prompt, context);
  const namer = new ToolNamer(toolNameLimits);
  const declared = encodeTools(prompt, namer, context);
  const maxTokens = maxTokensOf(prompt, context);
  const wantsThinking = prompt.reasoning !== undefined && prompt.reasoning.effort !== 'none';
  const mayPrefill = traits.prefill === true && !wantsThinking;
  const turns = encodeTurns(prompt.turns, { target: context, namer }, mayPrefill);
  const reasoning = encodeReasoning(prompt.reasoning, context, maxTokens, turns.messages);
  const output = encodeOutput(prompt, declared, reasoning, namer, context);
  const stubs = output.tools.length === 0 ? stubTools(prompt, namer) : [];
  const marks = placeCacheMarks({ ...turns, tools: [...output.tools, ...stubs] }, traits.cache_marks ?? true);
  if (marks.lost) context.losses.drop('cacheMarks');
  const { messages, tools } = marks.request;
  // Behind the last mark: what is said of this answer alone must not change what the cache holds.
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
  const way: WayBack = {
    names: namer.names,
    wrapped: namer.wrapped,
    ...(output.answerTool === undefined ? {} : { answerTool: output.answerTool }),
    ...(blankStop.length === 0 ? {} : { stop: blankStop }),
    ...(mustHide ? { hideReasoning: true } : {}),
  };
  return { path: '/v1/messages', body: withoutFields(body, context), way };
}

/** Texts that the upstream stops at; and those of white space alone, which it refuses. */
function stopsOf({ stop = [] }: Prompt): [told: string[], blank: string[]] {
  return [stop.filter((text) => text.trim() !== ''), stop.filter((text) => text.trim() === '')];
}

function configJson(effort: string | undefined, format: JsonObject | undefined): JsonObject {
  if (effort === undefined && format === undefined) return {};
  return {
    output_config: { ...(effort === undefined ? {} : { effort }), ...(format === undefined ? {} : { format }) },
  };
}

function refusePromises({ choices = 1, outputKinds = [] }: Prompt, { losses }: EncodeContext): void {
  if (choices > 1) losses.refuse('choices', 'gives one answer at a time');
  if (outputKinds.length > 0) losses.refuse('outputKinds', 'answers in text alone');
}

const hints = [
  'seed',
  'frequencyPenalty',
  'presencePenalty',
  'logitBias',
  'logprobs',
  'verbosity',
  'metadata',
] as const;

function dropHints(prompt: Prompt, { losses, traits }: EncodeContext): void {
  for (const hint of hints) if (prompt[hint] !== undefined) losses.drop(hint);
  // Marks serve a cache as well as its key does.
  if (prompt.cacheKey !== undefined && traits.cache_marks === false) losses.drop('cacheKey');
}

/** The client's bound within the model's; else the model's own. */
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

/** Temperature beats top_p, which models take one of; who thinks takes neither, but for a top_p that hardly cuts anything. */
function samplingOf(prompt: Prompt, isThinking: boolean, { traits, losses }: EncodeContext): JsonObject {
  const { temperature, topP, topK } = prompt;
  const isTaken = traits.sampling ?? true;
  const sampling: Record<string, number> = {};
  if (temperature !== undefined) {
    const bounded = Math.min(temperature, traits.max_temperature ?? 1);
    if (isTaken && (!isThinking || bounded === 1)) sampling['temperature'] = bounded;
    if (sampling['temperature'] !== temperature) losses.drop('temperature');
  }
  if (topP !== undefined) {
    if (isTaken && temperature === undefined && (!isThinking || topP >= leastThinkingTopP)) sampling['top_p'] = topP;
    else losses.drop('topP');
  }
  if (topK !== undefined) {
    if (isTaken && !isThinking) sampling['top_k'] = topK;
    else losses.drop('topK');
  }
  return sampling;
}
const leastThinkingTopP = 0.95;

function userOf({ user }: Prompt, { losses }: EncodeContext): JsonObject {
  if (user === undefined) return {};
  if (user.length <= maxUserLength) return { metadata: { user_id: user } };
  losses.drop('user');
  return {};
}

const serviceTiers: Readonly<Record<string, JsonObject>> = {
  auto: { service_tier: 'auto' },
  // Whoever has bought priority gets it by default here; the protocol has no word that asks for it.
  priority: { service_tier: 'auto' },
  default: { service_tier: 'standard_only' },
  standard: { service_tier: 'standard_only' },
  fast: { speed: 'fast' },
};

function serviceTierOf({ serviceTier }: Prompt, { losses }: EncodeContext): JsonObject {
  if (serviceTier === undefined) return {};
  if (Object.hasOwn(serviceTiers, serviceTier)) return serviceTiers[serviceTier]!;
  losses.drop('serviceTier');
  return {};
}

/** What the client called the members that a provider may not take. */
const settings: Readonly<Record<string, Setting>> = {
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
};

function withoutFields(body: JsonObject, { target, losses }: EncodeContext): JsonObject {
  const fields = target.upstream.dropFields['messages'] ?? [];
  if (fields.length === 0) return body;
  for (const name of fields) if (body[name] !== undefined && settings[name]) losses.drop(settings[name]);
  return Object.fromEntries(Object.entries(body).filter(([name]) => !fields.includes(name)));
}
