/** The texts and the sound of answers in the realtime protocol. Pure. */
import { type JsonObject, objectOf, textOf } from '../../../core/json/json.ts';
import {
  type AnswerReader,
  type AnswerReading,
  type BlockKind,
  jsonOf,
  messageOf,
  passing,
  repeating,
  type Step,
  sending,
} from '../relay/answers/reading.ts';
import type { Message } from '../relay/upstream.ts';

const growing =
  /^response\.(?:output_)?(text|audio_transcript|audio|function_call_arguments|mcp_call_arguments)\.(delta|done)$/;
/** Events that say nothing of the model. */
const withoutAnswers =
  /^(?:session|transcription_session|input_audio_buffer|output_audio_buffer|rate_limits|mcp_list_tools|conversation\.(?:created|item\.(?:deleted|truncated|input_audio_transcription)))\b|^error$/;

export const realtimeAnswers: AnswerReader = {
  read(message) {
    const json = jsonOf(message);
    if (json === undefined) return undefined;
    const type = textOf(json['type']) ?? '';
    const item = textOf(json['item_id']) ?? textOf(objectOf(json['item'])?.['id']);
    if (type.startsWith('response.')) return { ...responseReading(message, json, type), item };
    return { answer: undefined, item, steps: [otherStep(message, json, type)] };
  },
  refusedEnd(message) {
    const json = jsonOf(message) ?? {};
    const response = {
      ...objectOf(json['response']),
      status: 'incomplete',
      status_details: { type: 'incomplete', reason: 'content_filter' },
      output: [],
    };
    return messageOf({ ...json, response }, message);
  },
};

/** The words of sound that the client has sent stay what the vendor has heard. */
function otherStep(message: Message, json: JsonObject, type: string): Step {
  if (type.startsWith('conversation.item.input_audio_transcription.')) return passing(message);
  const isRepeated = isUsers(objectOf(json['item'])) || withoutAnswers.test(type);
  return isRepeated ? repeating(message, json) : sending(message, json);
}

/** What the client has said, and results of its tools. */
function isUsers(item: JsonObject | undefined): boolean {
  if (item === undefined) return false;
  return ['user', 'system'].includes(String(item['role'])) || item['type'] === 'function_call_output';
}

function responseReading(message: Message, json: JsonObject, type: string): AnswerReading {
  const answer = textOf(json['response_id']) ?? textOf(objectOf(json['response'])?.['id']) ?? '';
  const of = `${textOf(json['item_id']) ?? ''} ${String(json['content_index'] ?? '')}`;
  const found = growing.exec(type);
  if (found !== null)
    return { answer, steps: blockSteps(message, json, { name: found[1]!, of, isEnd: found[2] === 'done' }) };
  const last: Step[] = type === 'response.content_part.done' ? [{ does: 'complete', block: `${of} transcript` }] : [];
  return { answer, steps: [...last, sending(message, json)], ends: type === 'response.done' };
}

interface Growing {
  readonly name: string;
  /** Its item and its part. */
  readonly of: string;
  readonly isEnd: boolean;
}

function blockSteps(message: Message, json: JsonObject, { name, of, isEnd }: Growing): readonly Step[] {
  if (name === 'audio') return [{ does: 'sound', block: `${of} transcript`, message }];
  const kind: BlockKind = name === 'text' ? 'text' : name === 'audio_transcript' ? 'transcript' : 'arguments';
  const block = `${of} ${kind}`;
  if (isEnd) return [{ does: 'close', block }, sending(message, json, kind === 'transcript' ? block : undefined)];
  const { obfuscation: _length, ...rest } = json;
  const text = textOf(json['delta']) ?? '';
  return [{ does: 'grow', block, kind, text, message, written: (delta) => messageOf({ ...rest, delta }, message) }];
}
