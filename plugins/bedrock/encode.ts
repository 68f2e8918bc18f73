/** Encodes a prompt as a request to Converse. */
import type { JsonObject } from '../../core/json/json.ts';
import type { EncodeContext, EncodedRequest } from '../common/canonical/codec.ts';
import { dropMarks, dropOthers } from '../common/canonical/dropped-parameters.ts';
import type { Prompt, ReasoningSettings } from '../common/canonical/prompt.ts';
import { type FunctionTools, functionTools } from '../common/encoding/function-tools.ts';
import { budgetOf, effortOf, nearestEffort } from '../common/encoding/reasoning.ts';
import { ToolNamer } from '../common/encoding/tool-names.ts';
import { encodeTurns, type Messages } from './messages.ts';

const nameLimits = { allowed: /[a-zA-Z0-9_-]/, maxLength: 64 };

const taken: ReadonlySet<keyof Prompt> = new Set([
  ...(['tools', 'toolChoice', 'parallelTools', 'maxOutputTokens', 'temperature', 'topP', 'stop'] as const),
  ...(['reasoning', 'output'] as const),
]);

export function encodeRequest(prompt: Prompt, context: EncodeContext): EncodedRequest {
  const { dropped, target, stream, traits } = context;
  dropOthers(prompt, taken, dropped);
  dropMarks(traits.cache_marks === true ? prompt.turns.map(withoutMarks) : prompt.turns, dropped);
  const namer = new ToolNamer(nameLimits);
  const wished = reasoningOf(prompt, context);
  const canForce = wished === undefined && traits.forced_tools !== false;
  const tools = functionTools(prompt, context, namer, { canForce });
  const turns = encodeTurns(prompt.turns, context, namer);
  const reasoning = wished === undefined || canResume(turns, context) ? wished : undefined;
  const output = outputOf(prompt, context);
  const toolConfig = toolConfigOf(tools, prompt, namer);
  // The protocol has no choice that forbids calls.
  const isForbidden = toolConfig !== undefined && (tools.mode === 'none' || tools.functions.length === 0);
  const instructions = [
    ...(isForbidden ? ['Do not call any tool; answer with text.'] : []),
    ...tools.instructions,
    ...output.instructions,
  ];
  const system = [...turns.system, ...instructions.map((text) => ({ text }))];
  const inference = inferenceOf(prompt, context, reasoning !== undefined);
  const [stop, blankStop] = [true, false].map((isKept) =>
    (prompt.stop ?? []).filter((text) => (text.trim() !== '') === isKept),
  );
  const settings = { ...inference, ...(stop!.length === 0 ? {} : { stopSequences: stop }) };
  const body: JsonObject = {
    messages: turns.messages,
    ...(system.length === 0 ? {} : { system }),
    ...(Object.keys(settings).length === 0 ? {} : { inferenceConfig: settings }),
    ...(toolConfig === undefined ? {} : { toolConfig }),
    ...output.members,
    ...(reasoning === undefined ? {} : { additionalModelRequestFields: reasoning }),
  };
  return {
    path: `/model/${encodeURIComponent(target.model)}/${stream ? 'converse-stream' : 'converse'}`,
    body,
    responseMapping: {
      names: namer.names,
      wrapped: namer.wrapped,
      ...(blankStop!.length === 0 ? {} : { stop: blankStop! }),
      ...(prompt.reasoning?.visible === false ? { hideReasoning: true } : {}),
    },
  };
}

function withoutMarks(turn: Prompt['turns'][number]): Prompt['turns'][number] {
  return {
    ...turn,
    parts: turn.parts.map((part) => ('cache' in part ? (({ cache: _, ...rest }) => rest)(part) : part)),
  };
}

/** Whether reasoning may be on: models with a reasoning budget refuse it when the reasoning before a tool call is missing. */
function canResume({ lacksReasoning }: Messages, { traits, dropped }: EncodeContext): boolean {
  if (!lacksReasoning || traits.reasoning !== 'budget') return true;
  dropped.drop('reasoning');
  return false;
}

/** Members of the model's own, in the form that its traits name; without one the model does not reason. */
function reasoningOf({ reasoning, maxOutputTokens }: Prompt, context: EncodeContext): JsonObject | undefined {
  if (reasoning === undefined) return undefined;
  const { traits, dropped, maxOutputTokens: most } = context;
  const effort = effortOf(reasoning);
  if (effort === 'none') return undefined;
  const word = effort === undefined ? undefined : nearestEffort(effort, traits.efforts ?? ['low', 'medium', 'high']);
  if (traits.reasoning === 'effort') return word === undefined ? undefined : { reasoning_effort: word };
  if (traits.reasoning === 'adaptive')
    return { thinking: { type: 'adaptive' }, ...(word === undefined ? {} : { output_config: { effort: word } }) };
  const budget = traits.reasoning === 'budget' ? budgetFor(reasoning, maxOutputTokens ?? most, traits.max_budget) : 0;
  if (budget !== undefined && budget > 0) return { thinking: { type: 'enabled', budget_tokens: budget } };
  dropped.drop('reasoning');
  return undefined;
}

/** Without an effort and a budget, a medium effort applies. */
function budgetFor(wish: ReasoningSettings, bound: number | undefined, most: number | undefined): number | undefined {
  const isOpen = wish.effort === undefined && (wish.budgetTokens ?? -1) < 0;
  return budgetOf(isOpen ? { effort: 'medium' } : wish, {
    ...(bound === undefined ? {} : { maxOutputTokens: bound }),
    ...(most === undefined ? {} : { maxBudget: most }),
  });
}

function inferenceOf(
  { maxOutputTokens: tokens, temperature, topP }: Prompt,
  { traits, dropped, maxOutputTokens: most }: EncodeContext,
  isReasoning: boolean,
): JsonObject {
  const bound = tokens === undefined ? {} : { maxTokens: Math.min(tokens, most ?? tokens) };
  if (isReasoning || traits.sampling === false) {
    if (temperature !== undefined) dropped.drop('temperature');
    if (topP !== undefined) dropped.drop('topP');
    return bound;
  }
  const highest = traits.max_temperature ?? 1;
  if (temperature !== undefined && temperature > highest) dropped.drop('temperature');
  return {
    ...bound,
    ...(temperature === undefined ? {} : { temperature: Math.min(temperature, highest) }),
    ...(topP === undefined ? {} : { topP }),
  };
}

/** Calls of the history need declarations, even where none may be made. */
function toolConfigOf({ functions, mode }: FunctionTools, { turns }: Prompt, namer: ToolNamer): JsonObject | undefined {
  const offered = mode === 'none' ? [] : functions;
  const called = turns.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.kind === 'tool-call' ? namer.nameFor(part.name, part.namespace) : [])),
  );
  const declared =
    offered.length > 0 || called.length === 0 ? offered : functions.length > 0 ? functions : stubs(called);
  if (declared.length === 0) return undefined;
  const tools = declared.map(({ name, description, parameters }) => ({
    toolSpec: {
      name,
      ...(description === undefined || description === '' ? {} : { description }),
      inputSchema: { json: parameters },
    },
  }));
  if (mode !== 'required') return { tools };
  return { tools, toolChoice: declared.length === 1 ? { tool: { name: declared[0]!.name } } : { any: {} } };
}

function stubs(names: readonly string[]): FunctionTools['functions'] {
  return [...new Set(names)].map((name) => ({ name, parameters: { type: 'object', properties: {} } }));
}

interface Output {
  readonly members: JsonObject;
  readonly instructions: readonly string[];
}

/** Few models accept a schema. For the others it becomes an instruction. */
function outputOf({ output }: Prompt, { traits }: EncodeContext): Output {
  if (output === undefined) return { members: {}, instructions: [] };
  const json = 'Answer with JSON and nothing else: no words around it, no code fence.';
  if (output.form === 'json') return { members: {}, instructions: [json] };
  const schema = JSON.stringify(output.schema);
  if (traits.structured !== 'native')
    return { members: {}, instructions: [`${json} It must follow this JSON schema:\n${schema}`] };
  const structure = { jsonSchema: { name: output.name ?? 'answer', schema } };
  return { members: { outputConfig: { textFormat: { type: 'json_schema', structure } } }, instructions: [] };
}
