/** Encodes a prompt as a request to `/api/chat`. */
import { isObject, type JsonObject, tryParse } from '../../core/json/json.ts';
import type { EncodeContext, EncodedRequest } from '../common/canonical/codec.ts';
import { dropMarks, dropOthers } from '../common/canonical/dropped-parameters.ts';
import type { MediaPart, Part, Prompt, ToolCallPart, ToolResultPart, Turn } from '../common/canonical/prompt.ts';
import { functionTools } from '../common/encoding/function-tools.ts';
import { messagesWith, pairedTurns, withoutEmpty } from '../common/encoding/history.ts';
import { isMedia, plainText } from '../common/encoding/media.ts';
import { readableTurns } from '../common/encoding/readable-media.ts';
import { effortOf, nearestEffort } from '../common/encoding/reasoning.ts';
import { legalCallId } from '../common/encoding/tool-ids.ts';
import { ToolNamer } from '../common/encoding/tool-names.ts';

export const path = '/api/chat';

const nameLimits = { allowed: /[A-Za-z0-9_.-]/, maxLength: 64 };

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
  const { functions, instructions, mode } = functionTools(prompt, context, namer, { canForce: false });
  const body: JsonObject = {
    model: target.model,
    messages: messagesOf(prompt.turns, instructions, context, namer),
    stream,
    ...(functions.length === 0 || mode === 'none'
      ? {}
      : { tools: functions.map((own) => ({ type: 'function', function: own })) }),
    ...formatOf(prompt),
    ...thinkOf(prompt, context),
    options: optionsOf(prompt, context),
  };
  const hides = prompt.reasoning?.visible === false;
  const mapping = { names: namer.names, wrapped: namer.wrapped, ...(hides ? { hideReasoning: true } : {}) };
  return { path, body, responseMapping: mapping };
}

function formatOf({ output }: Prompt): JsonObject {
  if (output === undefined) return {};
  return { format: output.form === 'json' ? 'json' : output.schema };
}

/** Models know either a switch or named levels; those with levels declare them as efforts. */
function thinkOf({ reasoning }: Prompt, { traits, dropped }: EncodeContext): JsonObject {
  const effort = reasoning === undefined ? undefined : effortOf(reasoning);
  if (effort === undefined) return {};
  if (traits.reasoning === 'none' || (effort === 'none' && traits.reasoning_off === false)) {
    if (effort !== 'none' || traits.reasoning_off === false) dropped.drop('reasoning');
    return {};
  }
  if (effort === 'none') return { think: false };
  return { think: traits.efforts === undefined ? true : nearestEffort(effort, traits.efforts) };
}

function optionsOf(prompt: Prompt, { maxOutputTokens: most = Number.POSITIVE_INFINITY }: EncodeContext): JsonObject {
  const { maxOutputTokens, temperature, topP, topK, seed, frequencyPenalty, presencePenalty, stop } = prompt;
  const options = {
    num_predict: maxOutputTokens === undefined ? undefined : Math.min(maxOutputTokens, most),
    temperature,
    top_p: topP,
    top_k: topK,
    seed,
    frequency_penalty: frequencyPenalty,
    presence_penalty: presencePenalty,
    stop: stop === undefined || stop.length === 0 ? undefined : stop,
  };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** Added instructions follow the system prompt. */
function messagesOf(
  turns: readonly Turn[],
  instructions: readonly string[],
  context: EncodeContext,
  namer: ToolNamer,
): JsonObject[] {
  const readable = readableTurns(turns, (part, isInResult) => problemOf(part, isInResult, context), context.dropped);
  const shaped = withoutEmpty(pairedTurns(readable));
  return messagesWith(shaped, instructions, (turn) => messagesOfTurn(turn, context, namer));
}

function messagesOfTurn({ role, parts }: Turn, context: EncodeContext, namer: ToolNamer): JsonObject[] {
  if (role === 'assistant') return [assistantMessage(parts, context, namer)];
  const results = parts.filter((part) => part.kind === 'tool-result');
  const said = parts.filter((part) => part.kind !== 'tool-result');
  const messages = results.map((result) => resultMessage(result, context, namer));
  return said.length === 0 ? messages : [...messages, { role, ...contentOf(said, context) }];
}

function assistantMessage(parts: readonly Part[], context: EncodeContext, namer: ToolNamer): JsonObject {
  const calls = parts.filter((part) => part.kind === 'tool-call').map((call) => callOf(call, namer, context));
  const thoughts = parts.flatMap((part) => (part.kind === 'reasoning' ? part.text : []));
  const replays = context.traits.reasoning_replay === true && thoughts.length > 0;
  const text = parts.flatMap((part) => (part.kind === 'text' || part.kind === 'refusal' ? part.text : []));
  for (const part of parts) if (isMedia(part)) context.dropped.drop(part.kind);
  return {
    role: 'assistant',
    content: text.join(''),
    ...(replays ? { thinking: thoughts.join('\n\n') } : {}),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

/** Arguments are an object here, not text. */
function callOf(
  { id, name, namespace, input, custom }: ToolCallPart,
  namer: ToolNamer,
  { ownCallIds }: EncodeContext,
): JsonObject {
  const parsed = custom === true ? { input } : tryParse(input);
  return {
    id: legalCallId(id, 'any', ownCallIds),
    function: { name: namer.nameFor(name, namespace), arguments: isObject(parsed) ? parsed : {} },
  };
}

function resultMessage(result: ToolResultPart, context: EncodeContext, namer: ToolNamer): JsonObject {
  const texts = result.parts.map((part) => (part.kind === 'text' ? part.text : (plainText(part.source) ?? '')));
  return {
    role: 'tool',
    content: `${result.isError === true ? 'Error: ' : ''}${texts.join('\n')}`,
    ...(result.name === undefined ? {} : { tool_name: namer.nameFor(result.name) }),
    tool_call_id: legalCallId(result.callId, 'any', context.ownCallIds),
  };
}

function contentOf(parts: readonly Part[], context: EncodeContext): JsonObject {
  const images = parts.flatMap((part) => (part.kind === 'image' ? imageOf(part, context) : []));
  const texts = parts.flatMap((part) => {
    if (part.kind === 'text' || part.kind === 'refusal') return part.text;
    return isMedia(part) && part.kind !== 'image' ? documentText(part) : [];
  });
  return { content: texts.join('\n\n'), ...(images.length === 0 ? {} : { images }) };
}

/** The bytes alone, as base64 without a type. */
function imageOf({ source, detail }: MediaPart, { dropped }: EncodeContext): string {
  if (detail !== undefined) dropped.drop('detail');
  return source.form === 'bytes' ? source.base64 : '';
}

/** Why the model does not accept the medium; results are texts. */
function problemOf({ kind, source }: MediaPart, isInResult: boolean, { traits }: EncodeContext): string | undefined {
  if (kind !== 'image' || isInResult)
    return plainText(source) === undefined ? `takes no ${kind}s but images and texts` : undefined;
  if (traits.inputs !== undefined && !traits.inputs.includes('image')) return 'takes no images';
  return source.form === 'bytes' ? undefined : 'takes images by content alone';
}

function documentText({ source, name, context: about }: MediaPart): string {
  const text = plainText(source) ?? '';
  return [...(about === undefined ? [] : [about]), name === undefined ? text : `${name}:\n\n${text}`].join('\n\n');
}
