/** Encodes a prompt as a request for a responses upstream. Throws what `DroppedParameters.refuse` throws. */
import { table } from '../../../../../core/contract/table.ts';
import type { JsonObject } from '../../../../../core/json/json.ts';
import type { EncodeContext, EncodedRequest } from '../../../../common/canonical/codec.ts';
import type { DroppedParameters } from '../../../../common/canonical/dropped-parameters.ts';
import type { OutputForm, Prompt, Setting } from '../../../../common/canonical/prompt.ts';
import { shortHash } from '../../../../common/encoding/hash.ts';
import { effortOf, nearestEffort } from '../../../../common/encoding/reasoning.ts';
import { isStrict, plainRoot, strictOutput } from '../../../encoding/schemas.ts';
import { encodeInput } from './input.ts';
import { ToolList } from './tools.ts';

/** Minimum output limit that upstreams accept. */
const leastOutputTokens = 16;
/** Maximum length of user names and cache keys that upstreams accept. */
const maxLabelLength = 64;
const answerToolName = 'structured_answer';

export function encodeRequest(prompt: Prompt, context: EncodeContext): EncodedRequest {
  noteUntaken(prompt, context);
  const list = new ToolList(prompt, context);
  const { instructions, input } = encodeInput(prompt.turns, list.namer, context);
  const structure = encodeOutput(prompt, list, context);
  const choice = structure.toolChoice ?? encodeToolChoice(prompt, list, context);
  const orders = [instructions, structure.order, choice.order].filter((text) => text !== undefined);
  const tools = [...list.tools, ...structure.tools];
  const text = {
    ...(structure.format === undefined ? {} : { format: structure.format }),
    ...(prompt.verbosity === undefined ? {} : { verbosity: prompt.verbosity }),
  };
  const body = {
    model: context.target.model,
    ...(orders.length === 0 ? {} : { instructions: orders.join('\n\n') }),
    input,
    ...(tools.length === 0 ? {} : { tools }),
    ...(choice.value === undefined ? {} : { tool_choice: choice.value }),
    ...(prompt.parallelTools === false && tools.length > 0 ? { parallel_tool_calls: false } : {}),
    ...encodeNumbers(prompt, context),
    ...(Object.keys(text).length === 0 ? {} : { text }),
    ...encodeReasoning(prompt, context),
    ...encodeLabels(prompt, context),
    ...encodeStored(prompt, context),
    ...(context.stream ? { stream: true } : {}),
  };
  const mapping = {
    names: list.namer.names,
    wrapped: list.namer.wrapped,
    ...(structure.answerTool === undefined ? {} : { answerTool: structure.answerTool }),
    ...(prompt.stop === undefined || prompt.stop.length === 0 ? {} : { stop: prompt.stop }),
    ...(prompt.reasoning?.visible === false ? { hideReasoning: true } : {}),
  };
  return { path: '/responses', body: withoutUnwanted(body, context), responseMapping: mapping };
}

/** The protocol has no members for these. */
function noteUntaken(prompt: Prompt, { dropped }: EncodeContext): void {
  if ((prompt.choices ?? 1) > 1) dropped.refuse('choices', 'gives one answer at a time');
  if (prompt.outputKinds?.includes('audio') === true) dropped.refuse('outputKinds', 'does not answer in sound');
  for (const setting of ['topK', 'seed', 'frequencyPenalty', 'presencePenalty', 'logitBias'] as const) {
    if (prompt[setting] !== undefined) dropped.drop(setting);
  }
}

function encodeNumbers(
  prompt: Prompt,
  { traits, dropped, maxOutputTokens: most = Infinity }: EncodeContext,
): JsonObject {
  const { maxOutputTokens, temperature, topP, logprobs } = prompt;
  const members: Record<string, unknown> = {};
  if (maxOutputTokens !== undefined)
    members['max_output_tokens'] = Math.max(leastOutputTokens, Math.min(maxOutputTokens, most));
  const takesSampling = traits.sampling !== false;
  const { max_temperature: highest = 2 } = traits;
  if (takesSampling && temperature !== undefined && temperature > highest) dropped.drop('temperature');
  for (const [setting, name, value] of [
    ['temperature', 'temperature', temperature],
    ['topP', 'top_p', topP],
    ['logprobs', 'top_logprobs', logprobs],
  ] as const) {
    if (value === undefined) continue;
    if (takesSampling) members[name] = setting === 'temperature' ? Math.min(value, highest) : value;
    else dropped.drop(setting);
  }
  return members;
}

function encodeReasoning({ reasoning }: Prompt, { traits, dropped }: EncodeContext): JsonObject {
  if (reasoning === undefined) return {};
  const wanted = effortOf(reasoning);
  if (traits.reasoning === 'none') {
    if (wanted !== undefined && wanted !== 'none') dropped.drop('reasoning');
    return {};
  }
  const known = traits.efforts ?? ['low', 'medium', 'high'];
  const isOff = wanted === 'none' && traits.reasoning_off !== false;
  if (wanted === 'none' && !isOff) dropped.drop('reasoning');
  const effort = wanted === undefined || isOff ? wanted : nearestEffort(wanted, known);
  const members = {
    ...(effort === undefined ? {} : { effort }),
    ...(reasoning.visible === true && !isOff ? { summary: 'auto' } : {}),
  };
  return Object.keys(members).length === 0 ? {} : { reasoning: members };
}

const serviceTiers = ['auto', 'default', 'flex', 'scale', 'priority', 'fast', 'ultrafast'];

function encodeLabels({ user, metadata, serviceTier, cacheKey }: Prompt, { dropped }: EncodeContext): JsonObject {
  const tier = serviceTier === 'standard' ? 'default' : serviceTier;
  const isTierKnown = tier !== undefined && serviceTiers.includes(tier);
  if (tier !== undefined && !isTierKnown) dropped.drop('serviceTier');
  return {
    ...(user === undefined ? {} : { safety_identifier: label(user) }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(isTierKnown ? { service_tier: tier } : {}),
    ...(cacheKey === undefined ? {} : { prompt_cache_key: label(cacheKey) }),
  };
}

/** A label that is too long is replaced by a hash; some labels are whole JSON documents. */
function label(text: string): string {
  return text.length <= maxLabelLength ? text : shortHash(text, 40);
}

/** The vendor stores nothing, so its reasoning must be in the answer. Models without reasoning refuse this request. */
function encodeStored({ logprobs }: Prompt, { traits }: EncodeContext): JsonObject {
  const include = [
    ...(traits.reasoning === 'none' ? [] : ['reasoning.encrypted_content']),
    ...(logprobs === undefined || traits.sampling === false ? [] : ['message.output_text.logprobs']),
  ];
  return { store: false, ...(include.length === 0 ? {} : { include }) };
}

interface Structure {
  readonly format?: JsonObject;
  readonly tools: readonly JsonObject[];
  readonly toolChoice?: Choice;
  readonly order?: string;
  readonly answerTool?: string;
}

/** Structured output by the protocol's own option, a forced tool, or an instruction. */
function encodeOutput(prompt: Prompt, list: ToolList, { traits, dropped }: EncodeContext): Structure {
  const { output } = prompt;
  if (output === undefined) return { tools: [] };
  const collides = traits.structured_with_tools === false && list.tools.length > 0;
  const means = collides ? 'instruction' : (traits.structured ?? 'native');
  if (means === 'native') return { tools: [], format: formatOf(output, dropped) };
  if (means === 'instruction' || output.form === 'json') return { tools: [], order: orderOf(output) };
  const name = list.namer.nameFor(answerToolName);
  const description = output.description ?? 'Gives the answer.';
  const parameters = plainRoot(output.schema);
  const tool = { type: 'function', name, description, parameters, strict: isStrict(parameters) };
  const isAlone = list.tools.length === 0;
  const value = isAlone ? { type: 'function', name } : 'required';
  return { tools: [tool], toolChoice: { value, order: undefined }, answerTool: name };
}

function formatOf(output: OutputForm, dropped: DroppedParameters): JsonObject {
  if (output.form === 'json') return { type: 'json_object' };
  const { name, description, schema } = output;
  return {
    type: 'json_schema',
    name: (name ?? 'response').replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'response',
    ...(description === undefined ? {} : { description }),
    schema,
    strict: strictOutput(output, dropped),
  };
}

function orderOf(output: OutputForm): string {
  if (output.form === 'json') return 'Answer with one JSON object and nothing else.';
  return `Answer with one JSON object that follows this JSON Schema, and nothing else:\n${JSON.stringify(output.schema)}`;
}

interface Choice {
  readonly value: unknown;
  readonly order: string | undefined;
}

/** If a tool cannot be forced, an instruction asks the model to use it. */
function encodeToolChoice({ toolChoice }: Prompt, list: ToolList, { traits, dropped }: EncodeContext): Choice {
  const value = list.choice;
  const isForced = value !== undefined && toolChoice?.mode === 'required';
  if (!isForced || traits.forced_tools !== false) return { value, order: undefined };
  dropped.drop('toolChoice');
  const names = toolChoice.names?.map((name) => list.namer.nameFor(name)).join(', ');
  const order = names === undefined ? 'You must call a tool.' : `You must call one of these tools: ${names}.`;
  return { value: 'auto', order };
}

/** Client names of the members that a provider may not accept. */
const settings: Readonly<Record<string, Setting>> = table({
  tools: 'tools',
  tool_choice: 'toolChoice',
  parallel_tool_calls: 'parallelTools',
  max_output_tokens: 'maxOutputTokens',
  temperature: 'temperature',
  top_p: 'topP',
  top_logprobs: 'logprobs',
  text: 'output',
  reasoning: 'reasoning',
  safety_identifier: 'user',
  metadata: 'metadata',
  service_tier: 'serviceTier',
  prompt_cache_key: 'cacheKey',
});

function withoutUnwanted(body: JsonObject, { target, dropped }: EncodeContext): JsonObject {
  const unwanted = target.upstream.dropFields[target.protocol] ?? [];
  if (unwanted.length === 0) return body;
  for (const name of unwanted) if (body[name] !== undefined && settings[name]) dropped.drop(settings[name]);
  return Object.fromEntries(Object.entries(body).filter(([name]) => !unwanted.includes(name)));
}
