/** Decodes a chat request into the canonical format. messages.ts and tools.ts decode messages and tools. */

import { isObject, type JsonObject, listOf } from '../../../../../core/json/json.ts';
import type { DecodeContext } from '../../../../common/canonical/codec.ts';
import type { DroppedParameters } from '../../../../common/canonical/dropped-parameters.ts';
import type { OutputForm, Prompt } from '../../../../common/canonical/prompt.ts';
import { countOf, invalid, requireFilled } from '../../../request/checks.ts';
import {
  booleanMember,
  integerMember,
  listMember,
  numberMember,
  objectMember,
  present,
  textMember,
} from '../../../request/members.ts';
import { recordUnread } from '../../../request/shapes.ts';
import { type WrittenNames, writtenName } from '../../../request/written-names.ts';
import { requestShape } from '../shapes.ts';
import { decodeMessages } from './messages.ts';
import { decodeReasoningSettings, reasoningFields } from './reasoning.ts';
import { decodeTools } from './tools.ts';

/** Members that are decoded, or that request nothing that a translated answer would lack. */
const knownFields = new Set([
  ...['model', 'messages', 'stream', 'stream_options', 'max_tokens', 'max_completion_tokens', 'temperature', 'top_p'],
  ...['top_k', 'stop', 'n', 'seed', 'frequency_penalty', 'presence_penalty', 'logit_bias', 'logprobs', 'top_logprobs'],
  ...['verbosity', 'response_format', 'user', 'safety_identifier', 'metadata', 'service_tier', 'prompt_cache_key'],
  ...['modalities', 'audio', 'image_config', 'tools', 'tool_choice', 'parallel_tool_calls', 'functions'],
  ...['function_call', 'web_search_options', ...reasoningFields],
]);

/** Names of settings beside the official one, as compatible servers and older clients have them. */
const writtenNames: WrittenNames = {
  reasoning_effort: { names: reasoningFields },
  reasoning_content: {
    names: ['reasoning_content', 'reasoning', 'reasoning_details', 'thinking_blocks'],
    in: 'messages',
  },
  prompt_cache_breakpoint: { names: ['prompt_cache_breakpoint', 'cache_control'], in: 'anywhere' },
  max_completion_tokens: { names: ['max_completion_tokens', 'max_tokens'] },
  safety_identifier: { names: ['safety_identifier', 'user'] },
  tool_choice: { names: ['tool_choice', 'function_call'] },
  tools: { names: ['tools', 'functions'] },
};

export function decodeRequest(json: JsonObject, context: DecodeContext): Prompt {
  context.dropped.spellWith((name) => writtenName(json, writtenNames, name));
  checkFlags(json);
  noteUnknown(json, context.dropped);
  noteUseless(json, context.dropped);
  const { tools, ...choices } = decodeTools(json, context.dropped);
  return {
    turns: decodeMessages(requireFilled(json, 'messages'), context),
    tools,
    ...choices,
    ...present({
      maxOutputTokens: countOf(json, 'max_completion_tokens', 1) ?? countOf(json, 'max_tokens', 1),
      temperature: numberMember(json, 'temperature', 0, 2),
      topP: numberMember(json, 'top_p', 0, 1),
      topK: integerMember(json, 'top_k'),
      stop: stopTexts(json),
      choices: countOf(json, 'n', 1),
      seed: integerMember(json, 'seed'),
      frequencyPenalty: numberMember(json, 'frequency_penalty', -2, 2),
      presencePenalty: numberMember(json, 'presence_penalty', -2, 2),
      logitBias: filled(objectMember(json, 'logit_bias')),
      logprobs: booleanMember(json, 'logprobs') === true ? (countOf(json, 'top_logprobs', 0) ?? 0) : undefined,
      verbosity: textMember(json, 'verbosity'),
      reasoning: decodeReasoningSettings(json),
      output: outputForm(json),
      user: textMember(json, 'safety_identifier') ?? textMember(json, 'user'),
      metadata: filled(objectMember(json, 'metadata')),
      serviceTier: textMember(json, 'service_tier'),
      cacheKey: textMember(json, 'prompt_cache_key'),
      ...outputKinds(json),
    }),
  };
}

/** Members that are decoded elsewhere, or always recorded as dropped. */
function checkFlags(json: JsonObject): void {
  booleanMember(json, 'store');
  const options = objectMember(json, 'stream_options');
  if (options !== undefined) booleanMember(options, 'include_usage', 'stream_options.include_usage');
}

/** Records or refuses members that are not decoded. */
function noteUnknown(json: JsonObject, dropped: DroppedParameters): void {
  recordUnread(json, requestShape, dropped);
  for (const [field, value] of Object.entries(json))
    if (!knownFields.has(field)) dropped.unknown(field, value, softParameters);
}

/** Members that have no effect without another member. */
function noteUseless(json: JsonObject, dropped: DroppedParameters): void {
  const modalities = listOf(json['modalities']);
  if (isObject(json['audio']) && !modalities.includes('audio')) dropped.dropField('audio');
  if (isObject(json['image_config']) && !modalities.includes('image')) dropped.dropField('image_config');
  if (json['logprobs'] !== true && typeof json['top_logprobs'] === 'number' && json['top_logprobs'] > 0)
    dropped.dropField('top_logprobs');
}

function filled(object: JsonObject | undefined): JsonObject | undefined {
  return object === undefined || Object.keys(object).length === 0 ? undefined : object;
}

function stopTexts(json: JsonObject): readonly string[] | undefined {
  const value = json['stop'] ?? undefined;
  if (value === undefined) return undefined;
  const texts = typeof value === 'string' ? [value] : listOf(value);
  if (typeof value !== 'string' && !Array.isArray(value))
    throw invalid('The field "stop" must be a string or a list of strings.', 'stop');
  for (const [index, text] of texts.entries())
    if (typeof text !== 'string') throw invalid(`The field "stop[${index}]" must be a string.`, `stop[${index}]`);
  const useful = (texts as readonly string[]).filter((text) => text !== '');
  return useful.length === 0 ? undefined : useful;
}

function outputForm(json: JsonObject): OutputForm | undefined {
  const format = objectMember(json, 'response_format');
  if (format === undefined || format['type'] === 'text') return undefined;
  if (format['type'] === 'json_object') return { form: 'json' };
  if (format['type'] !== 'json_schema')
    throw invalid('The field "response_format.type" must be text, json_object or json_schema.', 'response_format.type');
  const field = 'response_format.json_schema';
  // Some clients put the schema one level higher than the protocol says.
  const definition = objectMember(format, 'json_schema', field) ?? format;
  const schema = definition['schema'];
  if (!isObject(schema)) throw invalid(`The field "${field}.schema" must be an object.`, `${field}.schema`);
  return {
    form: 'schema',
    name: textMember(definition, 'name', `${field}.name`),
    schema,
    ...present({
      description: textMember(definition, 'description', `${field}.description`),
      strict: booleanMember(definition, 'strict', `${field}.strict`),
    }),
  };
}

function outputKinds(json: JsonObject): {
  outputKinds: readonly ('image' | 'audio')[] | undefined;
  audioOptions: JsonObject | undefined;
  imageOptions: JsonObject | undefined;
} {
  const kinds: ('image' | 'audio')[] = [];
  for (const [index, kind] of listMember(json, 'modalities').entries()) {
    if (kind === 'image' || kind === 'audio') kinds.push(kind);
    else if (kind !== 'text')
      throw invalid(`The field "modalities[${index}]" must be text, audio or image.`, `modalities[${index}]`);
  }
  return {
    outputKinds: kinds.length > 0 ? kinds : undefined,
    audioOptions: kinds.includes('audio') ? objectMember(json, 'audio') : undefined,
    imageOptions: kinds.includes('image') ? imageOptions(objectMember(json, 'image_config')) : undefined,
  };
}

/** Canonical names of image options, by member of `image_config`; other members keep their names. */
const imageNames = new Map([
  ['aspect_ratio', 'aspectRatio'],
  ['image_size', 'imageSize'],
]);

function imageOptions(config: JsonObject | undefined): JsonObject | undefined {
  if (config === undefined) return undefined;
  return Object.fromEntries(Object.entries(config).map(([name, value]) => [imageNames.get(name) ?? name, value]));
}

/**
 * They affect the form, routing or accounting of an answer and nothing that the model sees: they are dropped and named. Any
 * other unknown member may hold text, files or searches, and is refused.
 */
const softParameters: ReadonlySet<string> = new Set([
  // The vendor's own.
  ...['store', 'prediction', 'moderation', 'prompt_cache_options', 'prompt_cache_retention', 'cache_control'],
  // Sampling and stopping of open model servers.
  ...['min_p', 'top_a', 'typical_p', 'tfs', 'epsilon_cutoff', 'eta_cutoff', 'mirostat', 'mirostat_mode'],
  ...['repetition_penalty', 'repeat_penalty', 'length_penalty', 'no_repeat_ngram_size', 'dynamic_temperature'],
  ...['best_of', 'use_beam_search', 'num_beams', 'early_stopping', 'do_sample', 'random_seed', 'ignore_eos'],
  ...['min_tokens', 'stop_token_ids', 'bad_words', 'include_stop_str_in_output', 'skip_special_tokens'],
  ...['spaces_between_special_tokens', 'allowed_token_ids', 'logits_processors', 'prompt_logprobs', 'echo'],
  ...['add_generation_prompt', 'add_special_tokens', 'return_tokens_as_token_ids', 'return_token_ids'],
  ...['chat_template_kwargs', 'options', 'keep_alive', 'think', 'cache_prompt', 'id_slot', 'n_predict'],
  // Forms of reasoning, streams and calls.
  ...['reasoning_format', 'reasoning_split', 'separate_reasoning', 'stream_reasoning', 'preserve_thinking'],
  ...['tool_stream', 'stream_tool_calls', 'disable_tool_validation', 'incremental_output', 'result_format'],
  ...['prompt_mode', 'safe_prompt', 'safety_model', 'safety_settings', 'compliance', 'mask_sensitive_info'],
  ...['sensitive_word_check', 'citation_options', 'return_citations', 'return_related_questions'],
  // Routing, accounting and tracing of gateways.
  ...['provider', 'providers', 'models', 'route', 'transforms', 'usage', 'session_id', 'trace', 'debug', 'preset'],
  ...['priority', 'request_id', 'user_id', 'labels', 'tags', 'cache_salt', 'caching', 'cache', 'timeout'],
  ...['num_retries', 'max_retries', 'fallbacks', 'drop_params', 'additional_drop_params', 'allowed_openai_params'],
  ...['mock_response', 'litellm_metadata', 'litellm_session_id', 'litellm_trace_id', 'extra_headers', 'betas'],
  ...['api_version', 'anthropic_version', 'client_metadata', 'inference_geo', 'performanceConfig', 'trafficType'],
]);
