/** Words a Prompt as a chat request for one upstream. */
import type { Prompt, Setting } from '../../canon.ts';
import type { EncodeContext, EncodedRequest } from '../../codec.ts';
import type { JsonObject } from '../../json.ts';
import { ToolNamer } from '../../wording/tool-names.ts';
import { encodeMessages } from './encode-messages.ts';
import { encodeOutput } from './encode-output.ts';
import { encodeReasoning } from './encode-reasoning.ts';
import { encodeSettings } from './encode-settings.ts';
import { encodeTools } from './encode-tools.ts';

/** Of function names. */
const nameLimits = { allowed: /[A-Za-z0-9_-]/, maxLength: 64 };
/** Texts to stop at that the protocol takes; the gateway looks for the others itself. */
const maxStops = 4;

/** Throws what cannot be honoured, as `Losses.refuse` words it. */
export function encodeRequest(prompt: Prompt, context: EncodeContext): EncodedRequest {
  const namer = new ToolNamer(nameLimits);
  const tools = encodeTools(prompt, context, namer);
  const output = encodeOutput(prompt, context, namer, tools);
  const instructions = [...tools.instructions, ...output.instructions];
  const takesStop = !isDropped('stop', context);
  const stops = prompt.stop ?? [];
  const ownStops = takesStop ? stops.slice(maxStops) : stops;
  const body: JsonObject = {
    model: context.target.model,
    messages: encodeMessages(prompt.turns, context, namer, instructions),
    ...(output.tools ?? tools.members),
    ...output.members,
    ...encodeSettings(prompt, context),
    ...encodeReasoning(prompt.reasoning, context, prompt.maxOutputTokens),
    ...(takesStop && stops.length > 0 ? { stop: stops.slice(0, maxStops) } : {}),
    ...streamMembers(context),
  };
  return {
    path: '/chat/completions',
    body: withoutDropped(body, context),
    way: {
      names: namer.names,
      wrapped: namer.wrapped,
      ...(output.answerTool === undefined ? {} : { answerTool: output.answerTool }),
      ...(ownStops.length === 0 ? {} : { stop: ownStops }),
      ...(prompt.reasoning?.visible === false ? { hideReasoning: true } : {}),
    },
  };
}

function streamMembers(context: EncodeContext): JsonObject {
  if (!context.stream) return {};
  const asksUsage = context.target.upstream.streamUsageOption && !isDropped('stream_options', context);
  return { stream: true, ...(asksUsage ? { stream_options: { include_usage: true } } : {}) };
}

function isDropped(field: string, { target }: EncodeContext): boolean {
  return target.upstream.dropFields['chat']?.includes(field) ?? false;
}

/** What a member that an upstream does not take was asked for as. */
const settingOf: { readonly [field: string]: Setting } = {
  max_tokens: 'maxOutputTokens',
  max_completion_tokens: 'maxOutputTokens',
  top_p: 'topP',
  top_k: 'topK',
  n: 'choices',
  frequency_penalty: 'frequencyPenalty',
  presence_penalty: 'presencePenalty',
  logit_bias: 'logitBias',
  top_logprobs: 'logprobs',
  reasoning_effort: 'reasoning',
  thinking: 'reasoning',
  enable_thinking: 'reasoning',
  thinking_budget: 'reasoning',
  response_format: 'output',
  safety_identifier: 'user',
  service_tier: 'serviceTier',
  prompt_cache_key: 'cacheKey',
  modalities: 'outputKinds',
  audio: 'audioOptions',
  image_config: 'imageOptions',
  tool_choice: 'toolChoice',
  parallel_tool_calls: 'parallelTools',
  web_search_options: 'tools',
};
/** Settings that are the client's own words for the same member. */
const sameName = new Set(['temperature', 'seed', 'logprobs', 'verbosity', 'user', 'metadata', 'tools']);
/** Without them the answer would be another one. */
const promises = new Set<Setting>(['choices', 'output', 'tools', 'outputKinds']);

/** Without what the provider is declared not to take; noted in the client's terms. */
function withoutDropped(body: JsonObject, { target, losses }: EncodeContext): JsonObject {
  const kept: Record<string, unknown> = { ...body };
  for (const field of target.upstream.dropFields['chat'] ?? []) {
    if (!Object.hasOwn(kept, field)) continue;
    const setting = settingOf[field] ?? (sameName.has(field) ? (field as Setting) : undefined);
    delete kept[field];
    if (setting === undefined) losses.dropField(field);
    else if (promises.has(setting)) losses.refuse(setting, `does not take "${field}"`);
    else losses.drop(setting);
  }
  return kept;
}
