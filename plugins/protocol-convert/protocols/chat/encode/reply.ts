/** Encodes a whole answer as a chat completion. */

import { type JsonObject, listOf } from '../../../../../core/json/json.ts';
import type { ReplyContext } from '../../../../common/canonical/codec.ts';
import type {
  MediaPart,
  ReasoningPart,
  TextPart,
  TokenLogprob,
  ToolCallPart,
} from '../../../../common/canonical/prompt.ts';
import type { Choice, Reply } from '../../../../common/canonical/reply.ts';
import { dataUrl } from '../../../../common/encoding/media.ts';
import { finishReasonOf } from '../finish.ts';
import { encodeLogprobs } from '../logprobs.ts';
import { extraContent } from '../opaque-state.ts';
import { annotationOf, audioId, type Position, replyId, sealedDetail } from '../reply-members.ts';
import { encodeUsage } from '../usage.ts';

export function encodeReply(reply: Reply, context: ReplyContext): JsonObject {
  const { request } = context;
  const isLegacy = listOf(request['functions']).length > 0 && listOf(request['tools']).length === 0;
  return {
    id: replyId(reply.id, context),
    object: 'chat.completion',
    created: reply.createdAt ?? context.createdAt,
    model: context.call.model,
    choices: reply.choices.map((choice, index) => encodeChoice(choice, index, isLegacy, context)),
    usage: encodeUsage(context.usage().usage),
    ...(reply.serviceTier === undefined ? {} : { service_tier: reply.serviceTier }),
  };
}

/** The message members that the parts of a choice add up to. */
class Message {
  content: string | null = null;
  refusal: string | null = null;
  reasoning = '';
  readonly annotations: JsonObject[] = [];
  readonly details: JsonObject[] = [];
  readonly calls: ToolCallPart[] = [];
  readonly images: JsonObject[] = [];
  readonly sounds: MediaPart[] = [];
  readonly logprobs: TokenLogprob[] = [];
  textOpaqueState: string | undefined;
  blocks = 0;

  /** The current position in the message. */
  get position(): Position {
    const { blocks, content, images, calls } = this;
    return { blocks, text: content?.length ?? 0, images: images.length, calls: calls.length };
  }
}

function encodeChoice(choice: Choice, index: number, isLegacy: boolean, context: ReplyContext): JsonObject {
  const message = gather(choice, context);
  return {
    index,
    message: encodeMessage(message, isLegacy, context),
    logprobs: message.logprobs.length > 0 ? encodeLogprobs(message.logprobs) : null,
    finish_reason: finishReasonOf(choice.stop, isLegacy),
  };
}

function gather(choice: Choice, context: ReplyContext): Message {
  const message = new Message();
  for (const part of choice.parts) {
    switch (part.kind) {
      case 'text':
        gatherText(message, part);
        break;
      case 'refusal':
        message.refusal = (message.refusal ?? '') + part.text;
        break;
      case 'reasoning':
        gatherReasoning(message, part, context);
        break;
      case 'tool-call':
        message.calls.push(part);
        message.blocks++;
        break;
      case 'image':
      case 'audio':
        gatherMedia(message, part, context);
    }
  }
  return message;
}

function gatherText(message: Message, part: TextPart): void {
  const start = message.content?.length ?? 0;
  message.content = (message.content ?? '') + part.text;
  for (const citation of part.citations ?? []) {
    const annotation = annotationOf(citation, start, message.content.length);
    if (annotation !== undefined) message.annotations.push(annotation);
  }
  message.logprobs.push(...(part.logprobs ?? []));
  message.textOpaqueState = part.opaqueState?.value ?? message.textOpaqueState;
  message.blocks++;
}

function gatherReasoning(message: Message, part: ReasoningPart, context: ReplyContext): void {
  const { text, redacted = false, opaqueState } = part;
  message.reasoning += text;
  if (opaqueState === undefined) return;
  message.details.push(sealedDetail({ text, redacted }, context.seal(opaqueState.value), message.position));
  message.blocks++;
}

function gatherMedia(message: Message, part: MediaPart, context: ReplyContext): void {
  if (part.kind === 'audio') message.sounds.push(part);
  else if (part.source.form !== 'file') {
    message.images.push({
      type: 'image_url',
      index: message.images.length,
      image_url: { url: dataUrl(part.source) },
      ...(part.opaqueState === undefined ? {} : { extra_content: extraContent(context.seal(part.opaqueState.value)) }),
    });
    message.blocks++;
  }
}

function encodeMessage(message: Message, isLegacy: boolean, context: ReplyContext): JsonObject {
  const {
    content,
    refusal,
    reasoning,
    annotations,
    details,
    calls,
    images,
    sounds,
    textOpaqueState: textKeepsake,
  } = message;
  const isEmpty = refusal === null && calls.length === 0 && sounds.length === 0;
  return {
    role: 'assistant',
    content: content ?? (isEmpty ? '' : null),
    refusal,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
    annotations,
    ...(calls.length === 0 ? {} : encodeCalls(calls, isLegacy, context)),
    ...(images.length === 0 ? {} : { images }),
    ...(sounds.length === 0 ? {} : { audio: encodeAudio(sounds, context) }),
    ...(textKeepsake === undefined ? {} : { extra_content: extraContent(context.seal(textKeepsake)) }),
  };
}

function encodeCalls(calls: readonly ToolCallPart[], isLegacy: boolean, context: ReplyContext): JsonObject {
  if (isLegacy) return { function_call: { name: calls[0]!.name, arguments: calls[0]!.input } };
  return {
    tool_calls: calls.map(({ id, name, input, custom, opaqueState }) => ({
      id,
      ...(custom === true
        ? { type: 'custom', custom: { name, input } }
        : { type: 'function', function: { name, arguments: input } }),
      ...(opaqueState === undefined ? {} : { extra_content: extraContent(context.seal(opaqueState.value)) }),
    })),
  };
}

/** Joins the pieces of one audio. */
function encodeAudio(sounds: readonly MediaPart[], context: ReplyContext): JsonObject {
  const pieces = sounds.map(({ source }) => Buffer.from(source.form === 'bytes' ? source.base64 : '', 'base64'));
  return {
    id: audioId(context),
    data: Buffer.concat(pieces).toString('base64'),
    expires_at: context.createdAt,
    transcript: sounds.map(({ transcript }) => transcript ?? '').join(''),
  };
}
