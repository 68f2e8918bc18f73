/** The messages codec between the wire format and the canonical format. */
import type { JsonObject } from '../../../../core/json/json.ts';
import type { Codec } from '../../../common/canonical/codec.ts';
import { readCount } from '../../../common/domain/usage.ts';
import { mediaLink } from '../../../common/encoding/media.ts';
import { decodeRequest } from './decode/request.ts';
import { decodeReply, MessagesDecoder } from './decode/stream.ts';
import { MessagesContinuation } from './encode/continuation.ts';
import { encodeReply } from './encode/reply.ts';
import { encodeRequest } from './encode/request.ts';
import { MessagesEncoder } from './encode/stream.ts';
import { withoutSeals } from './remove-seals.ts';

/** Members of a request that counting accepts: nothing that limits or shapes the answer. */
const countedMembers = ['model', 'system', 'messages', 'tools', 'tool_choice', 'thinking', 'output_config', 'speed'];

export const messagesCodec: Codec = {
  spelling: {
    tools: 'tools',
    toolChoice: 'tool_choice',
    parallelTools: 'tool_choice.disable_parallel_tool_use',
    maxOutputTokens: 'max_tokens',
    temperature: 'temperature',
    topP: 'top_p',
    topK: 'top_k',
    stop: 'stop_sequences',
    reasoning: 'thinking',
    output: 'output_config.format',
    user: 'metadata.user_id',
    metadata: 'metadata',
    serviceTier: 'service_tier',
    cacheMarks: 'cache_control',
    strictTools: 'strict',
    strictOutput: 'output_config.format.schema',
    documentCitations: 'messages.content.citations',
    documentNames: 'messages.content.title',
    reasoningHistory: 'messages.content.thinking',
    searchHistory: 'messages.content.web_search_tool_result',
    citedHistory: 'messages.content.citations',
    strayResults: 'messages.content.tool_result',
    image: 'messages.content.image',
    document: 'messages.content.document',
    file: 'messages.content.source.file_id',
  },
  plainCallIds: true,
  conversation: 'messages',
  decodeRequest,
  needsBytes: [],
  encodeRequest,
  deltaPaths: [
    ['delta', 'text'],
    ['delta', 'thinking'],
    ['delta', 'partial_json'],
  ],
  createDecoder: (events) => new MessagesDecoder(events),
  decodeReply,
  audioAsText: true,
  mediaAsText: mediaLink,
  createEncoder: (context) => new MessagesEncoder(context),
  createContinuation: () => new MessagesContinuation(),
  encodeReply,
  withoutSeals,
  counting: {
    request: ({ body }) => ({ path: '/v1/messages/count_tokens', body: counted(body) }),
    tokens: (json) => readCount(json['input_tokens']),
  },
};

function counted(body: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(body).filter(([member]) => countedMembers.includes(member)));
}
