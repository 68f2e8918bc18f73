/** The messages protocol's words for the common tongue, put together. */
import { readCount } from '../../../../core/usage.ts';
import type { Codec } from '../../codec.ts';
import type { JsonObject } from '../../json.ts';
import { decodeRequest } from './decode-request.ts';
import { decodeReply, MessagesDecoder } from './decode-stream.ts';
import { encodeReply } from './encode-reply.ts';
import { encodeRequest } from './encode-request.ts';
import { MessagesEncoder } from './encode-stream.ts';
import { withoutSeals } from './seals.ts';

/** What counting takes of a request: nothing that bounds or shapes the answer. */
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
    documentCitations: 'citations',
    reasoningHistory: 'messages.content.thinking',
    searchHistory: 'messages.content.web_search_tool_result',
    strayResults: 'messages.content.tool_result',
    image: 'messages.content.image',
    document: 'messages.content.document',
    file: 'messages.content.source.file_id',
  },
  decodeRequest,
  needsBytes: [],
  encodeRequest,
  createDecoder: (events) => new MessagesDecoder(events),
  decodeReply,
  createEncoder: (context) => new MessagesEncoder(context),
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
