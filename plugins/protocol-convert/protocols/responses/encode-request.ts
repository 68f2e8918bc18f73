/** Words a prompt as a request to a responses upstream. Throws what `Losses.refuse` throws. */
import type { OutputForm, Prompt, Setting } from '../../canon.ts';
import type { EncodeContext, EncodedRequest } from '../../codec.ts';
import type { JsonObject } from '../../json.ts';
import { shortHash } from '../../wording/hash.ts';
import { effortOf, nearestEffort } from '../../wording/reasoning.ts';
import { isStrict } from '../../wording/schemas.ts';
import { wordInput } from './write-input.ts';
import { ToolList } from './write-tools.ts';

/** Upstreams take no smaller bound on an answer. */
const leastOutputTokens = 16;
/** Upstreams take no longer names of users and caches. */
const maxLabelLength = 64;
const answerToolName = 'structured_answer';

export function encodeRequest(prompt: Prompt, context: EncodeContext): EncodedRequest {
  noteUntaken(prompt, context);
  const list = new ToolList(prompt, context);
  const { instructions, input } = wordInput(prompt.turns, list.namer, context);
  const structure = wordOutput(prompt, list, context);
  const choice = structure.toolChoice ?? wordChoice(prompt, list, context);
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
    ...wordNumbers(prompt, context),
    ...(Object.keys(text).length === 0 ? {} : { text }),
    ...wordReasoning(prompt, context),
    ...wordLabels(prompt, context),
    ...wordKept(prompt, context),
    ...(context.stream ? { stream: true } : {}),
  };
  const way = {
    names: list.namer.names,
    wrapped: list.namer.wrapped,
    ...(structure.answerTool === undefined ? {} : { answerTool: structure.answerTool }),
    ...(prompt.stop === undefined || prompt.stop.length === 0 ? {} : { stop: prompt.stop }),
    ...(prompt.reasoning?.visible === false ? { hideReasoning: true } : {}),
  };
  return { path: '/responses', body: withoutUnwanted(body, context), way };
}

/** The protocol has no words for these. */
function noteUntaken(prompt: Prompt, { losses }: EncodeContext): void {
  if ((prompt.choices ?? 1) > 1) losses.refuse('choices', 'gives one answer at a time');
  if (prompt.outputKinds?.includes('audio') === true) losses.refuse('outputKinds', 'does not answer in sound');
  for (const setting of ['topK', 'seed', 'frequencyPenalty', 'presencePenalty', 'logitBias'] as const) {
    if (prompt[setting] !== undefined) losses.drop(setting);
  }
}

function wordNumbers(prompt: Prompt, { traits, losses, maxOutputTokens: most = Infinity }: EncodeContext): JsonObject {
  const { maxOutputTokens, temperature, topP, logprobs } = prompt;
  const words: Record<string, unknown> = {};
  if (maxOutputTokens !== undefined)
    words['max_output_tokens'] = Math.max(leastOutputTokens, Math.min(maxOutputTokens, most));
  const takesSampling = traits.sampling !== false;
  const { max_temperature: highest = 2 } = traits;
  if (takesSampling && temperature !== undefined && temperature > highest) losses.drop('temperature');
  for (const [setting, name, value] of [
    ['temperature', 'temperature', temperature],
    ['topP', 'top_p', topP],
    ['logprobs', 'top_logprobs', logprobs],
  ] as const) {
    if (value === undefined) continue;
    if (takesSampling) words[name] = setting === 'temperature' ? Math.min(value, highest) : value;
    else losses.drop(setting);
  }
  return words;
}

function wordReasoning({ reasoning }: Prompt, { traits, losses }: EncodeContext): JsonObject {
  if (reasoning === undefined) return {};
  const wanted = effortOf(reasoning);
  if (traits.reasoning === 'none') {
    if (wanted !== undefined && wanted !== 'none') losses.drop('reasoning');
    return {};
  }
  const known = traits.efforts ?? ['low', 'medium', 'high'];
  const isOff = wanted === 'none' && traits.reasoning_off !== false;
  if (wanted === 'none' && !isOff) losses.drop('reasoning');
  const effort = wanted === undefined || isOff ? wanted : nearestEffort(wanted, known);
  const words = {
    ...(effort === undefined ? {} : { effort }),
    ...(reasoning.visible === true && !isOff ? { summary: 'auto' } : {}),
  };
  return Object.keys(words).length === 0 ? {} : { reasoning: words };
}

const serviceTiers = ['auto', 'default', 'flex', 'scale', 'priority', 'fast', 'ultrafast'];

function wordLabels({ user, metadata, serviceTier, cacheKey }: Prompt, { losses }: EncodeContext): JsonObject {
  const tier = serviceTier === 'standard' ? 'default' : serviceTier;
  const isTierKnown = tier !== undefined && serviceTiers.includes(tier);
  if (tier !== undefined && !isTierKnown) losses.drop('serviceTier');
  return {
    ...(user === undefined ? {} : { safety_identifier: label(user) }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(isTierKnown ? { service_tier: tier } : {}),
    ...(cacheKey === undefined ? {} : { prompt_cache_key: label(cacheKey) }),
  };
}

/** A label that is too long becomes one that stands for it; some are whole JSON documents. */
function label(text: string): string {
  return text.length <= maxLabelLength ? text : shortHash(text, 40);
}

/** Nothing is kept at the vendor, so its reasoning must travel. Models that do not reason refuse to be asked for it. */
function wordKept({ logprobs }: Prompt, { traits }: EncodeContext): JsonObject {
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

/** A structured answer is had by the protocol's own option, by a forced tool, or by asking for it. */
function wordOutput(prompt: Prompt, list: ToolList, { traits }: EncodeContext): Structure {
  const { output } = prompt;
  if (output === undefined) return { tools: [] };
  const collides = traits.structured_with_tools === false && list.tools.length > 0;
  const means = collides ? 'instruction' : (traits.structured ?? 'native');
  if (means === 'native') return { tools: [], format: formatOf(output) };
  if (means === 'instruction' || output.form === 'json') return { tools: [], order: orderOf(output) };
  const name = list.namer.nameFor(answerToolName);
  const description = output.description ?? 'Gives the answer.';
  const tool = { type: 'function', name, description, parameters: output.schema, strict: isStrict(output.schema) };
  const isAlone = list.tools.length === 0;
  const value = isAlone ? { type: 'function', name } : 'required';
  return { tools: [tool], toolChoice: { value, order: undefined }, answerTool: name };
}

function formatOf(output: OutputForm): JsonObject {
  if (output.form === 'json') return { type: 'json_object' };
  const { name, description, schema, strict } = output;
  return {
    type: 'json_schema',
    name: (name ?? 'response').replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'response',
    ...(description === undefined ? {} : { description }),
    schema,
    strict: strict ?? isStrict(schema),
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

/** Where a tool cannot be forced, the model is told to use it. */
function wordChoice({ toolChoice }: Prompt, list: ToolList, { traits, losses }: EncodeContext): Choice {
  const value = list.choice;
  const isForced = value !== undefined && toolChoice?.mode === 'required';
  if (!isForced || traits.forced_tools !== false) return { value, order: undefined };
  losses.drop('toolChoice');
  const names = toolChoice.names?.map((name) => list.namer.nameFor(name)).join(', ');
  const order = names === undefined ? 'You must call a tool.' : `You must call one of these tools: ${names}.`;
  return { value: 'auto', order };
}

/** What the client called the members that a provider may not take. */
const settings: Readonly<Record<string, Setting>> = {
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
};

function withoutUnwanted(body: JsonObject, { target, losses }: EncodeContext): JsonObject {
  const unwanted = target.upstream.dropFields[target.protocol] ?? [];
  if (unwanted.length === 0) return body;
  for (const name of unwanted) if (body[name] !== undefined && settings[name]) losses.drop(settings[name]);
  return Object.fromEntries(Object.entries(body).filter(([name]) => !unwanted.includes(name)));
}
