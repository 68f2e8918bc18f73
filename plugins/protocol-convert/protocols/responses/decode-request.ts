/** Reads a client's responses request into the common tongue. Throws invalid_request that names the field. */
import { GatewayError } from '../../../../core/errors.ts';
import { type Effort, efforts } from '../../../../core/traits.ts';
import type { OutputForm, Prompt, ReasoningWish, Tool, ToolChoice } from '../../canon.ts';
import { countOf, invalid } from '../../checks.ts';
import type { DecodeContext } from '../../codec.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../json.ts';
import { notTranslatable } from '../../losses.ts';
import { booleanMember, listMember, numberMember, objectMember, textMember } from '../../members.ts';
import { InputReader } from './read-input.ts';
import { readToolChoice, readTools } from './read-tools.ts';

/** Read here, by the gateway itself, or of no consequence for the answer. */
const known = new Set(
  `model input instructions previous_response_id conversation prompt store background stream stream_options include
  metadata max_output_tokens parallel_tool_calls temperature top_p top_logprobs tools tool_choice text reasoning
  service_tier safety_identifier user prompt_cache_key truncation client_metadata generate`.split(/\s+/),
);

export function decodeRequest(json: JsonObject, context: DecodeContext): Prompt {
  refuseKeptState(json);
  objectMember(json, 'stream_options');
  const reader = new InputReader(context);
  reader.read(json['instructions'], 'instructions', 'system');
  reader.read(json['input'], 'input', 'user');
  const tools = [...readTools(json['tools'], 'tools'), ...reader.tools];
  const text = updated(json, reader, 'text');
  noteUnknown(json, context);
  noteToolOptions(json['tools'], context);
  return {
    turns: reader.turns,
    tools,
    ...toolSettings(json, tools),
    ...numbers(json),
    ...present('logprobs', readLogprobs(json)),
    ...present('verbosity', textMember(text, 'verbosity', 'text.verbosity')),
    ...present('reasoning', readReasoning(updated(json, reader, 'reasoning'), context)),
    ...present('output', readFormat(objectMember(text, 'format', 'text.format'))),
    ...labels(json),
    ...imageOptions(json['tools']),
  };
}

/** How pictures are to be, which the tool that draws them says here. */
function imageOptions(tools: unknown): Partial<Prompt> {
  const tool = listOf(tools).find((given) => objectOf(given)?.['type'] === 'image_generation');
  const { type: _type, ...options } = objectOf(tool) ?? {};
  return Object.keys(options).length === 0 ? {} : { imageOptions: options };
}

/** What the gateway keeps is put in place before a request is read; what is still named here is not known. */
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

/** A member that is an object, with the changes that items of the input make to it. */
function updated(json: JsonObject, reader: InputReader, member: string): JsonObject {
  const value = json[member];
  if (value !== undefined && value !== null && !isObject(value)) {
    throw invalid(`The field "${member}" must be an object.`, member);
  }
  return { ...objectOf(value), ...reader.updates[member] };
}

function toolSettings(json: JsonObject, tools: readonly Tool[]): { toolChoice?: ToolChoice; parallelTools?: boolean } {
  const toolChoice = readToolChoice(json['tool_choice']);
  return {
    // Without tools there is nothing to choose: clients send `auto` all the same.
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

function readLogprobs(json: JsonObject): number | undefined {
  const top = countOf(json, 'top_logprobs', 0);
  const isIncluded = listOf(json['include']).includes('message.output_text.logprobs');
  return isIncluded || (top ?? 0) > 0 ? (top ?? 0) : undefined;
}

function readReasoning(reasoning: JsonObject, { losses }: DecodeContext): ReasoningWish | undefined {
  const effort = textMember(reasoning, 'effort', 'reasoning.effort');
  if (effort !== undefined && !efforts.some((name) => name === effort)) {
    throw invalid(`The field "reasoning.effort" must be one of ${efforts.join(', ')}.`, 'reasoning.effort');
  }
  const summary = textMember(reasoning, 'summary', 'reasoning.summary') ?? textOf(reasoning['generate_summary']);
  if ((textOf(reasoning['mode']) ?? 'standard') !== 'standard') losses.dropField('reasoning.mode');
  if ((textOf(reasoning['context']) ?? 'auto') !== 'auto') losses.dropField('reasoning.context');
  if (effort === undefined && summary === undefined) return undefined;
  return {
    ...(effort === undefined ? {} : { effort: effort as Effort }),
    ...(summary === undefined ? {} : { visible: summary !== 'none' }),
  };
}

function readFormat(format: JsonObject | undefined): OutputForm | undefined {
  switch (format?.['type']) {
    case undefined:
    case 'text':
      return undefined;
    case 'json_object':
      return { form: 'json' };
    case 'json_schema':
      return readSchema(format);
    default:
      throw invalid('The field "text.format.type" must be one of text, json_object, json_schema.', 'text.format.type');
  }
}

function readSchema(format: JsonObject): OutputForm {
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

/** Parts of the answer that are always there, or that belong to tools which are noted by themselves. */
const harmlessIncludes = new Set([
  'reasoning.encrypted_content',
  'message.output_text.logprobs',
  'web_search_call.action.sources',
  'web_search_call.results',
]);

function noteUnknown(json: JsonObject, { losses }: DecodeContext): void {
  if (listMember(json, 'include').some((name) => typeof name === 'string' && !harmlessIncludes.has(name))) {
    losses.dropField('include');
  }
  if (textMember(json, 'truncation') === 'auto') losses.dropField('truncation');
  for (const [name, value] of Object.entries(json)) {
    if (!known.has(name) && asksSomething(value)) losses.dropField(name);
  }
}

const searchMembers = new Set(['type', 'filters', 'search_context_size', 'user_location', 'external_web_access']);

/** What tools of the vendor's own may be told that nobody else's are. */
function noteToolOptions(tools: unknown, { losses }: DecodeContext): void {
  for (const tool of listOf(tools).filter(isObject)) {
    const type = textOf(tool['type']) ?? '';
    const isSearch = type.startsWith('web_search');
    for (const [member, value] of Object.entries(tool))
      if (isSearch && !searchMembers.has(member) && asksSomething(value)) losses.dropField(`${type}.${member}`);
    const container = tool['container'] ?? { type: 'auto' };
    if (type === 'code_interpreter' && !(isObject(container) && Object.keys(container).length === 1))
      losses.dropField(`${type}.container`);
  }
}

function asksSomething(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === '') return false;
  if (Array.isArray(value)) return value.length > 0;
  return !isObject(value) || Object.keys(value).length > 0;
}

/** A member where there is a value, nothing where there is none. */
function present<Name extends string, Value>(name: Name, value: Value | undefined): { [K in Name]?: Value } {
  return value === undefined ? {} : ({ [name]: value } as { [K in Name]?: Value });
}
