/** The responses codec between the wire format and the canonical format. */
import { type JsonObject, objectOf, textOf } from '../../../../core/json/json.ts';
import type { Codec, OpenSeal } from '../../../common/canonical/codec.ts';
import type { Spelling } from '../../../common/canonical/dropped-parameters.ts';
import type { MediaPart } from '../../../common/canonical/prompt.ts';
import { readCount } from '../../../common/domain/usage.ts';
import { mediaLink } from '../../../common/encoding/media.ts';
import { isSealed } from '../../encoding/sealed-text.ts';
import { invalid } from '../../request/checks.ts';
import { compactionMaker } from './decode/input.ts';
import { decodeRequest } from './decode/request.ts';
import { decodeReply, ResponsesDecoder } from './decode/stream.ts';
import { ResponsesContinuation } from './encode/continuation.ts';
import { encodeReply } from './encode/reply.ts';
import { encodeRequest } from './encode/request.ts';
import { ResponsesEncoder } from './encode/stream.ts';

const spelling: Spelling = {
  tools: 'tools',
  toolChoice: 'tool_choice',
  parallelTools: 'parallel_tool_calls',
  maxOutputTokens: 'max_output_tokens',
  temperature: 'temperature',
  topP: 'top_p',
  logprobs: 'top_logprobs',
  verbosity: 'text.verbosity',
  reasoning: 'reasoning',
  output: 'text.format',
  user: 'safety_identifier',
  metadata: 'metadata',
  serviceTier: 'service_tier',
  cacheKey: 'prompt_cache_key',
  imageOptions: 'tools.image_generation',
  cacheMarks: 'prompt_cache_breakpoint',
  strictTools: 'strict',
  strictOutput: 'text.format.strict',
  names: 'name',
  phase: 'phase',
  detail: 'detail',
  reasoningHistory: 'reasoning',
  documentNames: 'input.content.filename',
  searchHistory: 'web_search_call',
  citedHistory: 'annotations',
  strayResults: 'function_call_output',
  image: 'input_image',
  document: 'input_file',
  audio: 'input_audio',
  video: 'input_file',
  file: 'file_id',
};

/** Members of a request that make up its prompt. */
const countedMembers = [
  'model',
  'instructions',
  'input',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'text',
  'reasoning',
];

export const responsesCodec: Codec = {
  spelling,
  conversation: 'input',
  decodeRequest,
  needsBytes: [],
  encodeRequest,
  createDecoder: (events) => new ResponsesDecoder(events),
  decodeReply,
  audioAsText: true,
  mediaAsText: (media) => (isImage(media) ? undefined : mediaLink(media)),
  createEncoder: (context) => new ResponsesEncoder(context),
  createContinuation: () => new ResponsesContinuation(),
  encodeReply,
  withoutSeals,
  counting: {
    request: ({ body }) => ({
      path: '/responses/input_tokens',
      body: Object.fromEntries(countedMembers.flatMap((name) => (name in body ? [[name, body[name]]] : []))),
    }),
    tokens: (json) => readCount(json['input_tokens']),
  },
};

function isImage({ kind, source }: MediaPart): boolean {
  return kind === 'image' && source.form !== 'file';
}

/** Throws invalid_request for a sealed summary that cannot be opened: without it the conversation is incomplete. */
function withoutSeals(json: JsonObject, open: OpenSeal): JsonObject {
  const { input } = json;
  if (!Array.isArray(input)) return json;
  return { ...json, input: input.flatMap((item: unknown, index) => unsealed(item, open, index)) };
}

function unsealed(value: unknown, open: OpenSeal, index: number): unknown[] {
  const item = objectOf(value);
  const sealed = textOf(item?.['encrypted_content']);
  if (!isSealed(sealed)) return [value];
  if (item?.['type'] === 'reasoning') return [];
  const opaqueState = open(sealed);
  if (opaqueState?.maker !== compactionMaker) {
    const field = `input[${index}].encrypted_content`;
    throw invalid(`The field "${field}" was not made by this gateway for this account, or too long ago.`, field);
  }
  return [{ type: 'message', role: 'developer', content: [{ type: 'input_text', text: opaqueState.value }] }];
}
