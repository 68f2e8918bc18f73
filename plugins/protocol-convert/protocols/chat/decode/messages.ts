/** Decodes chat messages into turns, one turn for each message. Pure. */

import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { DecodeContext } from '../../../../common/canonical/codec.ts';
import type { MediaPart, OpaqueState, Part, ToolCallPart, Turn } from '../../../../common/canonical/prompt.ts';
import { isLostSignature } from '../../../encoding/sealed-text.ts';
import { invalid } from '../../../request/checks.ts';
import { textMember } from '../../../request/members.ts';
import { thoughtSignature } from '../opaque-state.ts';
import { interleaved } from './interleave.ts';
import { cacheMark, decodeContent, decodeResult, generatedImage } from './parts.ts';
import { reasoningParts } from './reasoning.ts';

/** Throws invalid_request that names the invalid message and member. */
export function decodeMessages(messages: readonly unknown[], context: DecodeContext): Turn[] {
  /** Ids of custom (free-text) tool calls: their results have a different kind. */
  const customCalls = new Set<string>();
  return messages.map((value, index) => {
    const field = `messages[${index}]`;
    if (!isObject(value)) throw invalid(`The field "${field}" must be an object.`, field);
    const turn = decodeMessage(value, field, context, customCalls);
    for (const part of turn.parts) if (part.kind === 'tool-call' && part.custom === true) customCalls.add(part.id);
    return turn;
  });
}

function decodeMessage(
  message: JsonObject,
  field: string,
  context: DecodeContext,
  customCalls: ReadonlySet<string>,
): Turn {
  const name = textMember(message, 'name', `${field}.name`);
  const named = name === undefined ? {} : { name };
  switch (message['role']) {
    case 'system':
    case 'developer':
      if (listOf(message['images']).length > 0) context.dropped.dropField(`${field}.images`);
      return { role: 'system', parts: marked(message, contentOf(message, field, context)), ...named };
    case 'user':
      return { role: 'user', parts: marked(message, userParts(message, field, context)), ...named };
    case 'assistant':
      return { role: 'assistant', parts: marked(message, assistantParts(message, field, context)), ...named };
    case 'tool':
    case 'function':
      return { role: 'user', parts: [toolResult(message, field, context, customCalls)] };
    default:
      throw invalid(`The field "${field}.role" must be system, developer, user, assistant or tool.`, `${field}.role`);
  }
}

function contentOf(message: JsonObject, field: string, context: DecodeContext): Part[] {
  return decodeContent(message['content'], `${field}.content`, context);
}

/** Content, and the images that local model servers take beside it. */
function userParts(message: JsonObject, field: string, context: DecodeContext): Part[] {
  return [...contentOf(message, field, context), ...decodeImages(message['images'], `${field}.images`, context)];
}

/** A cache mark on the message applies to its last part. */
function marked(message: JsonObject, parts: readonly Part[]): readonly Part[] {
  const cache = cacheMark(message);
  const last = parts.at(-1);
  if (cache === undefined || last === undefined) return parts;
  if (last.kind === 'reasoning' || last.kind === 'refusal' || last.kind === 'search') return parts;
  return [...parts.slice(0, -1), { ...last, cache }];
}

/** Thoughts at their positions, then content, images and calls: the order in which models of this protocol write. */
function assistantParts(message: JsonObject, field: string, context: DecodeContext): Part[] {
  const { dropped } = context;
  const content = signed(message, contentOf(message, field, context), field, context);
  const refusal = textOf(message['refusal']);
  // Only the vendor that stores this audio can resolve its id.
  if (objectOf(message['audio']) !== undefined) dropped.dropField(`${field}.audio`);
  if (listOf(message['annotations']).length > 0) dropped.dropField(`${field}.annotations`);
  return interleaved({
    reasoning: reasoningParts(message, field, context),
    content: [...content, ...(refusal === undefined ? [] : [{ kind: 'refusal' as const, text: refusal }])],
    images: decodeImages(message['images'], `${field}.images`, context),
    calls: decodeCalls(message, field, context),
  });
}

/** Images beside the content: addresses, bare base64, or as in answers of this protocol, with their signatures. */
function decodeImages(images: unknown, field: string, context: DecodeContext): MediaPart[] {
  if (images !== undefined && images !== null && !Array.isArray(images))
    throw invalid(`The field "${field}" must be a list.`, field);
  return listOf(images).map((image, index) => {
    const at = `${field}[${index}]`;
    const part = generatedImage(image, at);
    const opaqueState = isObject(image) ? signatureOf(image, at, context) : undefined;
    return opaqueState === undefined ? part : { ...part, opaqueState };
  });
}

/** A signature that only another maker can verify is recorded as a loss. */
function signatureOf(holder: JsonObject, field: string, { open, dropped }: DecodeContext): OpaqueState | undefined {
  const signature = thoughtSignature(holder);
  if (signature === undefined) return undefined;
  const opaqueState = open(signature);
  if (opaqueState === undefined && !isLostSignature(signature)) dropped.dropField(`${field}.extra_content`);
  return opaqueState;
}

/** The signature of a text is in a member beside it. */
function signed(message: JsonObject, content: Part[], field: string, context: DecodeContext): Part[] {
  const opaqueState = signatureOf(message, field, context);
  if (opaqueState === undefined) return content;
  const last = content.at(-1);
  return last?.kind === 'text'
    ? [...content.slice(0, -1), { ...last, opaqueState }]
    : [...content, { kind: 'text', text: '', opaqueState }];
}

function decodeCalls(message: JsonObject, field: string, context: DecodeContext): ToolCallPart[] {
  const calls = message['tool_calls'];
  if (calls !== undefined && calls !== null && !Array.isArray(calls))
    throw invalid(`The field "${field}.tool_calls" must be a list.`, `${field}.tool_calls`);
  const read = listOf(calls).map((call, index) => decodeCall(call, `${field}.tool_calls[${index}]`, context));
  const old = objectOf(message['function_call']);
  if (old !== undefined) read.push(decodeCall({ function: old }, field, context));
  return read;
}

/** Empty ids are replaced when calls and results are paired. */
function decodeCall(value: unknown, field: string, context: DecodeContext): ToolCallPart {
  const call = objectOf(value);
  const { custom, body } = callBody(call);
  const at = `${field}.${custom === undefined ? 'function' : 'custom'}`;
  if (call === undefined || body === undefined) throw invalid(`The field "${at}" must be an object.`, at);
  const name = textOf(body['name']);
  if (name === undefined) throw invalid(`The field "${at}.name" must be a string that is not empty.`, `${at}.name`);
  const opaqueState = signatureOf(call, field, context);
  return {
    kind: 'tool-call',
    id: textOf(call['id']) ?? '',
    name,
    input: custom === undefined ? argumentsOf(body['arguments']) : (textOf(body['input']) ?? ''),
    ...(custom === undefined ? {} : { custom: true }),
    ...(opaqueState === undefined ? {} : { opaqueState }),
  };
}

/** `type` decides when a client sends both members and one of them is empty. */
function callBody(call: JsonObject | undefined): { custom: JsonObject | undefined; body: JsonObject | undefined } {
  const [custom, called] = [objectOf(call?.['custom']), objectOf(call?.['function'])];
  const isFunction = custom === undefined || (called !== undefined && call?.['type'] !== 'custom');
  return isFunction ? { custom: undefined, body: called } : { custom, body: custom };
}

/** JSON text. Some clients send the object itself, and nothing or `null` for a tool without parameters. */
function argumentsOf(value: unknown): string {
  if (typeof value === 'string') return value.trim() === '' || value.trim() === 'null' ? '{}' : value;
  return JSON.stringify(value ?? {});
}

function toolResult(
  message: JsonObject,
  field: string,
  context: DecodeContext,
  customCalls: ReadonlySet<string>,
): Part {
  const callId = textOf(message['tool_call_id']) ?? '';
  const name = textOf(message['name']);
  const cache = cacheMark(message);
  return {
    kind: 'tool-result',
    callId,
    parts: [
      ...decodeResult(message['content'], `${field}.content`, context),
      ...decodeImages(message['images'], `${field}.images`, context),
    ],
    ...(name === undefined ? {} : { name }),
    ...(customCalls.has(callId) ? { custom: true } : {}),
    ...(cache === undefined ? {} : { cache }),
  };
}
