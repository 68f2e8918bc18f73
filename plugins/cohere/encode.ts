/** Encodes a prompt as a request to `/v2/chat`. */
import type { JsonObject } from '../../core/json/json.ts';
import type { EncodeContext, EncodedRequest } from '../common/canonical/codec.ts';
import { dropMarks, dropOthers } from '../common/canonical/dropped-parameters.ts';
import type { Prompt } from '../common/canonical/prompt.ts';
import { functionTools } from '../common/encoding/function-tools.ts';
import { budgetOf, effortOf } from '../common/encoding/reasoning.ts';
import { ToolNamer } from '../common/encoding/tool-names.ts';
import { encodeMessages } from './messages.ts';

export const path = '/v2/chat';

const nameLimits = { allowed: /[A-Za-z0-9_]/, first: /[A-Za-z_]/, maxLength: 64 };
/** The gateway matches further ones itself. */
const maxStops = 5;
const mostTopK = 500;

/** The settings that have a place in the request. */
const taken: ReadonlySet<keyof Prompt> = new Set([
  ...(['tools', 'toolChoice', 'parallelTools', 'maxOutputTokens', 'temperature', 'topP', 'topK', 'stop'] as const),
  ...(['seed', 'frequencyPenalty', 'presencePenalty', 'reasoning', 'output'] as const),
]);

export function encodeRequest(prompt: Prompt, context: EncodeContext): EncodedRequest {
  const { dropped, target, stream } = context;
  dropOthers(prompt, taken, dropped);
  dropMarks(prompt.turns, dropped);
  const namer = new ToolNamer(nameLimits);
  const tools = functionTools(prompt, context, namer, { canForce: context.traits.forced_tools !== false });
  const output = outputOf(prompt, tools.functions.length > 0);
  const stops = prompt.stop ?? [];
  const body: JsonObject = {
    model: target.model,
    messages: encodeMessages(prompt.turns, [...tools.instructions, ...output.instructions], context, namer),
    stream,
    ...(tools.functions.length === 0
      ? {}
      : { tools: tools.functions.map((own) => ({ type: 'function', function: own })), ...choiceOf(tools.mode) }),
    ...output.members,
    ...thinkingOf(prompt, context),
    ...settingsOf(prompt, context),
    ...(stops.length === 0 ? {} : { stop_sequences: stops.slice(0, maxStops) }),
  };
  const ownStops = stops.slice(maxStops);
  const hides = prompt.reasoning?.visible === false;
  return {
    path,
    body,
    responseMapping: {
      names: namer.names,
      wrapped: namer.wrapped,
      ...(ownStops.length === 0 ? {} : { stop: ownStops }),
      ...(hides ? { hideReasoning: true } : {}),
    },
  };
}

/** Calling or answering is the model's choice where nothing is said. */
function choiceOf(mode: 'auto' | 'none' | 'required' | undefined): JsonObject {
  return mode === undefined || mode === 'auto' ? {} : { tool_choice: mode === 'none' ? 'NONE' : 'REQUIRED' };
}

interface Output {
  readonly members: JsonObject;
  readonly instructions: readonly string[];
}

/** The format cannot be set beside tools, and plain JSON must be asked for in words as well. */
function outputOf({ output, turns }: Prompt, hasTools: boolean): Output {
  if (output === undefined) return { members: {}, instructions: [] };
  const jsonText = 'Answer with JSON and nothing else.';
  if (output.form === 'json') {
    const isSaid = turns.some(({ parts }) => parts.some((part) => part.kind === 'text' && /json/i.test(part.text)));
    const members = hasTools ? {} : { response_format: { type: 'json_object' } };
    return { members, instructions: isSaid && !hasTools ? [] : [jsonText] };
  }
  const { schema } = output;
  if (!hasTools)
    return { members: { response_format: { type: 'json_object', json_schema: schema } }, instructions: [] };
  return { members: {}, instructions: [`${jsonText} It must follow this JSON schema:\n${JSON.stringify(schema)}`] };
}

function thinkingOf({ reasoning, maxOutputTokens }: Prompt, context: EncodeContext): JsonObject {
  const { traits, dropped, maxOutputTokens: most } = context;
  const effort = reasoning === undefined ? undefined : effortOf(reasoning);
  if (reasoning === undefined || effort === undefined) return {};
  const isOff = effort === 'none';
  if (traits.reasoning === 'none' || (isOff && traits.reasoning_off === false)) {
    if (!isOff || traits.reasoning_off === false) dropped.drop('reasoning');
    return {};
  }
  if (isOff) return { thinking: { type: 'disabled' } };
  const bound = maxOutputTokens ?? most;
  const budget = budgetOf(reasoning, {
    ...(bound === undefined ? {} : { maxOutputTokens: bound }),
    ...(traits.max_budget === undefined ? {} : { maxBudget: traits.max_budget }),
  });
  return { thinking: { type: 'enabled', ...(budget === undefined ? {} : { token_budget: budget }) } };
}

function settingsOf(prompt: Prompt, { traits, dropped, maxOutputTokens: most }: EncodeContext): JsonObject {
  const { maxOutputTokens: tokens } = prompt;
  const within = (
    name: 'temperature' | 'topP' | 'topK' | 'frequencyPenalty' | 'presencePenalty',
    low: number,
    high: number,
  ) => {
    const value = prompt[name];
    if (value === undefined) return undefined;
    const kept = Math.min(Math.max(value, low), high);
    // The ends of an open range mean the same as the next value inside it.
    if (Math.abs(kept - value) > 0.01) dropped.drop(name);
    return kept;
  };
  const members = {
    max_tokens: tokens === undefined ? undefined : Math.min(tokens, most ?? tokens),
    temperature: within('temperature', 0, traits.max_temperature ?? 1),
    p: within('topP', 0.01, 0.99),
    k: within('topK', 0, mostTopK),
    frequency_penalty: within('frequencyPenalty', 0, 1),
    presence_penalty: within('presencePenalty', 0, 1),
    seed: prompt.seed,
  };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
