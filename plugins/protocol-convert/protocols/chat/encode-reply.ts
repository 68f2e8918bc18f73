/** Words a whole answer as a chat completion. */
import type { MediaPart, TokenLogprob, ToolCallPart } from '../../canon.ts';
import type { ReplyContext } from '../../codec.ts';
import { type JsonObject, listOf } from '../../json.ts';
import type { Choice, Reply } from '../../reply.ts';
import { dataUrl } from '../../wording/media.ts';
import { finishReasonOf } from './finish.ts';
import { extraContent } from './keepsakes.ts';
import { wordLogprobs } from './logprobs.ts';
import { annotationOf, audioId, replyId, sealedDetail } from './reply-words.ts';
import { wordUsage } from './usage.ts';

export function encodeReply(reply: Reply, context: ReplyContext): JsonObject {
  const { request } = context;
  const isLegacy = listOf(request['functions']).length > 0 && listOf(request['tools']).length === 0;
  return {
    id: replyId(reply.id, context),
    object: 'chat.completion',
    created: reply.createdAt ?? context.createdAt,
    model: context.call.model,
    choices: reply.choices.map((choice, index) => wordChoice(choice, index, isLegacy, context)),
    usage: wordUsage(context.usage().usage),
    ...(reply.serviceTier === undefined ? {} : { service_tier: reply.serviceTier }),
  };
}

/** What the parts of a choice amount to. */
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
  textKeepsake: string | undefined;
}

function wordChoice(choice: Choice, index: number, isLegacy: boolean, context: ReplyContext): JsonObject {
  const message = gather(choice, context);
  return {
    index,
    message: wordMessage(message, isLegacy, context),
    logprobs: message.logprobs.length > 0 ? wordLogprobs(message.logprobs) : null,
    finish_reason: finishReasonOf(choice.stop, isLegacy),
  };
}

function gather(choice: Choice, context: ReplyContext): Message {
  const message = new Message();
  for (const part of choice.parts) {
    switch (part.kind) {
      case 'text': {
        const start = message.content?.length ?? 0;
        message.content = (message.content ?? '') + part.text;
        for (const citation of part.citations ?? []) {
          const annotation = annotationOf(citation, start, message.content.length);
          if (annotation !== undefined) message.annotations.push(annotation);
        }
        message.logprobs.push(...(part.logprobs ?? []));
        message.textKeepsake = part.keepsake?.value ?? message.textKeepsake;
        break;
      }
      case 'refusal':
        message.refusal = (message.refusal ?? '') + part.text;
        break;
      case 'reasoning':
        message.reasoning += part.text;
        if (part.keepsake !== undefined) {
          const sealed = context.seal(part.keepsake.value);
          const { text, redacted = false } = part;
          message.details.push(sealedDetail({ text, redacted }, sealed, message.details.length));
        }
        break;
      case 'tool-call':
        message.calls.push(part);
        break;
      case 'image':
      case 'audio':
        gatherMedia(message, part, context);
    }
  }
  return message;
}

function gatherMedia(message: Message, part: MediaPart, context: ReplyContext): void {
  if (part.kind === 'audio') message.sounds.push(part);
  else if (part.source.form !== 'file')
    message.images.push({
      type: 'image_url',
      index: message.images.length,
      image_url: { url: dataUrl(part.source) },
      ...(part.keepsake === undefined ? {} : { extra_content: extraContent(context.seal(part.keepsake.value)) }),
    });
}

function wordMessage(message: Message, isLegacy: boolean, context: ReplyContext): JsonObject {
  const { content, refusal, reasoning, annotations, details, calls, images, sounds, textKeepsake } = message;
  const isEmpty = refusal === null && calls.length === 0 && sounds.length === 0;
  return {
    role: 'assistant',
    content: content ?? (isEmpty ? '' : null),
    refusal,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
    annotations,
    ...(calls.length === 0 ? {} : wordCalls(calls, isLegacy, context)),
    ...(images.length === 0 ? {} : { images }),
    ...(sounds.length === 0 ? {} : { audio: wordAudio(sounds, context) }),
    ...(textKeepsake === undefined ? {} : { extra_content: extraContent(context.seal(textKeepsake)) }),
  };
}

function wordCalls(calls: readonly ToolCallPart[], isLegacy: boolean, context: ReplyContext): JsonObject {
  if (isLegacy) return { function_call: { name: calls[0]!.name, arguments: calls[0]!.input } };
  return {
    tool_calls: calls.map(({ id, name, input, custom, keepsake }) => ({
      id,
      ...(custom === true
        ? { type: 'custom', custom: { name, input } }
        : { type: 'function', function: { name, arguments: input } }),
      ...(keepsake === undefined ? {} : { extra_content: extraContent(context.seal(keepsake.value)) }),
    })),
  };
}

/** Pieces of one sound, put together. */
function wordAudio(sounds: readonly MediaPart[], context: ReplyContext): JsonObject {
  const pieces = sounds.map(({ source }) => Buffer.from(source.form === 'bytes' ? source.base64 : '', 'base64'));
  return {
    id: audioId(context),
    data: Buffer.concat(pieces).toString('base64'),
    expires_at: context.createdAt,
    transcript: sounds.map(({ transcript }) => transcript ?? '').join(''),
  };
}
