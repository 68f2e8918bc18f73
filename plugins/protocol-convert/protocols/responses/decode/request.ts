/** Decodes a client's responses request into the canonical format. Throws invalid_request that names the field. */
import { GatewayError } from '../../../../../core/contract/errors.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { DecodeContext } from '../../../../common/canonical/codec.ts';
import { hasEffect, notTranslatable } from '../../../../common/canonical/dropped-parameters.ts';
import type { OutputForm, Prompt, ReasoningSettings, Tool, ToolChoice } from '../../../../common/canonical/prompt.ts';
import { type Effort, efforts } from '../../../../common/domain/traits.ts';
import { countOf, invalid } from '../../../request/checks.ts';
import { booleanMember, listMember, numberMember, objectMember, textMember } from '../../../request/members.ts';
import { recordUnread } from '../../../request/shapes.ts';
import { type WrittenNames, writtenName } from '../../../request/written-names.ts';
import { requestShape } from '../shapes.ts';
import { InputDecoder } from './input.ts';
import { decodeToolChoice, decodeTools } from './tools.ts';

/** Members that are decoded here, handled by the gateway itself, or without effect on the answer. */
const known = new Set(
  `model input instructions previous_response_id conversation prompt store background stream stream_options include
  metadata max_output_tokens parallel_tool_calls temperature top_p top_logprobs tools tool_choice text reasoning
  service_tier safety_identifier user prompt_cache_key truncation client_metadata generate`.split(/\s+/),
);

/** Members that affect the form, routing or accounting of an answer and nothing that the model sees. */
const softParameters = new Set(
  `access_programs image context_management moderation prompt_cache_options prompt_cache_retention cache_control provider
  providers models route transforms usage session_id trace debug preset priority request_id user_id labels tags
  cache_salt caching cache timeout num_retries max_retries fallbacks drop_params extra_headers chat_template_kwargs
  repetition_penalty min_p top_k seed stop_token_ids ignore_eos skip_special_tokens include_stop_str_in_output
  enable_response_messages litellm_metadata litellm_session_id litellm_trace_id`.split(/\s+/),
);

const writtenNames: WrittenNames = { safety_identifier: { names: ['safety_identifier', 'user'] } };

export function decodeRequest(json: JsonObject, context: DecodeContext): Prompt {
  context.dropped.spellWith((name) => writtenName(json, writtenNames, name));
  refuseKeptState(json);
  objectMember(json, 'stream_options');
  const decoder = new InputDecoder(context);
  decoder.decode(json['instructions'], 'instructions', 'system');
  decoder.decode(json['input'], 'input', 'user');
  decoder.requireCalls();
  const tools = [...decodeTools(json['tools'], 'tools'), ...decoder.tools];
  const text = updated(json, decoder, 'text');
  noteUnknown(json, context);
  noteToolOptions(json['tools'], context);
  return {
    turns: decoder.turns,
    tools,
    ...toolSettings(json, tools),
    ...numbers(json),
    ...present('logprobs', decodeLogprobs(json)),
    ...present('verbosity', textMember(text, 'verbosity', 'text.verbosity')),
    ...present('reasoning', decodeReasoning(updated(json, decoder, 'reasoning'), context)),
    ...present('output', decodeFormat(objectMember(text, 'format', 'text.format'))),
    ...labels(json),
    ...imageOptions(json['tools']),
  };
}

/** Image options, which this protocol puts on the image tool. */
function imageOptions(tools: unknown): Partial<Prompt> {
  const tool = listOf(tools).find((given) => objectOf(given)?.['type'] === 'image_generation');
  const { type: _type, ...options } = objectOf(tool) ?? {};
  return Object.keys(options).length === 0 ? {} : { imageOptions: options };
}

/** State that the gateway stores is inserted before a request is decoded; a remaining reference is unknown. */
function refuseKeptState(json: JsonObject): void {
  const id = json['previous_response_id'];
  if (id !== undefined && id !== null) {
    const field = 'previous_response_id';
    throw new GatewayError('invalid_request', `The field "${field}" names no answer that is kept here.`, {
      field,
      code: 'previous_response_not_found',
    });
  }
  for (const field of ['conversation', 'prompt']) {
    if (json[field] === undefined || json[field] === null) continue;
    throw notTranslatable(
      `The field "${field}" cannot be honoured: this model keeps nothing. Send everything as "input".`,
      field,
    );
  }
}

/** A member that is an object, with the changes from input items. */
function updated(json: JsonObject, decoder: InputDecoder, member: string): JsonObject {
  const value = json[member];
  if (value !== undefined && value !== null && !isObject(value)) {
    throw invalid(`The field "${member}" must be an object.`, member);
  }
  return { ...objectOf(value), ...decoder.updates[member] };
}

function toolSettings(json: JsonObject, tools: readonly Tool[]): { toolChoice?: ToolChoice; parallelTools?: boolean } {
  const toolChoice = decodeToolChoice(json['tool_choice'], tools);
  return {
    // Without tools there is no choice; clients still send `auto`.
    ...(toolChoice === undefined || tools.length === 0 ? {} : { toolChoice }),
    ...(booleanMember(json, 'parallel_tool_calls') === false ? { parallelTools: false } : {}),
  };
}

function numbers(json: JsonObject): Partial<Prompt> {
  return {
    ...present('maxOutputTokens', countOf(json, 'max_output_tokens', 1)),
    ...present('temperature', numberMember(json, 'temperature', 0, 2)),
    ...present('topP', numberMember(json, 'top_p', 0, 1)),
  };
}

function labels(json: JsonObject): Partial<Prompt> {
  const metadata = objectMember(json, 'metadata');
  const serviceTier = textMember(json, 'service_tier');
  return {
    ...present('user', textMember(json, 'safety_identifier') ?? textMember(json, 'user')),
    ...(metadata === undefined || Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(serviceTier === undefined || serviceTier === 'auto' ? {} : { serviceTier }),
    ...present('cacheKey', textMember(json, 'prompt_cache_key')),
  };
}

function decodeLogprobs(json: JsonObject): number | undefined {
  const top = countOf(json, 'top_logprobs', 0);
  const isIncluded = listOf(json['include']).includes('message.output_text.logprobs');
  return isIncluded || (top ?? 0) > 0 ? (top ?? 0) : undefined;
}

function decodeReasoning(reasoning: JsonObject, { dropped }: DecodeContext): ReasoningSettings | undefined {
  const effort = textMember(reasoning, 'effort', 'reasoning.effort');
  if (effort !== undefined && !efforts.some((name) => name === effort)) {
    throw invalid(`The field "reasoning.effort" must be one of ${efforts.join(', ')}.`, 'reasoning.effort');
  }
  const summary = textMember(reasoning, 'summary', 'reasoning.summary') ?? textOf(reasoning['generate_summary']);
  if ((textOf(reasoning['mode']) ?? 'standard') !== 'standard') dropped.dropField('reasoning.mode');
  if ((textOf(reasoning['context']) ?? 'auto') !== 'auto') dropped.dropField('reasoning.context');
  if (effort === undefined && summary === undefined) return undefined;
  return {
    ...(effort === undefined ? {} : { effort: effort as Effort }),
    ...(summary === undefined ? {} : { visible: summary !== 'none' }),
  };
}

function decodeFormat(format: JsonObject | undefined): OutputForm | undefined {
  switch (format?.['type']) {
    case undefined:
    case 'text':
      return undefined;
    case 'json_object':
      return { form: 'json' };
    case 'json_schema':
      return decodeSchema(format);
    default:
      throw invalid('The field "text.format.type" must be one of text, json_object, json_schema.', 'text.format.type');
  }
}

function decodeSchema(format: JsonObject): OutputForm {
  const schema = objectOf(format['schema']);
  if (schema === undefined) throw invalid('The field "text.format.schema" must be an object.', 'text.format.schema');
  return {
    form: 'schema',
    name: textMember(format, 'name', 'text.format.name'),
    ...present('description', textOf(format['description'])),
    schema,
    ...present('strict', booleanMember(format, 'strict', 'text.format.strict')),
  };
}

/** Parts of the answer that are always present, or that belong to tools with a record of their own. */
const harmlessIncludes = new Set([
  'reasoning.encrypted_content',
  'message.output_text.logprobs',
  'web_search_call.action.sources',
  'web_search_call.results',
]);

function noteUnknown(json: JsonObject, { dropped }: DecodeContext): void {
  if (listMember(json, 'include').some((name) => typeof name === 'string' && !harmlessIncludes.has(name))) {
    dropped.dropField('include');
  }
  if (textMember(json, 'truncation') === 'auto') dropped.dropField('truncation');
  recordUnread(json, requestShape, dropped);
  for (const [name, value] of Object.entries(json)) {
    if (!known.has(name)) dropped.unknown(name, value, softParameters);
  }
}

const searchMembers = new Set(['type', 'filters', 'search_context_size', 'user_location', 'external_web_access']);

/** Settings of hosted tools that other tools do not have. */
function noteToolOptions(tools: unknown, { dropped }: DecodeContext): void {
  for (const tool of listOf(tools).filter(isObject)) {
    const type = textOf(tool['type']) ?? '';
    const isSearch = type.startsWith('web_search');
    for (const [member, value] of Object.entries(tool))
      if (isSearch && !searchMembers.has(member) && hasEffect(value)) dropped.dropField(`${type}.${member}`);
    const container = tool['container'] ?? { type: 'auto' };
    if (type === 'code_interpreter' && !(isObject(container) && Object.keys(container).length === 1))
      dropped.dropField(`${type}.container`);
  }
}

/** The member if it has a value, otherwise nothing. */
function present<Name extends string, Value>(name: Name, value: Value | undefined): { [K in Name]?: Value } {
  return value === undefined ? {} : ({ [name]: value } as { [K in Name]?: Value });
}
