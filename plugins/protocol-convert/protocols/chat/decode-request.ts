/** Reads a chat request into the common tongue: its settings; messages and tools have rooms of their own. */
import type { OutputForm, Prompt } from '../../canon.ts';
import { countOf, invalid, requireFilled } from '../../checks.ts';
import type { DecodeContext } from '../../codec.ts';
import { isObject, type JsonObject, listOf } from '../../json.ts';
import type { Losses } from '../../losses.ts';
import {
  booleanMember,
  integerMember,
  listMember,
  numberMember,
  objectMember,
  present,
  textMember,
} from '../../members.ts';
import { decodeMessages } from './decode-messages.ts';
import { reasoningFields, reasoningWish } from './decode-reasoning.ts';
import { decodeTools } from './decode-tools.ts';

/** Members that are read somewhere, or that ask for nothing that a translated answer would lack. */
const knownFields = new Set([
  ...['model', 'messages', 'stream', 'stream_options', 'max_tokens', 'max_completion_tokens', 'temperature', 'top_p'],
  ...['top_k', 'stop', 'n', 'seed', 'frequency_penalty', 'presence_penalty', 'logit_bias', 'logprobs', 'top_logprobs'],
  ...['verbosity', 'response_format', 'user', 'safety_identifier', 'metadata', 'service_tier', 'prompt_cache_key'],
  ...['modalities', 'audio', 'image_config', 'tools', 'tool_choice', 'parallel_tool_calls', 'functions'],
  ...['function_call', 'web_search_options', ...reasoningFields],
]);

export function decodeRequest(json: JsonObject, context: DecodeContext): Prompt {
  checkFlags(json);
  noteUnknown(json, context.losses);
  noteUseless(json, context.losses);
  const { tools, ...choices } = decodeTools(json, context.losses);
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
      reasoning: reasoningWish(json),
      output: outputForm(json),
      user: textMember(json, 'safety_identifier') ?? textMember(json, 'user'),
      metadata: filled(objectMember(json, 'metadata')),
      serviceTier: textMember(json, 'service_tier'),
      cacheKey: textMember(json, 'prompt_cache_key'),
      ...outputKinds(json),
    }),
  };
}

/** Members that are read elsewhere, or noted as lost, whatever they are. */
function checkFlags(json: JsonObject): void {
  booleanMember(json, 'store');
  const options = objectMember(json, 'stream_options');
  if (options !== undefined) booleanMember(options, 'include_usage', 'stream_options.include_usage');
}

/** Names what nobody will read, where it asks for something. */
function noteUnknown(json: JsonObject, losses: Losses): void {
  for (const [field, value] of Object.entries(json)) {
    if (knownFields.has(field) || value === null || value === false || value === '') continue;
    const isEmpty = typeof value === 'object' && Object.keys(value as object).length === 0;
    if (!isEmpty) losses.dropField(field);
  }
}

/** Members that mean nothing without another one. */
function noteUseless(json: JsonObject, losses: Losses): void {
  const modalities = listOf(json['modalities']);
  if (isObject(json['audio']) && !modalities.includes('audio')) losses.dropField('audio');
  if (isObject(json['image_config']) && !modalities.includes('image')) losses.dropField('image_config');
  if (json['logprobs'] !== true && typeof json['top_logprobs'] === 'number' && json['top_logprobs'] > 0)
    losses.dropField('top_logprobs');
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
  // Some clients write the schema one level higher than they should.
  const told = objectMember(format, 'json_schema', field) ?? format;
  const schema = told['schema'];
  if (!isObject(schema)) throw invalid(`The field "${field}.schema" must be an object.`, `${field}.schema`);
  return {
    form: 'schema',
    name: textMember(told, 'name', `${field}.name`),
    schema,
    ...present({
      description: textMember(told, 'description', `${field}.description`),
      strict: booleanMember(told, 'strict', `${field}.strict`),
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
    imageOptions: kinds.includes('image') ? objectMember(json, 'image_config') : undefined,
  };
}
