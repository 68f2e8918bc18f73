/** Reads chat messages into turns, one for one. Pure. */
import type { Part, ToolCallPart, Turn } from '../../canon.ts';
import { invalid } from '../../checks.ts';
import type { DecodeContext, OpenSeal } from '../../codec.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../json.ts';
import { textMember } from '../../members.ts';
import { cacheMark, decodeContent, decodeResult } from './decode-parts.ts';
import { reasoningParts } from './decode-reasoning.ts';
import { thoughtSignature } from './keepsakes.ts';

/** Throws invalid_request that names the message and the member at fault. */
export function decodeMessages(messages: readonly unknown[], context: DecodeContext): Turn[] {
  /** Ids of calls to free-text tools: their results are told apart. */
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
      return { role: 'system', parts: marked(message, contentOf(message, field, context.open)), ...named };
    case 'user':
      return { role: 'user', parts: marked(message, contentOf(message, field, context.open)), ...named };
    case 'assistant':
      return { role: 'assistant', parts: marked(message, assistantParts(message, field, context)), ...named };
    case 'tool':
    case 'function':
      return { role: 'user', parts: [toolResult(message, field, context.open, customCalls)] };
    default:
      throw invalid(`The field "${field}.role" must be system, developer, user, assistant or tool.`, `${field}.role`);
  }
}

function contentOf(message: JsonObject, field: string, open: OpenSeal): Part[] {
  return decodeContent(message['content'], `${field}.content`, open);
}

/** A mark on a message stands for one on its last part. */
function marked(message: JsonObject, parts: readonly Part[]): readonly Part[] {
  const cache = cacheMark(message);
  const last = parts.at(-1);
  if (cache === undefined || last === undefined) return parts;
  if (last.kind === 'reasoning' || last.kind === 'refusal' || last.kind === 'search') return parts;
  return [...parts.slice(0, -1), { ...last, cache }];
}

/** Thoughts, then content, then calls: the order in which the protocol's models write. */
function assistantParts(message: JsonObject, field: string, context: DecodeContext): Part[] {
  const { open, losses } = context;
  const content = signed(message, contentOf(message, field, open), open);
  const refusal = textOf(message['refusal']);
  // A sound that its vendor keeps: nobody else can hear it.
  if (objectOf(message['audio']) !== undefined) losses.dropField(`${field}.audio`);
  if (listOf(message['annotations']).length > 0) losses.dropField(`${field}.annotations`);
  return [
    ...reasoningParts(message, open),
    ...content,
    ...(refusal === undefined ? [] : [{ kind: 'refusal' as const, text: refusal }]),
    ...decodeCalls(message, field, open),
  ];
}

/** A text's signature stands beside it. */
function signed(message: JsonObject, content: Part[], open: OpenSeal): Part[] {
  const signature = thoughtSignature(message);
  const keepsake = signature === undefined ? undefined : open(signature);
  if (keepsake === undefined) return content;
  const last = content.at(-1);
  return last?.kind === 'text'
    ? [...content.slice(0, -1), { ...last, keepsake }]
    : [...content, { kind: 'text', text: '', keepsake }];
}

function decodeCalls(message: JsonObject, field: string, open: OpenSeal): ToolCallPart[] {
  const calls = message['tool_calls'];
  if (calls !== undefined && calls !== null && !Array.isArray(calls))
    throw invalid(`The field "${field}.tool_calls" must be a list.`, `${field}.tool_calls`);
  const read = listOf(calls).map((call, index) => decodeCall(call, `${field}.tool_calls[${index}]`, open));
  const old = objectOf(message['function_call']);
  if (old !== undefined) read.push(decodeCall({ function: old }, field, open));
  return read;
}

/** An empty id is made up where the turns are paired. */
function decodeCall(value: unknown, field: string, open: OpenSeal): ToolCallPart {
  const call = objectOf(value);
  const custom = objectOf(call?.['custom']);
  const body = custom ?? objectOf(call?.['function']);
  const at = `${field}.${custom === undefined ? 'function' : 'custom'}`;
  if (call === undefined || body === undefined) throw invalid(`The field "${at}" must be an object.`, at);
  const name = textOf(body['name']);
  if (name === undefined) throw invalid(`The field "${at}.name" must be a string that is not empty.`, `${at}.name`);
  const signature = thoughtSignature(call);
  const keepsake = signature === undefined ? undefined : open(signature);
  return {
    kind: 'tool-call',
    id: textOf(call['id']) ?? '',
    name,
    input: custom === undefined ? argumentsOf(body['arguments']) : (textOf(body['input']) ?? ''),
    ...(custom === undefined ? {} : { custom: true }),
    ...(keepsake === undefined ? {} : { keepsake }),
  };
}

/** JSON text; some clients send the object itself, or nothing for a tool without parameters. */
function argumentsOf(value: unknown): string {
  if (typeof value === 'string') return value.trim() === '' ? '{}' : value;
  return JSON.stringify(value ?? {});
}

function toolResult(message: JsonObject, field: string, open: OpenSeal, customCalls: ReadonlySet<string>): Part {
  const callId = textOf(message['tool_call_id']) ?? '';
  const name = textOf(message['name']);
  const cache = cacheMark(message);
  return {
    kind: 'tool-result',
    callId,
    parts: decodeResult(message['content'], `${field}.content`, open),
    ...(name === undefined ? {} : { name }),
    ...(customCalls.has(callId) ? { custom: true } : {}),
    ...(cache === undefined ? {} : { cache }),
  };
}
