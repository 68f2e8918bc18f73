/** The codec of completions: that of the chat protocol, with texts in the place of messages. Pure. */
import { GatewayError } from '../../../core/contract/errors.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf, tryParse } from '../../../core/json/json.ts';
import type { Codec, ReplyEncoder } from '../../common/canonical/codec.ts';
import { mediaLink } from '../../common/encoding/media.ts';
import { formatFrame } from '../../common/kit/sse.ts';
import { chatCodec } from './chat/codec.ts';
import { asConversation } from './completions-request.ts';

export const completionsCodec: Codec = {
  spelling: { ...chatCodec.spelling, maxOutputTokens: 'max_tokens' },
  conversation: 'prompt',
  decodeRequest: (json, context) => chatCodec.decodeRequest(asConversation(json), context),
  audioAsText: true,
  mediaAsText: mediaLink,
  createEncoder: (context) => asTexts(chatCodec.createEncoder(context)),
  encodeReply: (reply, context) => completionOf(chatCodec.encodeReply(reply, context), 'message') ?? {},
  withoutSeals: (json) => json,
  needsBytes: [],
  encodeRequest() {
    const message = 'This model continues texts alone: call it at POST /v1/completions.';
    throw new GatewayError('unsupported', message, { field: 'model', code: 'protocol_unsupported' });
  },
  createDecoder(events) {
    const decoder = chatCodec.createDecoder(events);
    return {
      payload: (json, event) => decoder.payload(messageOf(json, 'delta'), event),
      end: () => decoder.end(),
    };
  },
  decodeReply: (json, events) => chatCodec.decodeReply(messageOf(json, 'message'), events),
};

function asTexts(encoder: ReplyEncoder): ReplyEncoder {
  return {
    event: (event) => textFrames(encoder.event(event)),
    finish: () => textFrames(encoder.finish()),
    fail: (error) => encoder.fail(error),
  };
}

const dataMark = 'data: ';

/** Each frame of the encoder is one line of data. */
function textFrames(frames: string): string {
  if (frames === '') return '';
  let texts = '';
  for (const frame of frames.split('\n\n')) {
    if (frame === '') continue;
    const json = frame.startsWith(dataMark) ? tryParse(frame.slice(dataMark.length)) : undefined;
    if (!isObject(json) || isObject(json['error'])) texts += `${frame}\n\n`;
    else {
      const completion = completionOf(json, 'delta');
      if (completion !== undefined) texts += formatFrame(JSON.stringify(completion));
    }
  }
  return texts;
}

/** undefined: a chunk that says nothing, such as a role or a thought. */
function completionOf(json: JsonObject, member: 'message' | 'delta'): JsonObject | undefined {
  const choices = listOf(json['choices']).flatMap((choice) => {
    if (!isObject(choice)) return [];
    const said = objectOf(choice[member]) ?? {};
    const text = textOf(said['content']) ?? textOf(said['refusal']) ?? '';
    const reason = choice['finish_reason'] ?? null;
    if (member === 'delta' && text === '' && reason === null) return [];
    return [{ text, index: choice['index'] ?? 0, logprobs: null, finish_reason: reason }];
  });
  if (member === 'delta' && choices.length === 0 && !isObject(json['usage'])) return undefined;
  const { id } = json;
  const own = typeof id === 'string' ? id.replace(/^chatcmpl-/, 'cmpl-') : id;
  return { ...json, id: own, object: 'text_completion', choices };
}

function messageOf(json: JsonObject, member: 'message' | 'delta'): JsonObject {
  const choices = listOf(json['choices']).map((choice) => {
    if (!isObject(choice)) return choice;
    const { text, logprobs: _, ...others } = choice;
    return { ...others, [member]: { role: 'assistant', content: text ?? '' } };
  });
  return { ...json, choices };
}
