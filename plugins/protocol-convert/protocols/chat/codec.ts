/** The chat codec between the wire format and the canonical format. */
import { type JsonObject, listOf, objectOf } from '../../../../core/json/json.ts';
import type { Codec } from '../../../common/canonical/codec.ts';
import type { Spelling } from '../../../common/canonical/dropped-parameters.ts';
import type { MediaPart } from '../../../common/canonical/prompt.ts';
import { mediaLink } from '../../../common/encoding/media.ts';
import { decodeRequest } from './decode/request.ts';
import { ChatDecoder, decodeReply } from './decode/stream.ts';
import { encodeReply } from './encode/reply.ts';
import { encodeRequest } from './encode/request.ts';
import { ChatEncoder } from './encode/stream.ts';
import { withoutSeals } from './remove-seals.ts';

/** Client names of the canonical parameters. */
const spelling: Spelling = {
  tools: 'tools',
  toolChoice: 'tool_choice',
  parallelTools: 'parallel_tool_calls',
  maxOutputTokens: 'max_completion_tokens',
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  stop: 'stop',
  choices: 'n',
  seed: 'seed',
  frequencyPenalty: 'frequency_penalty',
  presencePenalty: 'presence_penalty',
  logitBias: 'logit_bias',
  logprobs: 'logprobs',
  verbosity: 'verbosity',
  reasoning: 'reasoning_effort',
  output: 'response_format',
  user: 'safety_identifier',
  metadata: 'metadata',
  serviceTier: 'service_tier',
  cacheKey: 'prompt_cache_key',
  outputKinds: 'modalities',
  audioOptions: 'audio',
  imageOptions: 'image_config',
  cacheMarks: 'prompt_cache_breakpoint',
  strictTools: 'tools.function.strict',
  strictOutput: 'response_format.json_schema.strict',
  names: 'messages.name',
  detail: 'image_url.detail',
  reasoningHistory: 'reasoning_content',
  documentNames: 'messages.content.file.filename',
  citedHistory: 'messages.annotations',
  image: 'image_url',
  document: 'file',
  strayResults: 'messages.tool_call_id',
  audio: 'input_audio',
  video: 'video_url',
  file: 'file.file_id',
};

/** The name of a call may come in a frame of its own, before its arguments. */
function beginsEarly(json: JsonObject): boolean {
  return listOf(json['choices']).some(
    (choice) => listOf(objectOf(objectOf(choice)?.['delta'])?.['tool_calls']).length > 0,
  );
}

export const chatCodec: Codec = {
  beginsEarly,
  spelling,
  conversation: 'messages',
  decodeRequest,
  needsBytes: ['document', 'audio'],
  encodeRequest,
  createDecoder: (events) => new ChatDecoder(events),
  deltaPaths: [
    ['choices', '0', 'delta', 'content'],
    ['choices', '0', 'delta', 'reasoning_content'],
    ['choices', '0', 'delta', 'reasoning'],
    ['choices', '0', 'delta', 'tool_calls', '0', 'function', 'arguments'],
  ],
  decodeReply,
  mediaAsText: (media) => (isHeld(media) ? undefined : mediaLink(media)),
  createEncoder: (context) => new ChatEncoder(context),
  encodeReply,
  withoutSeals,
};

/** Messages of an assistant have members for images and for the bytes of sound. */
function isHeld({ kind, source }: MediaPart): boolean {
  return kind === 'image' ? source.form !== 'file' : kind === 'audio' && source.form === 'bytes';
}
