/** Encodes turns as messages of `/v2/chat`: text beside calls is their plan. */
import type { JsonObject } from '../../core/json/json.ts';
import type { EncodeContext } from '../common/canonical/codec.ts';
import type { MediaPart, Part, ToolCallPart, ToolResultPart, Turn } from '../common/canonical/prompt.ts';
import { messagesWith, pairedTurns, withoutEmpty } from '../common/encoding/history.ts';
import { dataUrl, isMedia, plainText } from '../common/encoding/media.ts';
import { readableTurns } from '../common/encoding/readable-media.ts';
import { legalCallId } from '../common/encoding/tool-ids.ts';
import type { ToolNamer } from '../common/encoding/tool-names.ts';

/** `instructions` follow the system prompt. */
export function encodeMessages(
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
  if (role === 'assistant') return assistantMessages(parts, context, namer);
  const results = parts.filter((part) => part.kind === 'tool-result').map((result) => resultMessage(result, context));
  const content = parts.flatMap((part) => contentParts(part, context));
  return content.length === 0 ? results : [...results, { role, content: joined(content) }];
}

function assistantMessages(parts: readonly Part[], context: EncodeContext, namer: ToolNamer): JsonObject[] {
  const calls = parts.filter((part) => part.kind === 'tool-call').map((call) => callOf(call, namer, context));
  const text = parts.flatMap((part) => (part.kind === 'text' || part.kind === 'refusal' ? part.text : [])).join('');
  const thoughts = parts.flatMap((part) => (part.kind === 'reasoning' ? part.text : [])).filter((said) => said !== '');
  for (const part of parts) if (isMedia(part)) context.dropped.drop(part.kind);
  const thinking =
    context.traits.reasoning_replay === true ? thoughts.map((said) => ({ type: 'thinking', thinking: said })) : [];
  if (calls.length > 0)
    return [
      {
        role: 'assistant',
        ...(thinking.length === 0 ? {} : { content: thinking }),
        ...(text === '' ? {} : { tool_plan: text }),
        tool_calls: calls,
      },
    ];
  if (text === '' && thinking.length === 0) return [];
  return [{ role: 'assistant', content: joined([...thinking, { type: 'text', text }]) }];
}

function callOf(
  { id, name, namespace, input, custom }: ToolCallPart,
  namer: ToolNamer,
  { ownCallIds }: EncodeContext,
): JsonObject {
  return {
    id: legalCallId(id, 'any', ownCallIds),
    type: 'function',
    function: { name: namer.nameFor(name, namespace), arguments: custom === true ? JSON.stringify({ input }) : input },
  };
}

function resultMessage(result: ToolResultPart, context: EncodeContext): JsonObject {
  const texts = result.parts.map((part) => (part.kind === 'text' ? part.text : (plainText(part.source) ?? '')));
  const content = `${result.isError === true ? 'Error: ' : ''}${texts.join('\n')}`;
  return { role: 'tool', tool_call_id: legalCallId(result.callId, 'any', context.ownCallIds), content };
}

function contentParts(part: Part, context: EncodeContext): JsonObject[] {
  if (part.kind === 'text' || part.kind === 'refusal') return [{ type: 'text', text: part.text }];
  if (!isMedia(part)) return [];
  return [part.kind === 'image' ? imagePart(part, context) : { type: 'text', text: documentText(part) }];
}

/** Why the model does not accept the medium; results are texts. */
function problemOf({ kind, source }: MediaPart, isInResult: boolean, { traits }: EncodeContext): string | undefined {
  if (kind !== 'image' || isInResult)
    return plainText(source) === undefined ? `takes no ${kind}s but images and texts` : undefined;
  if (traits.inputs !== undefined && !traits.inputs.includes('image')) return 'takes no images';
  return source.form === 'file' ? 'cannot read files that another service keeps' : undefined;
}

function imagePart({ source, detail }: MediaPart, { dropped }: EncodeContext): JsonObject {
  if (source.form === 'file') return {};
  const knows = detail === 'auto' || detail === 'low' || detail === 'high';
  if (detail !== undefined && !knows) dropped.drop('detail');
  return { type: 'image_url', image_url: { url: dataUrl(source), ...(knows ? { detail } : {}) } };
}

function documentText({ source, name, context: about }: MediaPart): string {
  const text = plainText(source) ?? '';
  return [...(about === undefined ? [] : [about]), name === undefined ? text : `${name}:\n\n${text}`].join('\n\n');
}

/** Text alone is a string. */
function joined(content: readonly JsonObject[]): string | readonly JsonObject[] {
  return content.every(({ type }) => type === 'text') ? content.map(({ text }) => text).join('\n\n') : content;
}
