/** Encodes a prompt as a chat request for one upstream. */

import type { JsonObject } from '../../../../../core/json/json.ts';
import type { EncodeContext, EncodedRequest } from '../../../../common/canonical/codec.ts';
import type { Prompt, Setting } from '../../../../common/canonical/prompt.ts';
import { ToolNamer } from '../../../../common/encoding/tool-names.ts';
import { encodeMessages } from './messages.ts';
import { encodeOutput } from './output.ts';
import { encodeReasoning } from './reasoning.ts';
import { encodeSettings } from './settings.ts';
import { encodeTools } from './tools.ts';

/** Bounds of function names. */
const nameLimits = { allowed: /[A-Za-z0-9_-]/, maxLength: 64 };
/** Maximum stop sequences in the protocol; the gateway matches further ones itself. */
const maxStops = 4;

/** Throws what `DroppedParameters.refuse` throws for parameters that cannot be honoured. */
export function encodeRequest(prompt: Prompt, context: EncodeContext): EncodedRequest {
  const namer = new ToolNamer(nameLimits);
  const tools = encodeTools(prompt, context, namer);
  const output = encodeOutput(prompt, context, namer, tools);
  const instructions = [...tools.instructions, ...output.instructions];
  const declared = output.tools ?? tools.members;
  const takesStop = !isDropped('stop', context);
  const stops = prompt.stop ?? [];
  const ownStops = takesStop ? stops.slice(maxStops) : stops;
  const body: JsonObject = {
    model: context.target.model,
    messages: encodeMessages(prompt.turns, context, namer, instructions),
    ...declared,
    ...output.members,
    ...encodeSettings(prompt, context),
    ...encodeReasoning(prompt.reasoning, context, prompt.maxOutputTokens, declared['tools'] !== undefined),
    ...(takesStop && stops.length > 0 ? { stop: stops.slice(0, maxStops) } : {}),
    ...streamMembers(context),
  };
  return {
    path: '/chat/completions',
    body: withoutDropped(body, context),
    responseMapping: {
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

/** Canonical parameter of each member that an upstream may not accept. */
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
/** Parameters with a client value that is already in this protocol's own form. */
const sameName = new Set(['temperature', 'seed', 'logprobs', 'verbosity', 'user', 'metadata', 'tools']);
/** Parameters that must not be dropped: the answer would be a different one. */
const requiredParameters = new Set<Setting>(['choices', 'output', 'tools', 'outputKinds']);

/** Removes members that the provider's config declares as not accepted and records them by the client's names. */
function withoutDropped(body: JsonObject, { target, dropped }: EncodeContext): JsonObject {
  const kept: Record<string, unknown> = { ...body };
  for (const field of target.upstream.dropFields['chat'] ?? []) {
    if (!Object.hasOwn(kept, field)) continue;
    const setting = settingOf[field] ?? (sameName.has(field) ? (field as Setting) : undefined);
    delete kept[field];
    if (setting === undefined) dropped.dropField(field);
    else if (requiredParameters.has(setting)) dropped.refuse(setting, `does not take "${field}"`);
    else dropped.drop(setting);
  }
  return kept;
}
